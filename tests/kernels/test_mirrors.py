"""Edges and their mirror images, the entries by column."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from asapool.kernels.fused.pattern import complete


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
