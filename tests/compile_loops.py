"""Compile the loops of a dtype for the test processes; `make test` does it beside the linters.

python -m tests.compile_loops float32
"""

import sys

import numpy as np
import torch

from asapool.data import load
from asapool.models import ModelConfig, build
from asapool.nn import ASAPooling
from asapool.training.warmup import warm_up
from tests.graphs import random_batch

OPTIONS = (
    {},
    {"semantics": "authors"},
    {"semantics": "pyg"},
    {"attention": "s2t", "fitness": "gcn"},
    {"attention": "t2t", "fitness": "basic-leconv"},
    {"attention": "dynamic"},
    {"assign": "members"},
    {"max_neighbours": 2},
    {"hops": 2},
)


def operators(dtype: torch.dtype) -> None:
    """A step of every kind of the operator."""
    x, edge_index, weight, batch = random_batch(0, weighted=True, dtype=dtype)
    for options in OPTIONS:
        layer = ASAPooling(x.size(1), **options).to(dtype)
        z = x.clone().requires_grad_()
        out = layer(z, edge_index, weight, batch, edge_attr=weight[:, None])
        (out.x.sum() + out.edge_weight.sum() + out.edge_attr.sum()).backward()


def networks(dtype: torch.dtype) -> None:
    """A step of the two main networks."""
    graphs = load("synthetic:motifs?graphs=8&nodes=9")
    batch = graphs.batch(np.arange(8))
    for method in ("asap+", "asap"):
        model = build(ModelConfig(method=method, hidden=8), graphs.num_features, 2, seed=0).to(dtype)
        model(batch.x.to(dtype), batch.ptr, batch.rowptr, batch.col).sum().backward()


if __name__ == "__main__":
    chosen = getattr(torch, sys.argv[1])
    if chosen == torch.float32:
        warm_up()
    operators(chosen)
    networks(chosen)
