"""Pooled edges of single graphs in dense rows, against the formula on dense matrices."""

import pytest
import torch

from asapool import kernels
from tests.graphs import random_batch


def formula(pattern, alpha, hat, perm):
    """Ŝᵀ Â Ŝ of the kept clusters."""
    n = pattern.diag.numel()
    zero = torch.zeros(n, n, dtype=alpha.dtype)
    S_t = zero.index_put((pattern.row, pattern.col), alpha)[perm]  # a row for each kept cluster
    return S_t @ zero.index_put((pattern.row, pattern.col), hat) @ S_t.t()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weights", ["symmetric", "one differs", "any"])
def test_gradients_of_pooled_edges_of_undirected_graphs(weights, seed):
    """Â as large as its mirror image needs half of the sums; against the formula on the dense matrix."""
    draw = torch.Generator().manual_seed(seed)
    x, edge_index, _, _ = random_batch(seed, graphs=1, most=9)
    n = len(x)
    ptr = torch.tensor([0, n])
    pattern, _ = kernels.pack(edge_index, ptr, n)
    P = pattern
    there = torch.zeros(n, n, dtype=torch.bool)
    there[P.row, P.col] = True
    A = torch.rand(n, n, generator=draw, dtype=torch.float64) - 0.3
    if weights != "any":
        A = A + A.t()
    if weights == "one differs":
        edge = (P.row != P.col).nonzero()[:1]
        A[P.row[edge], P.col[edge]] += 1e-6
    hat, alpha = A[P.row, P.col].requires_grad_(), torch.rand(P.col.numel(), generator=draw, dtype=torch.float64)
    alpha.requires_grad_()
    perm = torch.randperm(n, generator=draw)[: (n + 1) // 2]
    pooled, value = kernels.coarsen(P, alpha, P, hat, perm, torch.tensor([0, len(perm)]))
    g = torch.rand(value.numel(), generator=draw, dtype=torch.float64) - 0.5
    ours = torch.autograd.grad(value, (alpha, hat), g)

    expected = formula(P, alpha, hat, perm)[pooled.row, pooled.col]
    torch.testing.assert_close(value, expected)
    for one, other in zip(ours, torch.autograd.grad(expected, (alpha, hat), g), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [126, 130, 260, 400, 530])
def test_sets_of_clusters_of_one_to_five_words(n):
    """Entries of A^p are collected as bits, 64 to a word; here also with weights of 0, whose entries stay."""
    draw = torch.Generator().manual_seed(n)
    there = torch.rand(n, n, generator=draw) < 8 / n
    edge_index = (there | there.t()).fill_diagonal_(False).nonzero().t()
    ptr = torch.tensor([0, n])
    pattern, _ = kernels.pack(edge_index, ptr, n)
    E = pattern.col.numel()
    assert n * (n // 2) <= 48 * E  # the condition for dense rows
    alpha, hat = torch.rand(E, generator=draw), torch.randint(0, 2, (E,), generator=draw).float()
    perm = torch.randperm(n, generator=draw)[: n // 2]
    pooled, value = kernels.coarsen(pattern, alpha, pattern, hat, perm, torch.tensor([0, n // 2]))
    dense = torch.zeros(n // 2, n // 2).index_put((pooled.row, pooled.col), value)
    torch.testing.assert_close(dense, formula(pattern, alpha, hat, perm))
    reached = formula(pattern, torch.ones(E), torch.ones(E), perm) > 0
    assert torch.equal(torch.stack([pooled.row, pooled.col]), reached.nonzero().t())
