"""What is decided when a run begins: small jobs use the reference backend, whatever is compiled already."""

import os
import subprocess
import sys

import pytest

from asapool.data import load
from asapool.models import checkpoint
from asapool.training.run import SMALL_JOB, is_small, settle
from asapool.training.settings import RunSettings


def settings(method="asap", epochs=100, device="cpu", **model):
    return RunSettings.from_dict(
        {"model": {"method": method, **model}, "train": {"epochs": epochs, "device": device}, "data": {"source": "a"}}
    )


def test_epochs_times_nodes_and_edges_decide():
    assert is_small(settings(epochs=100), SMALL_JOB // 100)
    assert not is_small(settings(epochs=100), SMALL_JOB // 100 + 1)
    assert not is_small(settings(epochs=100), SMALL_JOB // 100, trainings=2)
    assert is_small(settings("asap+", epochs=1), SMALL_JOB)


@pytest.mark.parametrize(
    "other",
    [{"backend": "fused"}, {"backend": "dense"}, {"max_neighbours": 8}, {"device": "auto"}, {"method": "wl"}],
    ids=str,
)
def test_what_the_settings_name_stays(other):
    assert not is_small(settings(**other), 100)


def test_the_backend_is_written_to_the_settings():
    graphs = load("synthetic:motifs?graphs=20&nodes=9")
    for epochs, backend in ((1, "reference"), (5_000, "auto")):
        chosen = settings(epochs=epochs)
        assert settle(chosen, graphs, chosen.split.make(graphs), threads=1).model.backend == backend


CODE = """
import sys
from asapool.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
loaded = {"numba", "torch._dynamo"} & set(sys.modules)
assert not loaded, loaded
"""


def test_a_small_training_and_its_model_need_no_compiler(tmp_path):
    """The first minute after a fresh install: no loop is compiled, nor is what could compile one even loaded."""
    source, out = "synthetic:motifs?graphs=20&nodes=9", str(tmp_path / "run")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for words in (["train", source, "--epochs", "1", "--out", out], ["predict", out, source]):
        subprocess.run([sys.executable, "-c", CODE, *words], check=True, env=environment, capture_output=True)
    assert checkpoint.load(out).config.backend == "reference"
    assert RunSettings.from_file(tmp_path / "run" / "config.toml").model.backend == "reference"
    assert not (tmp_path / "cache").exists()


def test_a_training_that_starts_from_a_small_model_chooses_by_its_own_size(tmp_path):
    from asapool.models import ModelConfig, build
    from asapool.training.settings import resolve

    graphs = load("synthetic:motifs?graphs=20&nodes=9")
    small = build(ModelConfig(hidden=8, backend="reference"), graphs.num_features, graphs.target.outputs, seed=0)
    small.target = graphs.target
    checkpoint.save(tmp_path / "model.safetensors", small, recipe=graphs.recipe)
    chosen, _ = resolve(
        {"data": {"source": "synthetic:motifs?graphs=20&nodes=9"},
         "train": {"init_from": str(tmp_path / "model.safetensors")}}
    )  # fmt: skip
    assert (chosen.model.hidden, chosen.model.backend) == (8, "auto")
