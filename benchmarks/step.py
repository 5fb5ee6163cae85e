"""A whole training step (forward, backward, Adam) of the three-level ASAP network, beside its peers and its floor.

    python -m benchmarks.step [--data-root FOLDER] [--names PROTEINS,NCI1,DD] [--threads 1,2] [--rounds 15]

Authors' settings and real batches. Sides: asapool fused under each semantics, asapool reference, torch_geometric's
layers as users write them, torch-geometric-pool's likewise, and only the dense matrix products of the same step. Before
timing, one pooling of asapool and torch_geometric is compared with equal weights. All sides take turns within one run.
Writes benchmarks/results/step.json.

torch-geometric-pool is left out where it is not installed. Its pooled edges are those among the kept nodes, not SᵀAS:
it does less, and cannot be compared number by number. It is in no extra of ours because it needs torch-scatter, which
comes as source, needs g++ and the torch that is there, and takes five minutes of processor time to compile:

    pip install setuptools wheel && pip install --no-build-isolation -c constraints.txt torch-geometric-pool
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import ASAPooling as PyGPooling
from torch_geometric.nn import GCNConv

from asapool.data import Batch, load
from asapool.models import ModelConfig, build
from asapool.nn import ASAPooling
from benchmarks.measuring import in_turns, machine, per_data_set, spread, write
from benchmarks.networks import SETTINGS, PyGNetwork, Setting, TGPNetwork, floor, training_step

TGP = "torch-geometric-pool"


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


def our_side(batch: Batch, setting: Setting, **options: Any) -> tuple[Callable[[], None], list[int]]:
    """A training step of ours, and the nodes at each level."""
    config = ModelConfig(method="asap", hidden=setting.hidden, attention_dropout=setting.dropout, **options)
    model = build(config, batch.x.size(1), 2, seed=0)
    parts = (batch.x, batch.ptr, batch.rowptr, batch.col)
    sizes = [len(batch.x)] + [len(step.perm) for step in model.hierarchy(*parts)]
    return training_step(model, lambda: F.cross_entropy(model(*parts), batch.y), setting.lr), sizes


def their_side(network: type[nn.Module], batch: Batch, setting: Setting) -> Callable[[], None]:
    """A training step of another library's layers."""
    torch.manual_seed(0)
    model = network(batch.x.size(1), setting)
    parts = (batch.x, batch.edge_index, batch.batch, len(batch.y))
    return training_step(model, lambda: F.cross_entropy(model(*parts), batch.y), setting.lr)


@cache
def has_tgp() -> bool:
    """Whether torch-geometric-pool is installed; if not, that is said once."""
    there = find_spec("tgp") is not None
    if not there:
        print(f"{TGP} is not installed and left out; benchmarks/step.py says how to get it", file=sys.stderr)
    return there


def sides(batch: Batch, setting: Setting) -> dict[str, Callable[[], None]]:
    """All sides on one batch."""
    paper, sizes = our_side(batch, setting, semantics="paper")
    return {
        "asapool paper": paper,
        "asapool authors": our_side(batch, setting, semantics="authors")[0],
        "asapool pyg": our_side(batch, setting, semantics="pyg")[0],
        "asapool reference": our_side(batch, setting, semantics="paper", backend="reference")[0],
        "torch_geometric": their_side(PyGNetwork, batch, setting),
        **({TGP: their_side(TGPNetwork, batch, setting)} if has_tgp() else {}),
        "matrix products": floor(batch, sizes, setting, query=False),
    }


def measure(name: str, threads: int, rounds: int, root: str | None) -> dict[str, Any]:
    """One data set at one number of threads."""
    torch.set_num_threads(threads)
    setting = SETTINGS[name]
    graphs = load(name, data_root=root)
    chosen = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))[: setting.batch]
    batch = graphs.batch(chosen.numpy())
    assert_equal(batch)
    seconds = in_turns(sides(batch, setting), rounds)
    ours = seconds["asapool paper"]
    return {
        "data": name,
        "threads": threads,
        "setting": vars(setting),
        "nodes": len(batch.x),
        "edges": batch.col.numel(),
        "milliseconds": {side: spread([1e3 * s for s in values]) for side, values in seconds.items()},
        "times_faster_than_pyg": faster_than("torch_geometric", seconds),
        **({"times_faster_than_tgp": faster_than(TGP, seconds)} if TGP in seconds else {}),
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
    write("step", {"what": "one training step: forward, backward, Adam", "runs": runs, "machine": machine() | versions})


if __name__ == "__main__":
    main()
