"""`asapool warmup`, and the note that loops are being compiled: real compilations in an empty cache."""

import inspect
import os

import pytest

from asapool.cli.methods import warmup
from asapool.errors import ConfigError
from asapool.training import resolve
from asapool.training.warmup import warm_up
from tests.children import run_python
from tests.cli.commands import ENV, call

ONE_LOOP = """
import logging, torch
logging.basicConfig(level="INFO")
from asapool import kernels
kernels.select(torch.tensor([1.0, 3.0, 2.0]), torch.tensor([0, 3]), torch.tensor([2]), backend="fused")
"""


def test_the_first_use_says_that_it_compiles_and_where_the_cache_is(tmp_path):
    env = {**ENV, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (run_python(ONE_LOOP, env).stderr for _ in range(2))
    assert first.count("compiling loops for this machine, once") == 1
    assert str(tmp_path / "cache") in first
    assert "compiling" not in second
    assert any(name.endswith(".nbc") for _, _, names in os.walk(tmp_path / "cache") for name in names)


def test_warmup_says_where_the_loops_are():
    done = call("warmup", "--methods", "mlp")
    assert done.exit_code == 0
    assert "cache" in done.stdout
    with pytest.raises(ConfigError, match="--methods must be one of"):
        call("warmup", "--methods", "best")


def test_the_method_that_train_takes_by_default_is_compiled_by_default():
    names = inspect.signature(warm_up).parameters["methods"].default
    assert resolve({"data": {"source": "synthetic:motifs?graphs=20"}})[0].model.method in names
    assert ",".join(names) == inspect.signature(warmup).parameters["methods"].default
