"""The dense backend of a model: padded groups give the same numbers, gradients and training as packed batches."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from asapool.data import load
from asapool.errors import ConfigError
from asapool.kernels.dense import pad
from asapool.models import ModelConfig, build, padded
from asapool.models.batches import cut, edge_channels
from asapool.training import TrainConfig, fit
from tests.graphs import with_random_parameters

CONFIGS = [
    {"method": "asap"},
    {"method": "asap", "semantics": "pyg", "attention": "dynamic", "hops": 2},
    {"method": "asap+", "norm": "graph"},
    {"method": "asap+", "norm": "batch"},
]


def graphs():
    return load("synthetic:cycles?graphs=40")


@pytest.fixture
def narrow(monkeypatch):
    """Graphs of more than 16 nodes are computed packed, and groups cost nothing, so that there are several."""
    monkeypatch.setattr(padded, "WIDTHS", (8, 12, 16))
    monkeypatch.setattr(padded, "GROUP", 0)


@pytest.mark.parametrize("options", CONFIGS, ids=lambda o: ",".join(map(str, o.values())))
@pytest.mark.parametrize("training", [False, True])
def test_numbers_and_gradients_are_those_of_packed_batches(options, training, narrow):
    held = graphs()
    plus = "+" in options["method"]
    names = ("dropout", "readout_dropout", "conv_dropout", "count_dropout") if plus else ("dropout",)
    config = ModelConfig(hidden=8, backend="dense", **options, **dict.fromkeys(names, 0.0))
    made = build(config, held.num_features, 2, seed=0, edge_channels=edge_channels(held)).double()
    model = with_random_parameters(made, seed=1).train(training)
    batch = cut(model, held, np.arange(20))
    # features that differ from node to node: the nodes of a cycle are equally fit, and rounding would decide among them
    x = torch.rand(batch.x.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    inputs = (x, *batch.inputs[1:])
    results = []
    for backend in ("dense", "auto"):
        model.config = replace(config, backend=backend)
        model.zero_grad()
        logits, _ = model.forward_with_penalty(*inputs, **model.more(batch))
        logits.square().sum().backward()
        results.append((logits.detach(), [None if p.grad is None else p.grad.clone() for p in model.parameters()]))
    assert results[0][0].std() > 1e-4
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-7, atol=1e-9)
    for a, b in zip(results[0][1], results[1][1], strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)


def test_a_training_gives_the_same_losses():
    held = graphs()
    parts = type("Parts", (), {"train": np.arange(30), "val": np.arange(30, 40)})
    losses = []
    for backend in ("dense", "auto"):
        config = ModelConfig(method="asap", hidden=8, dropout=0.0, backend=backend)
        model = build(config, held.num_features, 2, seed=0)
        done = fit(model, held, parts, TrainConfig(epochs=2, batch_size=16, seed=0))
        losses.append([(epoch.loss, epoch.val_loss) for epoch in done.history])
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-5)


def test_groups_hold_every_graph_once_and_bound_the_padding(monkeypatch):
    sizes = np.random.default_rng(0).integers(1, 700, 200)
    made, packed = padded.groups(sizes)
    together = np.concatenate([*(group.graphs for group in made), packed])
    assert sorted(together) == list(range(200))
    assert (sizes[packed] > 512).all()
    assert all((sizes[group.graphs] <= group.nodes).all() for group in made)
    monkeypatch.setattr(padded, "ENTRIES", 3 * 512**2)
    assert max(len(group.graphs) * group.nodes**2 for group in padded.groups(sizes)[0]) <= 3 * 512**2
    assert padded.groups(sizes[sizes <= 512], together=True)[0] == []


def time_of(made):
    """The estimated time of groups, as a list of numbers of graphs and widths."""
    return sum(padded.GROUP + graphs * nodes * (nodes + padded.NODE) for graphs, nodes in made)


def test_no_other_division_into_groups_takes_less_time(monkeypatch):
    monkeypatch.setattr(padded, "WIDTHS", WIDTHS := (8, 16, 24, 48, 96))
    rng, numbers = np.random.default_rng(1), set()
    for _ in range(40):
        sizes = np.minimum(rng.geometric(rng.uniform(0.02, 0.2), rng.integers(1, 60)), 96)
        need = np.searchsorted(WIDTHS, sizes)
        every = []  # all ways to choose the widths of groups, of which the largest must be there
        for chosen in itertools.chain.from_iterable(itertools.combinations(range(5), k) for k in range(1, 6)):
            if chosen[-1] == need.max():
                place = np.searchsorted(chosen, need)
                every.append(time_of((n, WIDTHS[chosen[k]]) for k, n in enumerate(np.bincount(place)) if n))
        made, _ = padded.groups(sizes)
        assert time_of((len(group.graphs), group.nodes) for group in made) == min(every)
        numbers.add(len(made))
    assert len(numbers) > 1


def test_a_method_that_cannot_be_padded_says_why():
    with pytest.raises(ConfigError, match=r'SortPool ranks.*backend = "dense"'):
        build(ModelConfig(method="sortpool", hidden=8, backend="dense"), 3, 2)


@pytest.mark.parametrize("options", CONFIGS, ids=lambda o: ",".join(map(str, o.values())))
def test_a_step_on_another_device_mixes_no_devices_and_waits_for_nothing(options):
    """On torch's meta device values cannot be read, and a tensor left on the CPU is an error."""
    config = ModelConfig(hidden=8, backend="dense", attention_dropout=0.2, **options)
    model = build(config, 3, 2, seed=0, edge_channels=2).to("meta").train()
    ints = torch.zeros(80, dtype=torch.int64, device="meta")
    edge_attr = torch.zeros(80, 2, device="meta") if "edge_attr" in model.reads else None
    x, graph = pad(torch.zeros(40, 3, device="meta"), ints[:5], ints[:41], ints, None, edge_attr, nodes=12)
    logits = model.padded(x, graph)
    assert (logits.device.type, tuple(logits.shape)) == ("meta", (4, 2))
    torch.nn.functional.cross_entropy(logits, ints[:4]).backward()
    torch.optim.Adam(model.parameters()).step()
    with pytest.raises(RuntimeError):  # so that the test can fail
        logits + torch.zeros(4, 2)
    with pytest.raises(RuntimeError):
        logits.sum().item()
