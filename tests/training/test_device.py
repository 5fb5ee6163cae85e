"""Where a model computes: words, sentences, and on a device that is named the numbers of the CPU."""

import os

import numpy as np
import pytest
import torch

from asapool.data import load
from asapool.errors import ConfigError
from asapool.experiments.processes import run_tasks
from asapool.experiments.ray_training import RayProcesses
from asapool.insight import explain
from asapool.kernels.shards import Shard, gather, sum_over
from asapool.models import ModelConfig, build
from asapool.training import TrainConfig, fit, predict
from asapool.training.adam import Adam
from asapool.training.device import check_precision, check_shared, device_of, resolve_device
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


def test_processes_take_the_gpus_of_a_machine_in_turn(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert resolve_device("cuda") == torch.device("cuda", 0)
    for number, gpu in ((0, 0), (1, 1), (2, 0)):
        monkeypatch.setenv("LOCAL_RANK", str(number))
        assert resolve_device("auto") == torch.device("cuda", gpu)
    assert resolve_device("cpu") == torch.device("cpu")


def _worker_number(shared, task):
    return os.environ["LOCAL_RANK"]


def test_every_worker_has_a_number_of_its_own():
    assert {outcome.result for outcome in run_tasks([1, 2], _worker_number, None, jobs=2)} == {"0", "1"}


def test_processes_that_share_batches_need_a_gpu_each(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    check_shared(torch.device("cuda", 0), 2)
    check_shared(torch.device("cpu"), 8)
    with pytest.raises(ConfigError, match="4 processes need a GPU each, but this machine has 2"):
        check_shared(torch.device("cuda", 0), 4)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")  # torchrun: two here and two on another machine
    check_shared(torch.device("cuda", 0), 4)
    with pytest.raises(ConfigError, match="cannot share an Apple GPU"):
        check_shared(torch.device("mps"), 2)
    with pytest.raises(ConfigError, match="--engine ray shares the batches of one training run on CPUs only"):
        check_shared(torch.device("cuda", 0), 2, RayProcesses.gpus)


def test_what_is_not_on_the_cpu_does_not_go_through_shared_memory(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda x: calls.append(("sum", x.device.type)))
    monkeypatch.setattr(torch.distributed, "all_gather", lambda parts, x: calls.append(("gather", x.device.type)))
    shard = Shard(0, 2, exchange=object())
    sum_over(torch.zeros(2, device="meta"), shard)
    gather(torch.zeros(2, device="meta"), shard)
    assert calls == [("sum", "meta"), ("gather", "meta")]


def test_explanations_on_a_device_are_those_of_the_cpu(device):
    graphs = load("synthetic:motifs?graphs=4&nodes=9")
    model = build(ModelConfig(method="asap+", hidden=8), graphs.num_features, 2, seed=0)
    kinds = ("attention", "gradient", "occlusion", "neighbourhood", "substitution")
    expected = explain(model, graphs, 1, importance=kinds)
    got = explain(model.to(resolve_device(device)), graphs, 1, importance=kinds)
    assert [level.medoid.tolist() for level in got.levels] == [level.medoid.tolist() for level in expected.levels]
    for kind in kinds:
        np.testing.assert_allclose(got.importance[kind], expected.importance[kind], atol=1e-3)


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
