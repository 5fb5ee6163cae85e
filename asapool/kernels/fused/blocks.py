"""A^p = Ŝᵀ Â Ŝ of one graph in dense rows: the way for graphs that are small or full.

T = Â Ŝ (n, k) and A^p = Ŝᵀ T are sums of whole rows, which a vector unit does eight numbers at a time; a walk along the
edges takes them one by one. Which entries exist is found beside it, 64 to a word, since a weight may be zero.
Backward, with G = ∂A^p: ∂Ŝ = T Gᵀ + Âᵀ Ŝ G and ∂Â = (Ŝ G) Ŝᵀ, each only at the entries that exist.

S is Ŝ by cluster (row pointer, columns and values of all clusters, and the kept ones), A is Â by row (the same three),
block says which graph: its first node, its nodes, its first kept cluster, its kept clusters.
"""

from __future__ import annotations

import numpy as np

from asapool.kernels.fused.compiled import lines, part

LANE = 32  # rows are this many numbers wide, or a multiple: no loop over them leaves a rest
# which bit of a word is set, when just one is: the top six bits of bit × DE_BRUIJN differ for each
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
PLACE = np.empty(64, np.int64)
PLACE[[((1 << k) * int(DE_BRUIJN) % 2**64) >> 58 for k in range(64)]] = np.arange(64)


@lines
def width(k):  # type: ignore[no-untyped-def]
    """k rounded up to whole lanes."""
    return (k + LANE - 1) // LANE * LANE


@lines
def emit(begin, end, base, bits, out, cols, values, size):  # type: ignore[no-untyped-def]
    """Write down the entries of a row whose bits are set, columns ascending; returns how many there are now."""
    one = np.uint64(1)
    for word in range(begin, end):
        w = bits[word]
        while w:
            lowest = w & (~w + one)
            q = (word << 6) + PLACE[(lowest * DE_BRUIJN) >> np.uint64(58)]
            w ^= lowest
            cols[size], values[size] = base + q, out[q]
            size += 1
    return size


@lines
def _add_rows(begin, end, col, value, first, X, total):  # type: ignore[no-untyped-def]
    """total += Σ_e value_e X_col(e)."""
    e = begin
    while e + 3 < end:  # four at a time: a quarter of the trips of the total through memory
        a, b, c, d = value[e], value[e + 1], value[e + 2], value[e + 3]
        x, y, z, u = X[col[e] - first], X[col[e + 1] - first], X[col[e + 2] - first], X[col[e + 3] - first]
        for q in range(total.size):
            total[q] += (a * x[q] + b * y[q]) + (c * z[q] + d * u[q])
        e += 4
    while e < end:
        a, x = value[e], X[col[e] - first]
        for q in range(total.size):
            total[q] += a * x[q]
        e += 1


@part
def _spread(block, S, D):  # type: ignore[no-untyped-def]
    """D = Ŝ in dense rows, one per node."""
    lo, _, k0, k = block
    rowptr, col, value, perm = S
    D[:] = 0
    for p in range(k):
        i = perm[k0 + p]
        for e in range(rowptr[i], rowptr[i + 1]):
            D[col[e] - lo, p] = value[e]


@part
def _meet(block, S, A, met, met_twice):  # type: ignore[no-untyped-def]
    """Bits of Ŝ by node, and of Â Ŝ."""
    lo, n, k0, k = block
    rowptr, col, _, perm = S
    a_rowptr, a_col, _ = A
    words, one = k // 64 + 1, np.uint64(1)
    met[: n * words] = 0
    met_twice[: n * words] = 0
    for p in range(k):
        i, word, bit = perm[k0 + p], p >> 6, one << np.uint64(p & 63)
        for e in range(rowptr[i], rowptr[i + 1]):
            met[(col[e] - lo) * words + word] |= bit
    for j in range(n):
        for e in range(a_rowptr[lo + j], a_rowptr[lo + j + 1]):
            m = (a_col[e] - lo) * words
            for w in range(words):
                met_twice[j * words + w] |= met[m + w]


@part
def block_rows(block, S, A, rooms, bit_rooms, cols, values, size, counts):  # type: ignore[no-untyped-def]
    """The graph's rows of A^p, written behind `size`; returns how many entries there are then."""
    lo, n, k0, k = block
    rowptr, col, value, perm = S
    a_rowptr, a_col, a_value = A
    wide, words = width(k), k // 64 + 1
    D, T, row = rooms[0, : n * wide].reshape(n, wide), rooms[1, : n * wide].reshape(n, wide), rooms[2, :wide]
    met, met_twice, bits = bit_rooms
    _spread(block, S, D)
    _meet(block, S, A, met, met_twice)
    T[:] = 0
    for j in range(n):
        _add_rows(a_rowptr[lo + j], a_rowptr[lo + j + 1], a_col, a_value, lo, D, T[j])
    for p in range(k):
        begin, end = rowptr[perm[k0 + p]], rowptr[perm[k0 + p] + 1]
        row[:] = 0
        _add_rows(begin, end, col, value, lo, T, row)
        bits[:words] = 0
        for e in range(begin, end):
            m = (col[e] - lo) * words
            for w in range(words):
                bits[w] |= met_twice[m + w]
        before = size
        size = emit(0, words, k0, bits, row, cols, values, size)
        counts[k0 + p] = size - before
    return size


@part
def unblock(block, S, A, G, rooms, need, dalpha, dhat):  # type: ignore[no-untyped-def]
    """Gradients of the graph's memberships and edges, each where need says so."""
    lo, n, k0, k = block
    rowptr, col, value, perm = S
    a_rowptr, a_col, a_value = A
    g_rowptr, g_col, g_value = G
    wide, zero = width(k), value.dtype.type(0)
    D, T, U = (
        rooms[0, : n * wide].reshape(n, wide),
        rooms[1, : n * wide].reshape(n, wide),
        rooms[2, : n * wide].reshape(n, wide),
    )
    G_, H_ = rooms[3, : k * wide].reshape(k, wide), rooms[4, : k * wide].reshape(k, wide)
    _spread(block, S, D)
    G_[:] = 0
    H_[:] = 0
    for p in range(k):
        for e in range(g_rowptr[k0 + p], g_rowptr[k0 + p + 1]):
            q = g_col[e] - k0
            G_[p, q], H_[q, p] = g_value[e], g_value[e]
    if need[0]:
        T[:] = 0
        U[:] = 0
        for j in range(n):
            t, d = T[j], D[j]
            for e in range(a_rowptr[lo + j], a_rowptr[lo + j + 1]):
                a, x, u = a_value[e], D[a_col[e] - lo], U[a_col[e] - lo]
                for q in range(wide):
                    t[q] += a * x[q]  # T = Â Ŝ
                    u[q] += a * d[q]  # U = Âᵀ Ŝ
        for p in range(k):
            g, h, i = G_[p], H_[p], perm[k0 + p]
            for e in range(rowptr[i], rowptr[i + 1]):
                t, u, total = T[col[e] - lo], U[col[e] - lo], zero
                for q in range(wide):
                    total += t[q] * g[q] + u[q] * h[q]
                dalpha[e] = total
    if need[1]:
        T[:] = 0
        for p in range(k):
            g, i = G_[p], perm[k0 + p]
            for e in range(rowptr[i], rowptr[i + 1]):
                a, t = value[e], T[col[e] - lo]
                for q in range(wide):
                    t[q] += a * g[q]  # T = Ŝ G
        for j in range(n):
            t = T[j]
            for e in range(a_rowptr[lo + j], a_rowptr[lo + j + 1]):
                d, total = D[a_col[e] - lo], zero
                for q in range(wide):
                    total += t[q] * d[q]
                dhat[e] = total
