"""How fast a mini-batch is cut from packed arrays, beside PyG's DataLoader on the same graphs in the same order.

    python -m benchmarks.batching [--data-root FOLDER] [--name NCI1] [--batch 128] [--rounds 9]

Both sides give the same batches (asserted first), take turns within one run, and use one thread.
Writes benchmarks/results/batching.json.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from torch_geometric.loader import DataLoader

from asapool.data import GraphSet, load
from benchmarks.measuring import data_root, machine, spread, timed, write


def assert_same(graphs: GraphSet, chosen: Any, theirs: Any) -> None:
    """Our batch is theirs: features, labels, graph of each node, and the set of edges."""
    ours = graphs.batch(chosen)
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.batch, theirs.batch)
    assert torch.equal(ours.ptr, theirs.ptr)
    N = len(ours.x)
    edges = [(index[1] * N + index[0]).sort().values for index in (ours.edge_index, theirs.edge_index)]
    assert torch.equal(*edges)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", default=None)
    parser.add_argument("--name", default="NCI1")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    torch.set_num_threads(1)
    graphs = load(args.name, data_root=data_root(args.data_root))
    objects = list(graphs)
    orders = [np.random.default_rng(seed).permutation(len(graphs)) for seed in range(args.rounds)]

    def batches(order: Any) -> list[Any]:
        return [order[k : k + args.batch] for k in range(0, len(order), args.batch)]

    def pyg_epoch(order: Any) -> None:
        for _ in DataLoader(objects, batch_size=args.batch, sampler=order.tolist()):
            pass

    def our_epoch(order: Any) -> None:
        for chosen in batches(order):
            graphs.batch(chosen)

    first = DataLoader(objects, batch_size=args.batch, sampler=orders[0].tolist())
    for chosen, theirs in zip(batches(orders[0]), first, strict=True):
        assert_same(graphs, chosen, theirs)  # also the warm-up of both
    ours, pyg = [], []
    for order in orders:  # an epoch each, taking turns, so that a busy moment of the machine meets both
        pyg.append(timed(lambda: pyg_epoch(order)))  # noqa: B023, called at once
        ours.append(timed(lambda: our_epoch(order)))  # noqa: B023
    ratios = [a / b for a, b in zip(pyg, ours, strict=True)]
    write(
        "batching",
        {
            "what": f"seconds per epoch of {args.name}, batch {args.batch}, shuffled",
            "asapool": spread(ours),
            "pyg_dataloader": spread(pyg),
            "times_faster": spread(ratios),
            "batches_per_epoch": len(batches(orders[0])),
            "machine": machine(),
        },
    )


if __name__ == "__main__":
    main()
