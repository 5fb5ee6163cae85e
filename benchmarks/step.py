"""A whole training step (forward, backward, Adam) of the three-level ASAP network, beside its peers and its floor.

    python -m benchmarks.step [--data-root FOLDER] [--names PROTEINS,NCI1,DD] [--threads 1,2] [--rounds 15]

Authors' settings and real batches. Sides: asapool fused under each semantics, asapool reference and dense,
torch_geometric's layers as users write them, the same with our pooling in place of theirs ("drop-in") and with pooled
graphs that are given, torch-geometric-pool's layers likewise, and only the dense matrix products of the same step. All
take turns within one run. Writes benchmarks/results/step.json.

asapool and torch_geometric have the same weights, and these stay as they are: a network that learns keeps nodes with
more or fewer edges between them, and then one side would do more than another. Before timing, one pooling of both is
compared number by number, and the edges of all levels are counted.

torch-geometric-pool is left out where it is not installed. Its pooled edges are those among the kept nodes, not SᵀAS:
it does less, and cannot be compared number by number. It is in no extra of ours because it needs torch-scatter, which
comes as source, needs g++ and the torch that is there, and takes minutes to compile:

    pip install setuptools wheel && pip install --no-build-isolation -c constraints.txt torch-geometric-pool

How far a step is from its floor depends on how fast the processor multiplies. MKL_ENABLE_INSTRUCTIONS=AVX2 in the
environment holds torch's products to what processors without AVX-512 have; what is measured so goes to a file of its
own, step-avx2.json.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import ASAPooling as PyGPooling
from torch_geometric.nn import GCNConv

from asapool.data import Batch, load
from asapool.models import GraphClassifier, ModelConfig, build
from asapool.nn import ASAPooling
from asapool.nn.step import Pooled
from benchmarks.measuring import in_turns, machine, per_data_set, spread, write
from benchmarks.networks import (
    SETTINGS,
    DropInNetwork,
    PyGNetwork,
    RepeatedPooling,
    Setting,
    TGPNetwork,
    floor,
    training_step,
)

TGP = "torch-geometric-pool"


class Work(NamedTuple):
    """Nodes at every level and after the last, and edges at every level but for loops."""

    nodes: list[int]
    edges: list[int]


def assert_equal(batch: Batch, F_in: int = 32) -> None:
    """One pooling with the same weights gives the same numbers on this batch, so both sides do the same work."""
    torch.manual_seed(0)
    theirs = PyGPooling(F_in, 0.5, GNN=GCNConv).eval()
    theirs.select.weight.data.abs_()
    ours = ASAPooling(F_in, 0.5, GNN=GCNConv, semantics="pyg").eval()
    ours.load_state_dict(theirs.state_dict())
    x, ones = torch.randn(len(batch.x), F_in), torch.ones(batch.col.numel())
    with torch.no_grad():
        got, expected = ours(x, batch.edge_index, ones, batch.batch), theirs(x, batch.edge_index, ones, batch.batch)
    torch.testing.assert_close(got.x.sum(0), expected[0].sum(0), rtol=1e-3, atol=1e-2)
    same = got.perm == expected[4]  # like nodes are equally fit, and torch_geometric breaks ties anyhow
    assert same.float().mean() > 0.9
    torch.testing.assert_close(got.x[same], expected[0][same], rtol=1e-4, atol=1e-4)
    assert abs(got.edge_index.size(1) - expected[1].size(1)) <= 0.02 * expected[1].size(1)


def our_network(batch: Batch, setting: Setting, **options: Any) -> GraphClassifier:
    """Ours, with the weights of torch_geometric's network."""
    config = ModelConfig(method="asap", hidden=setting.hidden, attention_dropout=setting.dropout, **options)
    model, twin = build(config, batch.x.size(1), 2, seed=0), pyg_network(batch, setting)
    if config.semantics == "pyg":  # has a convolution inside only where it is asked for, as the other sides have
        for level in range(3):
            model.encoder.pools[level] = ASAPooling(
                setting.hidden, 0.5, GNN=GCNConv, dropout=setting.dropout, semantics="pyg"
            )
    for level in range(3):
        model.encoder.convs[level].conv.load_state_dict(twin.convs[level].state_dict())
        model.encoder.pools[level].load_state_dict(twin.pools[level].state_dict())
    return model


def our_side(batch: Batch, setting: Setting, **options: Any) -> tuple[Callable[[], None], Work]:
    """A training step of ours, and what there is to do."""
    model = our_network(batch, setting, **options)
    parts = (batch.x, batch.ptr, batch.rowptr, batch.col)
    with torch.no_grad():
        steps = list(model.hierarchy(*parts))
    nodes = [len(batch.x)] + [len(step.perm) for step in steps]
    edges = [int((step.before.pattern.row != step.before.pattern.col).sum()) for step in steps]
    return training_step(model, lambda: F.cross_entropy(model(*parts), batch.y)), Work(nodes, edges)


def pyg_network(batch: Batch, setting: Setting) -> PyGNetwork:
    """The network in torch_geometric's layers; a negative weight in `select` would keep the least fit."""
    torch.manual_seed(0)
    network = PyGNetwork(batch.x.size(1), setting)
    for pool in network.pools:
        pool.select.weight.data.abs_()
    return network


def drop_in(batch: Batch, setting: Setting) -> DropInNetwork:
    """torch_geometric's network around our pooling, with the weights of torch_geometric's."""
    network = DropInNetwork(batch.x.size(1), setting)
    network.load_state_dict(pyg_network(batch, setting).state_dict())
    return network


def convolutions_alone(batch: Batch, setting: Setting) -> Callable[[], None]:
    """A step of torch_geometric's convolutions and readouts on our pooled graphs, which are given."""
    network, pooled = drop_in(batch, setting), list[Pooled]()
    parts = (batch.x, batch.edge_index, batch.batch, len(batch.y))
    for pool in network.pools:
        pool.register_forward_hook(lambda _, args, out: pooled.append(out))
    with torch.no_grad():
        network.eval()(*parts)
    network.pools = nn.ModuleList(map(RepeatedPooling, pooled))
    return training_step(network.train(), lambda: F.cross_entropy(network(*parts), batch.y))


def their_side(model: nn.Module, batch: Batch) -> tuple[Callable[[], None], Work]:
    """A training step of another library's layers, and what there is to do."""
    parts = (batch.x, batch.edge_index, batch.batch, len(batch.y))
    nodes, edges = [], []

    def look(_: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        x, edge_index = (*args, *options.values())[:2]
        nodes.append(len(x))
        edges.append(int((edge_index[0] != edge_index[1]).sum()))

    hooks = [pool.register_forward_pre_hook(look, with_kwargs=True) for pool in model.pools]
    with torch.no_grad():
        model.eval()(*parts)
    for hook in hooks:
        hook.remove()
    return training_step(model.train(), lambda: F.cross_entropy(model(*parts), batch.y)), Work(nodes, edges)


@cache
def has_tgp() -> bool:
    """Whether torch-geometric-pool is installed; if not, a note is printed once."""
    installed = find_spec("tgp") is not None
    if not installed:
        print(f"{TGP} is not installed and left out; benchmarks/step.py says how to get it", file=sys.stderr)
    return installed


def sides(batch: Batch, setting: Setting) -> tuple[dict[str, Callable[[], None]], dict[str, Work]]:
    """All sides on one batch, and the work of each."""
    made = {
        "asapool paper": our_side(batch, setting, semantics="paper"),
        "asapool authors": our_side(batch, setting, semantics="authors"),
        "asapool pyg": our_side(batch, setting, semantics="pyg"),
        "asapool reference": our_side(batch, setting, semantics="paper", backend="reference"),
        "asapool dense": our_side(batch, setting, semantics="paper", backend="dense"),
        "asapool drop-in": their_side(drop_in(batch, setting), batch),
        "torch_geometric": their_side(pyg_network(batch, setting), batch),
    }
    remaining = convolutions_alone(batch, setting)
    if has_tgp():
        torch.manual_seed(0)
        made[TGP] = their_side(TGPNetwork(batch.x.size(1), setting), batch)
    ours, theirs = made["asapool pyg"][1].edges, made["torch_geometric"][1].edges
    assert all(abs(a - b) <= 0.05 * b for a, b in zip(ours, theirs, strict=True)), (ours, theirs)
    products = floor(batch, made["asapool paper"][1].nodes, setting, query=False)
    steps = {name: step for name, (step, _) in made.items()}
    steps |= {"matrix products": products, "drop-in without pooling": remaining}
    return steps, {name: work for name, (_, work) in made.items()}


def measure(name: str, threads: int, rounds: int, root: str | None) -> dict[str, Any]:
    """One data set at one number of threads."""
    torch.set_num_threads(threads)
    setting = SETTINGS[name]
    graphs = load(name, data_root=root)
    chosen = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))[: setting.batch]
    batch = graphs.batch(chosen.numpy())
    assert_equal(batch)
    steps, work = sides(batch, setting)
    seconds = in_turns(steps, rounds)
    ours = seconds["asapool paper"]
    return {
        "data": name,
        "threads": threads,
        "setting": vars(setting),
        "nodes": len(batch.x),
        "edges": {side: done.edges for side, done in work.items()},
        "milliseconds": {side: spread([1e3 * s for s in values]) for side, values in seconds.items()},
        "times_faster_than_pyg": faster_than("torch_geometric", seconds),
        **({"times_faster_than_tgp": faster_than(TGP, seconds)} if TGP in seconds else {}),
        "drop_in_times_faster_without_pooling": spread(
            [a / b for a, b in zip(seconds["torch_geometric"], seconds["drop-in without pooling"], strict=True)]
        ),
        "times_the_floor": spread([a / b for a, b in zip(ours, seconds["matrix products"], strict=True)]),
    }


def faster_than(other: str, seconds: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """How many times faster each of our sides is, round by round."""
    return {
        side: spread([a / b for a, b in zip(seconds[other], values, strict=True)])
        for side, values in seconds.items()
        if side.startswith("asapool")
    }


def main(arguments: list[str] | None = None) -> None:
    runs = per_data_set(__doc__, arguments, measure)
    versions = {TGP: version(TGP)} if has_tgp() else {}
    held_to = os.environ.get("MKL_ENABLE_INSTRUCTIONS", "").lower()
    name = f"step-{held_to}" if held_to else "step"
    write(name, {"what": "one training step: forward, backward, Adam", "runs": runs, "machine": machine() | versions})


if __name__ == "__main__":
    main()
