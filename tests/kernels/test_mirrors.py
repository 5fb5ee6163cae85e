"""Edges and their mirror images: entries by column, and gradients of pooled edges of undirected graphs."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from asapool import kernels
from asapool.kernels.fused.pattern import complete
from tests.graphs import random_batch


def structure(there):
    """A boolean matrix by rows, completed."""
    rows = csr_array(there)
    rowptr, col = (torch.from_numpy(a.astype(np.int64)) for a in (rows.indptr, rows.indices))
    return complete(rowptr, col)


def shares_memory(made):
    rowptr, col, _, rowptr_t, col_t, _ = made
    return rowptr_t.data_ptr() == rowptr.data_ptr() and col_t.data_ptr() == col.data_ptr()


def test_the_mirror_images_of_a_path_by_hand():
    """Rows 0: 0 1, 1: 0 1 2, 2: 1 2. Entry 1 (0→1) has entry 2 (1→0) as its image, and entry 4 (1→2) entry 5."""
    made = structure(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], bool))
    assert made[2].tolist() == [0, 3, 6]
    assert made[5].tolist() == [0, 2, 1, 3, 5, 4, 6]
    assert shares_memory(made)


@pytest.mark.parametrize("kind", ["undirected", "one edge short", "no loop", "directed"])
@pytest.mark.parametrize("seed", range(8))
def test_entries_by_column_are_those_of_the_transposed_matrix(kind, seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 12))
    there = draw.random((n, n)) < draw.random()
    if kind != "directed":
        there |= there.T
    there |= np.eye(n, dtype=bool)
    if kind == "one edge short":
        i = int(draw.integers(n))
        j = (i + 1) % n
        there[i, j], there[j, i] = False, True
    if kind == "no loop":
        there[seed % n, seed % n] = False
    rowptr, col, diag, rowptr_t, col_t, edge_t = (t.numpy() for t in structure(there))
    numbered = csr_array((np.arange(len(col)) + 1, col, rowptr)).T.tocsr()
    numbered.sort_indices()
    assert rowptr_t.tolist() == numbered.indptr.tolist()
    assert col_t.tolist() == numbered.indices.tolist()
    assert edge_t.tolist() == (numbered.data - 1).tolist()
    loops = np.flatnonzero(there.diagonal())
    assert diag[loops].tolist() == [e for e in range(len(col)) if col[e] == np.repeat(range(n), np.diff(rowptr))[e]]
    assert shares_memory(structure(there)) == (len(loops) == n and bool((there == there.T).all()))


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

    zero = torch.zeros(n, n, dtype=torch.float64)
    S_t = zero.index_put((P.row, P.col), alpha)[perm]  # a row for each kept cluster
    formula = (S_t @ zero.index_put((P.row, P.col), hat) @ S_t.t())[pooled.row, pooled.col]
    torch.testing.assert_close(value, formula)
    for one, other in zip(ours, torch.autograd.grad(formula, (alpha, hat), g), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
