"""A^p = Ŝᵀ Â Ŝ of one graph in dense rows, for graphs that are small or dense.

T = Â Ŝ (n, k) and A^p = Ŝᵀ T are sums of whole rows, which are vectorised; a walk along the edges is not. Which entries
exist is computed separately, as 64 bits per word, since a weight may be zero.
Backward, with G = ∂A^p: ∂Ŝ = T Gᵀ + Âᵀ Ŝ G and ∂Â = (Ŝ G) Ŝᵀ, each only at the entries that exist.

S is Ŝ by cluster (row pointer, columns and values of all clusters, and the kept ones), A is Â by row (the same three),
block identifies the graph: its first node, its nodes, its first kept cluster, its kept clusters.
"""

from __future__ import annotations

import numpy as np

from asapool.kernels.fused.compiled import helper, inline
from asapool.kernels.fused.row_sums import match_row, match_rows, sum_row
from asapool.kernels.fused.vectors import at, first_bit, pointer

LANE = 16  # row widths are multiples of this, so that rows are whole vectors


@inline
def width(k):  # type: ignore[no-untyped-def]
    """k rounded up to whole lanes."""
    return (k + LANE - 1) // LANE * LANE


@helper
def is_dense(n, k, E):  # type: ignore[no-untyped-def]
    """Whether dense rows are faster: they cost one unit per cluster, a walk about 32 units per step."""
    return k * n <= 48 * E and n * width(k) <= max(2**20, 4 * E)


@inline
def emit(begin, end, base, bits, out, cols, values, size):  # type: ignore[no-untyped-def]
    """Append the entries of a row whose bits are set, columns ascending; returns the new size."""
    one = np.uint64(1)
    for word in range(begin, end):
        w = bits[word]
        while w:
            q = (word << 6) + first_bit(w)
            w &= w - one
            cols[size], values[size] = base + q, out[q]
            size += 1
    return size


@helper
def _spread(block, S, D):  # type: ignore[no-untyped-def]
    """D = Ŝ in dense rows, one per node."""
    lo, _, k0, k = block
    rowptr, col, value, perm = S
    D[:] = 0
    for p in range(k):
        i = perm[k0 + p]
        for e in range(rowptr[i], rowptr[i + 1]):
            D[col[e] - lo, p] = value[e]


@helper
def _unite(begin, end, col, first, sets, words, out):  # type: ignore[no-untyped-def]
    """out = the union of the sets of col(begin) … col(end), each of them so many words of 64 bits."""
    w, nothing = 0, np.uint64(0)
    while w + 2 < words:
        a, b, c = nothing, nothing, nothing
        for e in range(begin, end):
            m = (col[e] - first) * words + w
            a |= sets[m]
            b |= sets[m + 1]
            c |= sets[m + 2]
        out[w], out[w + 1], out[w + 2] = a, b, c
        w += 3
    while w < words:
        a = nothing
        for e in range(begin, end):
            a |= sets[(col[e] - first) * words + w]
        out[w] = a
        w += 1


@helper
def _meet(block, S, A, met, met_twice):  # type: ignore[no-untyped-def]
    """Bits of Ŝ by node, and of Â Ŝ."""
    lo, n, k0, k = block
    rowptr, col, _, perm = S
    a_rowptr, a_col, _ = A
    words, one = k // 64 + 1, np.uint64(1)
    met[: n * words] = 0
    for p in range(k):
        i, word, bit = perm[k0 + p], p >> 6, one << np.uint64(p & 63)
        for e in range(rowptr[i], rowptr[i + 1]):
            met[(col[e] - lo) * words + word] |= bit
    for j in range(n):
        begin, end = a_rowptr[lo + j], a_rowptr[lo + j + 1]
        _unite(begin, end, pointer(a_col), lo, pointer(met), words, at(pointer(met_twice), j * words))


@helper
def coarsen_dense(block, S, A, scratch, bit_scratch, cols, values, size, counts):  # type: ignore[no-untyped-def]
    """Append the graph's rows of A^p after `size` entries; returns the new size."""
    lo, n, k0, k = block
    rowptr, col, value, perm = S
    a_rowptr, a_col, a_value = A
    wide, words = width(k), k // 64 + 1
    D, T = scratch[0, : n * wide].reshape(n, wide), scratch[1, : n * wide].reshape(n, wide)
    row = scratch[2, :wide]
    met, met_twice, bits = bit_scratch[0], bit_scratch[1], bit_scratch[2]
    one, D_, T_ = value.dtype.type(1), pointer(D), pointer(T)
    _spread(block, S, D)
    _meet(block, S, A, met, met_twice)
    for j in range(n):
        begin, end, t = a_rowptr[lo + j], a_rowptr[lo + j + 1], at(T_, j * wide)
        sum_row(begin, end, pointer(a_col), None, pointer(a_value), lo, D_, wide, None, one, False, t)
    for p in range(k):
        begin, end = rowptr[perm[k0 + p]], rowptr[perm[k0 + p] + 1]
        sum_row(begin, end, pointer(col), None, pointer(value), lo, T_, wide, None, one, False, pointer(row))
        _unite(begin, end, pointer(col), lo, pointer(met_twice), words, pointer(bits))
        before = size
        size = emit(0, words, k0, bits, row, cols, values, size)
        counts[k0 + p] = size - before
    return size


@helper
def _is_symmetric(block, A, A_t):  # type: ignore[no-untyped-def]
    """Whether the graph's Â equals its transpose to rounding, as every A^p of an undirected graph does."""
    lo, n, _, _ = block
    rowptr, col, value = A
    t_rowptr, t_col, edge = A_t
    bound, differ = 64 * np.finfo(value.dtype).eps, 0
    for i in range(lo, lo + n):
        if rowptr[i] != t_rowptr[i] or rowptr[i + 1] != t_rowptr[i + 1]:
            return False
    for e in range(rowptr[lo], rowptr[lo + n]):
        a, b = value[e], value[edge[e]]
        differ |= (col[e] != t_col[e]) | (abs(a - b) > bound * (abs(a) + abs(b)))
    return differ == 0


@helper
def coarsen_dense_backward(block, S, S_t, A, A_t, G, scratch, need, dalpha, dhat):  # type: ignore[no-untyped-def]
    """Gradients of the graph's memberships and edges, each if needed. S_t, A_t: Ŝ and Â by column."""
    lo, n, k0, k = block
    rowptr, col, value, perm = S
    s_rowptr, s_col, s_value = S_t
    a_rowptr, a_col, a_value = A
    t_rowptr, t_col, t_edge = A_t
    g_rowptr, g_col, g_value = G
    wide, one = width(k), value.dtype.type(1)
    D, T, U = (
        scratch[0, : n * wide].reshape(n, wide),
        scratch[1, : n * wide].reshape(n, wide),
        scratch[2, : n * wide].reshape(n, wide),
    )
    G_, H_ = scratch[3, : k * wide].reshape(k, wide), scratch[4, : k * wide].reshape(k, wide)
    symmetric = need[0] and _is_symmetric(block, A, A_t)
    _spread(block, S, D)
    G_[:] = 0
    H_[:] = 0  # Gᵀ, or G + Gᵀ if U = T
    for p in range(k):
        for e in range(g_rowptr[k0 + p], g_rowptr[k0 + p + 1]):
            q, g = g_col[e] - k0, g_value[e]
            G_[p, q] = g
            H_[q, p] += g
            if symmetric:
                H_[p, q] += g
    D_, T_, U_ = pointer(D), pointer(T), pointer(U)
    if need[0]:
        for j in range(n):
            begin, end, t = a_rowptr[lo + j], a_rowptr[lo + j + 1], at(T_, j * wide)  # T = Â Ŝ
            sum_row(begin, end, pointer(a_col), None, pointer(a_value), lo, D_, wide, None, one, False, t)
            if symmetric:
                continue
            begin, end, u = t_rowptr[lo + j], t_rowptr[lo + j + 1], at(U_, j * wide)  # U = Âᵀ Ŝ
            sum_row(begin, end, pointer(t_col), pointer(t_edge), pointer(a_value), lo, D_, wide, None, one, False, u)
        for p in range(k):
            begin, end = rowptr[perm[k0 + p]], rowptr[perm[k0 + p] + 1]
            g, h = at(pointer(G_), p * wide), at(pointer(H_), p * wide)
            if symmetric:
                match_row(begin, end, pointer(col), lo, T_, wide, h, pointer(dalpha))
            else:
                match_rows(begin, end, pointer(col), lo, T_, U_, wide, g, h, pointer(dalpha))
    if need[1]:
        for j in range(n):
            begin, end, t = s_rowptr[lo + j], s_rowptr[lo + j + 1], at(T_, j * wide)  # T = Ŝ G
            sum_row(begin, end, pointer(s_col), None, pointer(s_value), k0, pointer(G_), wide, None, one, False, t)
            begin, end = a_rowptr[lo + j], a_rowptr[lo + j + 1]
            match_row(begin, end, pointer(a_col), lo, D_, wide, t, pointer(dhat))
