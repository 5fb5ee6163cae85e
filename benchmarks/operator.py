"""One pooling as a user of torch_geometric calls it (edge_index in, edge_index out), beside torch_geometric's.

    python -m benchmarks.operator [--data-root FOLDER] [--names PROTEINS,NCI1,DD] [--threads 1,2] [--rounds 15]

Hidden sizes are the authors'. Equality is asserted first (see benchmarks/step.py), sides take turns.
Writes benchmarks/results/operator.json.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.nn import ASAPooling as PyGPooling
from torch_geometric.nn import GCNConv

from asapool.data import load
from asapool.nn import ASAPooling
from benchmarks.measuring import in_turns, machine, per_data_set, spread, write
from benchmarks.networks import SETTINGS
from benchmarks.step import assert_equal


def measure(name: str, threads: int, rounds: int, root: str | None) -> dict[str, Any]:
    """Inference, and forward with backward, on one batch."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    setting, graphs = SETTINGS[name], load(name, data_root=root)
    chosen = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))[: setting.batch]
    batch = graphs.batch(chosen.numpy())
    assert_equal(batch)
    x, edge_index, graph = torch.randn(len(batch.x), setting.hidden), batch.edge_index, batch.batch
    layers = {
        "asapool": ASAPooling(setting.hidden),
        "asapool pyg": ASAPooling(setting.hidden, GNN=GCNConv, semantics="pyg"),
        "torch_geometric": PyGPooling(setting.hidden, GNN=GCNConv),
    }

    def inference(layer: torch.nn.Module) -> Callable[[], Any]:
        return torch.no_grad()(lambda: layer(x, edge_index, None, graph))

    def both_ways(layer: torch.nn.Module) -> Callable[[], Any]:
        z = x.clone().requires_grad_()
        return lambda: layer(z, edge_index, None, graph)[0].square().sum().backward()

    result: dict[str, Any] = {"data": name, "threads": threads, "channels": setting.hidden, "nodes": len(x)}
    for what, make in (("inference", inference), ("forward and backward", both_ways)):
        seconds = in_turns({side: make(layer) for side, layer in layers.items()}, rounds)
        result[what] = {
            "milliseconds": {side: spread([1e3 * s for s in values]) for side, values in seconds.items()},
            "times_faster_than_pyg": {
                side: spread([a / b for a, b in zip(seconds["torch_geometric"], values, strict=True)])
                for side, values in seconds.items()
            },
        }
    return result


def main(arguments: list[str] | None = None) -> None:
    runs = per_data_set(__doc__, arguments, measure)
    write("operator", {"what": "one ASAPooling called with edge_index", "runs": runs, "machine": machine()})


if __name__ == "__main__":
    main()
