"""A^p = Ŝᵀ Â Ŝ of one graph, edge by edge with one dense row as scratch, for graphs that are large and sparse.

Row p of A^p is (α_p Â) Ŝ: first t = α_p Â over the nodes, then t Ŝ over the kept clusters. Backward, with G = ∂A^p, the
same walk gives ∂α_p = Â d for d = Σ_q G_pq α_q (and the transpose for the other α in the product), and
∂Â_jl = Σ_q r_q α_ql for r = Σ_p α_pj G_p. Each row writes its own results, so nothing is added across threads.

S, A and block as in coarsen_dense.py; T is Ŝ by node: row pointer, kept clusters ascending, memberships.
"""

from __future__ import annotations

import numpy as np

from asapool.kernels.fused.coarsen_dense import emit
from asapool.kernels.fused.compiled import helper


@helper
def by_node(S, N):  # type: ignore[no-untyped-def]
    """Ŝ by node: the kept clusters that contain a node, and its memberships."""
    rowptr, col, value, perm = S
    t_rowptr = np.zeros(N + 1, np.int64)
    for p in range(perm.size):
        for e in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            t_rowptr[col[e] + 1] += 1
    for i in range(N):
        t_rowptr[i + 1] += t_rowptr[i]
    place = t_rowptr[:N].copy()
    t_col, t_value = np.empty(t_rowptr[N], np.int64), np.empty(t_rowptr[N], value.dtype)
    for p in range(perm.size):
        for e in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            at = place[col[e]]
            t_col[at], t_value[at] = p, value[e]
            place[col[e]] = at + 1
    return t_rowptr, t_col, t_value


@helper
def grow(cols, values, size, more):  # type: ignore[no-untyped-def]
    """Larger arrays with the first `size` entries copied and space for `more`."""
    room = 2 * cols.size + more
    more_cols, more_values = np.empty(room, np.int64), np.empty(room, values.dtype)
    for e in range(size):  # copying slices takes seconds to compile
        more_cols[e], more_values[e] = cols[e], values[e]
    return more_cols, more_values


@helper
def thin(p, most, first, size, cols, values):  # type: ignore[no-untyped-def]
    """Keep the diagonal and the `most` strongest other entries of row p, first … size; returns the new size."""
    count = size - first
    if count <= most + 1:
        return size
    strength = np.empty(count - 1, values.dtype)
    n = 0
    for e in range(first, size):
        if cols[e] != p:  # A^p always has its diagonal
            strength[n] = values[e]
            n += 1
    least = np.partition(strength, n - most)[n - most]
    tied = most  # number of entries equal to `least` that are kept, those with the lowest columns
    for k in range(n):
        tied -= 1 if strength[k] > least else 0
    end = first
    for e in range(first, size):
        stays = cols[e] == p or values[e] > least
        if not stays and values[e] == least and tied > 0:
            stays = True
            tied -= 1
        if stays:
            cols[end], values[end] = cols[e], values[e]
            end += 1
    return end


@helper
def coarsen_sparse(start, stop, block, S, A, T, keep, scratch, cols, values, size, counts):  # type: ignore[no-untyped-def]
    """Append rows of A^p, columns ascending, after `size` entries; returns the arrays, which may grow, and the size.

    keep: if positive, only the diagonal and that many of the strongest other entries of each row are kept; None and 0
    keep all.

    Whether an entry is seen for the first time is unpredictable for the processor, so entries are recorded without a
    branch: nodes in a list whose end advances by new[·], which is 1 only the first time; clusters as bits, which come
    out sorted, if the columns of the row are close together, else in such a list, which is then sorted.
    """
    lo, _, k0, K = block
    rowptr, col, value, perm = S
    a_rowptr, a_col, a_value = A
    t_rowptr, t_col, t_value = T
    row, out, nodes, clusters, new_node, new_cluster, bits = scratch
    zero, one = value.dtype.type(0), np.uint64(1)
    for p in range(start, stop):
        n = 0
        for k in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            j, a = col[k], value[k]
            for e in range(a_rowptr[j], a_rowptr[j + 1]):
                m = a_col[e] - lo
                nodes[n] = m
                n += new_node[m]
                new_node[m] = 0
                row[m] += a * a_value[e]
        low, high, walks = K, 0, 0
        for k in range(n):
            begin, end = t_rowptr[lo + nodes[k]], t_rowptr[lo + nodes[k] + 1]
            new_node[nodes[k]] = 1
            if end > begin:
                low, high, walks = min(low, t_col[begin] - k0), max(high, t_col[end - 1] - k0), walks + end - begin
        if size + min(walks, K) > cols.size:
            cols, values = grow(cols, values, size, min(walks, K))
        first = size
        if high - low < 64 * walks:
            for k in range(n):
                t = row[nodes[k]]
                row[nodes[k]] = zero
                for e in range(t_rowptr[lo + nodes[k]], t_rowptr[lo + nodes[k] + 1]):
                    q = t_col[e] - k0
                    bits[q >> 6] |= one << np.uint64(q & 63)
                    out[q] += t * t_value[e]
            size = emit(low >> 6, (high >> 6) + 1, k0, bits, out, cols, values, size)
            for word in range(low >> 6, (high >> 6) + 1):
                bits[word] = 0
        else:
            met = 0
            for k in range(n):
                t = row[nodes[k]]
                row[nodes[k]] = zero
                for e in range(t_rowptr[lo + nodes[k]], t_rowptr[lo + nodes[k] + 1]):
                    q = t_col[e] - k0
                    clusters[met] = q
                    met += new_cluster[q]
                    new_cluster[q] = 0
                    out[q] += t * t_value[e]
            ordered = np.sort(clusters[:met])
            for k in range(met):
                q = ordered[k]
                cols[size], values[size] = k0 + q, out[q]
                size += 1
                new_cluster[q] = 1
        for e in range(first, size):
            out[cols[e] - k0] = zero
        if keep is not None:  # noqa: SIM102 (for None, which is another numba type, `thin` is not compiled)
            if keep > 0:
                size = thin(p, keep, first, size, cols, values)
        counts[p] = size - first
    return cols, values, size


@helper
def alpha_backward(start, stop, block, S, A, G, d, dalpha):  # type: ignore[no-untyped-def]
    """∂α_pj += Σ_l Â_jl d_l + Â_lj d'_l with d = Σ_q G_pq α_q and d' = Σ_q G_qp α_q.

    A and G have the value of each entry and of its mirror image.
    """
    lo, n, _, _ = block
    rowptr, col, value, perm = S
    a_rowptr, a_col, a_value, a_mirror = A
    g_rowptr, g_col, g_value, g_mirror = G
    zero = value.dtype.type(0)
    for p in range(start, stop):
        low, high = n, 0
        for e in range(g_rowptr[p], g_rowptr[p + 1]):
            q, g, g_ = perm[g_col[e]], g_value[e], g_mirror[e]
            begin, end = rowptr[q], rowptr[q + 1]
            low, high = min(low, col[begin] - lo), max(high, col[end - 1] - lo)
            for k in range(begin, end):
                m, a = col[k] - lo, value[k]
                d[m, 0] += g * a
                d[m, 1] += g_ * a
        for k in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            j, total = col[k], zero
            for e in range(a_rowptr[j], a_rowptr[j + 1]):
                m = a_col[e] - lo
                total += a_value[e] * d[m, 0] + a_mirror[e] * d[m, 1]
            dalpha[k] += total
        if high - low < 64 * (g_rowptr[p + 1] - g_rowptr[p]):  # zeroing the range is cheaper than walking again
            for m in range(low, high + 1):
                d[m, 0], d[m, 1] = zero, zero
        else:
            for e in range(g_rowptr[p], g_rowptr[p + 1]):
                q = perm[g_col[e]]
                for k in range(rowptr[q], rowptr[q + 1]):
                    d[col[k] - lo, 0], d[col[k] - lo, 1] = zero, zero


@helper
def hat_backward(start, stop, block, A, T, G, r, dhat):  # type: ignore[no-untyped-def]
    """∂Â_jl = Σ_q r_q α_ql with r = Σ_p α_pj G_p."""
    _, _, k0, K = block
    a_rowptr, a_col, _ = A
    t_rowptr, t_col, t_value = T
    g_rowptr, g_col, g_value = G
    zero = g_value.dtype.type(0)
    for j in range(start, stop):
        low, high, steps = K, -1, 0
        for k in range(t_rowptr[j], t_rowptr[j + 1]):
            p, a = t_col[k], t_value[k]
            begin, end = g_rowptr[p], g_rowptr[p + 1]
            low, high, steps = min(low, g_col[begin] - k0), max(high, g_col[end - 1] - k0), steps + end - begin
            for e in range(begin, end):
                r[g_col[e] - k0] += a * g_value[e]
        for e in range(a_rowptr[j], a_rowptr[j + 1]):
            total = zero
            for k in range(t_rowptr[a_col[e]], t_rowptr[a_col[e] + 1]):
                total += r[t_col[k] - k0] * t_value[k]
            dhat[e] = total
        if high - low < 8 * steps:
            for q in range(low, high + 1):
                r[q] = zero
        else:
            for k in range(t_rowptr[j], t_rowptr[j + 1]):
                for e in range(g_rowptr[t_col[k]], g_rowptr[t_col[k] + 1]):
                    r[g_col[e] - k0] = zero
