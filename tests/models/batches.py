"""Packed batches that the tests of the models draw from: x, ptr, rowptr, col, weight."""

from typing import NamedTuple

import torch
from torch import Tensor


class Packed(NamedTuple):
    """The fields of asapool.data.Batch that a model reads."""

    x: Tensor
    ptr: Tensor
    rowptr: Tensor
    col: Tensor
    weight: Tensor | None

    @property
    def edge_index(self):
        row = torch.repeat_interleave(self.rowptr.diff())
        return torch.stack([self.col, row])

    @property
    def batch(self):
        return torch.repeat_interleave(self.ptr.diff())


def pack(graphs):
    """A list of (x (n, F), A (n, n)), A_ij the weight of the edge j → i."""
    sizes = [len(x) for x, _ in graphs]
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    A = torch.block_diag(*[a for _, a in graphs]) if sum(sizes) else torch.zeros(0, 0, dtype=graphs[0][1].dtype)
    i, j = A.nonzero().t()
    rowptr = torch.cat([torch.zeros(1, dtype=torch.int64), (A != 0).sum(1).cumsum(0)])
    return Packed(torch.cat([x for x, _ in graphs]), ptr, rowptr, j.contiguous(), A[i, j])


def random_graph(g, n, F=4, weighted=False, density=0.4):
    there = (torch.rand(n, n, generator=g) < density).triu(1)
    W = torch.rand(n, n, generator=g, dtype=torch.float64) + 0.5 if weighted else torch.ones(n, n, dtype=torch.float64)
    A = (there * W).triu(1)
    return torch.randn(n, F, generator=g, dtype=torch.float64), A + A.t()


def random_graphs(seed, sizes, **options):
    g = torch.Generator().manual_seed(seed)
    return [random_graph(g, n, **options) for n in sizes]


def relabelled(graphs, seed):
    """The same graphs with their nodes in another order."""
    g = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(len(x), generator=g) for x, _ in graphs]
    return [(x[p], A[p][:, p]) for (x, A), p in zip(graphs, orders, strict=True)]
