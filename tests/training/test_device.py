"""Where a model computes: words, sentences, and on a device that is named the numbers of the CPU."""

import os

import numpy as np
import pytest
import torch

from asapool.data import load
from asapool.errors import ConfigError
from asapool.models import ModelConfig, build
from asapool.training import TrainConfig, fit, predict
from asapool.training.adam import Adam
from asapool.training.device import check_precision, device_of, resolve_device
from tests.children import run_python


def test_a_device_that_is_not_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve_device("auto") == torch.device("cpu")
    with pytest.raises(ConfigError, match="'cuda' is not available; this machine and this torch have cpu"):
        resolve_device("cuda")
    with pytest.raises(ConfigError, match=r"train\.device must be one of 'auto', 'cpu', 'cuda', 'mps', got 'gpu'"):
        TrainConfig(device="gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == torch.device("cuda")


def test_the_device_is_written_only_where_it_is_not_the_cpu():
    assert "device" not in TrainConfig().to_dict()
    assert TrainConfig(device="auto").to_dict()["device"] == "auto"


@pytest.mark.parametrize("method", ["asap", "asap+", "topk", "sortpool", "diffpool", "set2set"])
def test_a_training_on_a_device_gives_the_numbers_of_the_cpu(method, device):
    graphs = load("synthetic:cycles?graphs=40")
    parts = type("Parts", (), {"train": np.arange(30), "val": np.arange(30, 40)})
    losses, answers = [], []
    for name in ("cpu", device):
        config = ModelConfig(method=method, hidden=8, dropout=0.0)
        model = build(config, graphs.num_features, 2, seed=0, typical_nodes=14)
        done = fit(model, graphs, parts, TrainConfig(epochs=2, batch_size=16, seed=0, device=name))
        assert device_of(model).type == "cpu"
        losses.append([epoch.loss for epoch in done.history])
        answers.append(predict(model.to(resolve_device(name)), graphs))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-2)


HALF = """
import numpy as np
from asapool.data import load
from asapool.models import ModelConfig, build
from asapool.training import TrainConfig, fit
graphs = load("synthetic:motifs?graphs=60")
parts = type("Parts", (), {"train": np.arange(48), "val": np.arange(48, 60)})
for method in METHODS:
    for backend in BACKENDS:
        if backend == "dense" and method in ("diffpool", "set2set"):
            continue
        losses = []
        for precision in ("float32", "bfloat16", "float16"):
            config = ModelConfig(method=method, hidden=7, dropout=0.0, backend=backend)
            model = build(config, graphs.num_features, 2, seed=0, typical_nodes=14)
            done = fit(model, graphs, parts, TrainConfig(epochs=2, batch_size=16, lr=0.003, precision=precision))
            losses.append([epoch.loss for epoch in done.history])
            assert all(str(w.dtype) == "torch.float32" for w in model.state_dict().values() if w.is_floating_point())
        for half in losses[1:]:
            assert losses[0] != half, (method, backend)
            np.testing.assert_allclose(half, losses[0], rtol=0.05, err_msg=f"{method} {backend}")
"""


@pytest.mark.parametrize(
    ("methods", "backends"),
    [
        (("asap+",), ("auto", "dense")),
        pytest.param(
            ("asap+", "asap", "topk", "diffpool", "set2set"), ("auto", "reference", "dense"), marks=pytest.mark.slow
        ),
    ],
    ids=["asap+", "all"],
)
def test_products_in_16_bits_train_like_those_in_float32(methods, backends):
    # oneDNN may think that the machine has matrix units which the system does not let it use
    env = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    done = run_python(f"METHODS, BACKENDS = {methods}, {backends}\n{HALF}", env)
    assert done.returncode == 0, done.stderr


def test_a_step_whose_float16_gradients_overflow_is_left_out(monkeypatch):
    graphs = load("synthetic:cycles?graphs=40")
    parts = type("Parts", (), {"train": np.arange(32), "val": np.arange(32, 40)})
    taken, step = [], Adam.step
    monkeypatch.setattr(Adam, "step", lambda self, lr: (taken.append(lr), step(self, lr))[1])
    config = TrainConfig(epochs=1, batch_size=8, precision="float16")
    model = build(ModelConfig(hidden=7), graphs.num_features, 2, seed=0)
    overflowed = []
    # the gradient of the second batch is not finite
    next(model.parameters()).register_hook(
        lambda grad: overflowed.append(len(overflowed)) or (grad * torch.inf if len(overflowed) == 2 else grad)
    )
    done = fit(model, graphs, parts, config)
    assert (len(overflowed), len(taken)) == (4, 3)
    assert done.stopped is None
    assert all(bool(w.isfinite().all()) for w in model.parameters())


def test_a_precision_that_the_machine_cannot_compute_is_one_sentence(monkeypatch):
    def fails(precision, device):
        raise RuntimeError("could not create a primitive")

    monkeypatch.setattr("asapool.training.device.products_in", fails)
    with pytest.raises(ConfigError, match=r"torch cannot multiply bfloat16 matrices on this cpu \(could not create"):
        check_precision("bfloat16", torch.device("cpu"))
    check_precision("float32", torch.device("cpu"))
