"""Edges of the pooled graph: A^p = Ŝᵀ Â Ŝ row by row, with one dense row at hand instead of a dense matrix.

Row p of A^p is (α_p Â) Ŝ: first t = α_p Â over the nodes, then t Ŝ over the kept clusters. Backward, with G = ∂A^p
and every matrix by rows, the same walk gives ∂α_p = Â d for d = Σ_q G_pq α_q (and the transposed for α's other place
in the product), and ∂Â_jl = Σ_q r_q α_ql for r = Σ_p α_pj G_p. Each row writes its own results, so nothing is added
across threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, sweep
from asapool.kernels.fused.operation import PARTS, differentiable, empty, register
from asapool.kernels.fused.pattern import SIX, Six, complete, fake_structure, rows_from
from asapool.kernels.graph import Array, Pattern, Rows
from asapool.kernels.reference.coarsen import strongest

__all__ = ["coarsen", "induce", "strongest"]

# which bit of a word is set, when just one is: the top six bits of bit × DE_BRUIJN differ for each
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
PLACE = np.empty(64, np.int64)
PLACE[[((1 << k) * int(DE_BRUIJN) % 2**64) >> 58 for k in range(64)]] = np.arange(64)


@Loop
def _kept_rows(rowptr, col, alpha, perm, s_rowptr, s_edge):  # type: ignore[no-untyped-def]
    """Ŝ by cluster: the rows `perm` of S, and where each entry came from."""
    n = 0
    for p in range(perm.size):
        for e in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            s_edge[n] = e
            n += 1
        s_rowptr[p + 1] = n
    s_col, s_value = np.empty(n, np.int64), np.empty(n, alpha.dtype)
    for k in range(n):
        s_col[k], s_value[k] = col[s_edge[k]], alpha[s_edge[k]]
    return s_col, s_value


@Loop
def _by_node(s_rowptr, s_col, s_value, N):  # type: ignore[no-untyped-def]
    """Ŝ by node: which kept clusters hold a node, and how strongly."""
    rowptr = np.zeros(N + 1, np.int64)
    for k in range(s_col.size):
        rowptr[s_col[k] + 1] += 1
    for i in range(N):
        rowptr[i + 1] += rowptr[i]
    place = rowptr[:N].copy()
    cluster, value = np.empty(s_col.size, np.int64), np.empty(s_col.size, s_value.dtype)
    for p in range(s_rowptr.size - 1):
        for k in range(s_rowptr[p], s_rowptr[p + 1]):
            at = place[s_col[k]]
            cluster[at], value[at] = p, s_value[k]
            place[s_col[k]] += 1
    return rowptr, cluster, value


@Loop
def _coarsen_rows(start, stop, S, A, T, counts):  # type: ignore[no-untyped-def]
    """Rows of Ŝᵀ Â Ŝ, columns ascending: S is Ŝ by cluster, T by node, A is Â by row.

    Whether an entry is met for the first time is a coin toss that no processor guesses, so what was met is written down
    without a branch: nodes in a list whose end moves on by new[·], which is 1 just once; clusters as bits, which come
    out sorted, where the row lies close together, and in such a list, to be sorted, where it does not.
    """
    s_rowptr, s_col, s_value = S
    a_rowptr, a_col, a_value = A
    t_rowptr, t_col, t_value = T
    N, K, zero, one = a_rowptr.size - 1, s_rowptr.size - 1, s_value.dtype.type(0), np.uint64(1)
    row, out = np.zeros(N, s_value.dtype), np.zeros(K, s_value.dtype)
    new_node, nodes = np.ones(N, np.uint8), np.empty(N + 1, np.int64)
    new_cluster, clusters, bits = np.ones(K, np.uint8), np.empty(K + 1, np.int64), np.zeros(K // 64 + 1, np.uint64)
    cols, values = np.empty(64 + 8 * (stop - start), np.int64), np.empty(64 + 8 * (stop - start), s_value.dtype)
    size = 0
    for p in range(start, stop):
        n = 0
        for k in range(s_rowptr[p], s_rowptr[p + 1]):
            j, a = s_col[k], s_value[k]
            for e in range(a_rowptr[j], a_rowptr[j + 1]):
                m = a_col[e]
                nodes[n] = m
                n += new_node[m]
                new_node[m] = 0
                row[m] += a * a_value[e]
        low, high, most = K, 0, 0
        for k in range(n):
            begin, end = t_rowptr[nodes[k]], t_rowptr[nodes[k] + 1]
            new_node[nodes[k]] = 1
            if end > begin:
                low, high, most = min(low, t_col[begin]), max(high, t_col[end - 1]), most + end - begin
        if size + min(most, K) >= cols.size:
            room = 2 * cols.size + min(most, K)
            more_cols, more_values = np.empty(room, np.int64), np.empty(room, out.dtype)
            more_cols[:size], more_values[:size] = cols[:size], values[:size]
            cols, values = more_cols, more_values
        first = size
        if high - low < 64 * most:
            for k in range(n):
                t = row[nodes[k]]
                row[nodes[k]] = zero
                for e in range(t_rowptr[nodes[k]], t_rowptr[nodes[k] + 1]):
                    q = t_col[e]
                    bits[q >> 6] |= one << np.uint64(q & 63)
                    out[q] += t * t_value[e]
            for word in range(low >> 6, (high >> 6) + 1):
                w = bits[word]
                bits[word] = 0
                while w:
                    lowest = w & (~w + one)
                    q = (word << 6) + PLACE[(lowest * DE_BRUIJN) >> np.uint64(58)]
                    w ^= lowest
                    cols[size], values[size] = q, out[q]
                    size += 1
                    out[q] = zero
        else:
            found = 0
            for k in range(n):
                t = row[nodes[k]]
                row[nodes[k]] = zero
                for e in range(t_rowptr[nodes[k]], t_rowptr[nodes[k] + 1]):
                    q = t_col[e]
                    clusters[found] = q
                    found += new_cluster[q]
                    new_cluster[q] = 0
                    out[q] += t * t_value[e]
            ordered = np.sort(clusters[:found])
            for k in range(found):
                q = ordered[k]
                cols[size], values[size] = q, out[q]
                size += 1
                out[q], new_cluster[q] = zero, 1
        counts[p] = size - first
    return cols[:size].copy(), values[:size].copy()


@Loop
def _alpha_rows(start, stop, S, A, G, ds):  # type: ignore[no-untyped-def]
    """ds_pj += Σ_l Â_jl d_l + Â_lj d'_l with d = Σ_q G_pq α_q and d' = Σ_q G_qp α_q.

    A and G carry the value of an entry and of the entry mirrored at the diagonal.
    """
    s_rowptr, s_col, s_value = S
    a_rowptr, a_col, a_value, a_mirror = A
    g_rowptr, g_col, g_value, g_mirror = G
    N, zero = a_rowptr.size - 1, s_value.dtype.type(0)
    d = np.zeros((N, 2), s_value.dtype)
    for p in range(start, stop):
        low, high = N, 0
        for e in range(g_rowptr[p], g_rowptr[p + 1]):
            q, g, g_ = g_col[e], g_value[e], g_mirror[e]
            begin, end = s_rowptr[q], s_rowptr[q + 1]
            low, high = min(low, s_col[begin]), max(high, s_col[end - 1])
            for k in range(begin, end):
                m, a = s_col[k], s_value[k]
                d[m, 0] += g * a
                d[m, 1] += g_ * a
        for k in range(s_rowptr[p], s_rowptr[p + 1]):
            j, total = s_col[k], zero
            for e in range(a_rowptr[j], a_rowptr[j + 1]):
                m = a_col[e]
                total += a_value[e] * d[m, 0] + a_mirror[e] * d[m, 1]
            ds[k] += total
        if high - low < 64 * (g_rowptr[p + 1] - g_rowptr[p]):  # wiping the stretch is cheaper than walking again
            for m in range(low, high + 1):
                d[m, 0], d[m, 1] = zero, zero
        else:
            for e in range(g_rowptr[p], g_rowptr[p + 1]):
                for k in range(s_rowptr[g_col[e]], s_rowptr[g_col[e] + 1]):
                    d[s_col[k], 0], d[s_col[k], 1] = zero, zero


@Loop
def _hat_rows(start, stop, rowptr, col, T, G, dhat):  # type: ignore[no-untyped-def]
    """∂Â_jl = Σ_q r_q α_ql with r = Σ_p α_pj G_p."""
    t_rowptr, t_col, t_value = T
    g_rowptr, g_col, g_value = G
    K, zero = g_rowptr.size - 1, g_value.dtype.type(0)
    r = np.zeros(K, g_value.dtype)
    for j in range(start, stop):
        low, high, steps = K, -1, 0
        for k in range(t_rowptr[j], t_rowptr[j + 1]):
            p, a = t_col[k], t_value[k]
            begin, end = g_rowptr[p], g_rowptr[p + 1]
            low, high, steps = min(low, g_col[begin]), max(high, g_col[end - 1]), steps + end - begin
            for e in range(begin, end):
                r[g_col[e]] += a * g_value[e]
        for e in range(rowptr[j], rowptr[j + 1]):
            total = zero
            for k in range(t_rowptr[col[e]], t_rowptr[col[e] + 1]):
                total += r[t_col[k]] * t_value[k]
            dhat[e] = total
        if high - low < 8 * steps:
            for q in range(low, high + 1):
                r[q] = zero
        else:
            for k in range(t_rowptr[j], t_rowptr[j + 1]):
                for e in range(g_rowptr[t_col[k]], g_rowptr[t_col[k] + 1]):
                    r[g_col[e]] = zero


@Loop
def _induce_rows(start, stop, rowptr, col, perm, place, counts):  # type: ignore[no-untyped-def]
    """Entries of the kept rows and columns, columns ascending in their new numbers, and where each one came from."""
    cols, source = np.empty(rowptr.size + col.size, np.int64), np.empty(rowptr.size + col.size, np.int64)
    size = 0
    for p in range(start, stop):
        begin = size
        for e in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            q = place[col[e]]
            if q >= 0:
                cols[size], source[size] = q, e
                size += 1
        order = np.argsort(cols[begin:size])
        cols[begin:size], source[begin:size] = cols[begin:size][order], source[begin:size][order]
        counts[p] = size - begin
    return cols[:size].copy(), source[:size].copy()


def _views(clusters: Rows, alpha: Tensor, perm: Tensor) -> tuple[Any, Any, Array]:
    """Ŝ by cluster and by node, and the entries of S it consists of."""
    s_rowptr, s_edge = np.zeros(perm.numel() + 1, np.int64), np.empty_like(clusters.col)
    s_col, s_value = _kept_rows(clusters.rowptr, clusters.col, alpha.numpy(), perm.numpy(), s_rowptr, s_edge)
    S = (s_rowptr, s_col, s_value)
    return S, _by_node(*S, clusters.rowptr.size - 1), s_edge[: s_col.size]


def _forward(
    clusters: Rows, edges: Rows, alpha: Tensor, hat: Tensor, perm: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    alpha, hat = alpha.detach().contiguous(), hat.detach().contiguous()
    S, T, _ = _views(clusters, alpha, perm)
    counts = torch.empty_like(perm)
    A = (edges.rowptr, edges.col, hat.numpy())
    pieces = sweep(_coarsen_rows, perm.numel(), 20 * hat.numel(), S, A, T, counts.numpy())
    values = [torch.from_numpy(v) for _, v in pieces]
    weight = torch.cat(values) if len(values) > 1 else values[0] if values else alpha.new_empty(0)
    return weight, *complete(*rows_from(counts, [c for c, _ in pieces]))


def _backward(
    clusters: Rows, edges: Rows, gradient: Tensor, alpha: Tensor, hat: Tensor, perm: Tensor, rowptr: Tensor,
    col: Tensor, rowptr_t: Tensor, col_t: Tensor, edge_t: Tensor, need: list[bool],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    alpha, hat_ = alpha.detach().contiguous(), hat.detach().contiguous().numpy()
    S, T, s_edge = _views(clusters, alpha, perm)
    pooled, g = Rows(*(t.numpy() for t in (rowptr, col, rowptr_t, col_t, edge_t))), gradient.numpy()
    work, dalpha, dhat = 40 * g.size, empty(alpha), empty(hat)
    if need[0]:
        ds = np.zeros_like(S[2])
        for A, G in _mirrored(edges, hat_, pooled, g):
            sweep(_alpha_rows, perm.numel(), work, S, A, G, ds)
        dalpha = torch.zeros_like(alpha)
        dalpha.numpy()[s_edge] = ds
    if need[1]:
        dhat = hat.new_empty(hat_.size)
        G3 = (pooled.rowptr, pooled.col, g)
        sweep(_hat_rows, edges.rowptr.size - 1, work, edges.rowptr, edges.col, T, G3, dhat.numpy())
    return dalpha, dhat


def _mirrored(edges: Rows, hat: Array, pooled: Rows, g: Array) -> list[tuple[Any, Any]]:
    """Â and G with their mirrored values: in one go where the structures are symmetric, else one after the other."""
    hat_t, g_t = hat[edges.edge_t], g[pooled.edge_t]
    if all(np.array_equal(P.rowptr, P.rowptr_t) and np.array_equal(P.col, P.col_t) for P in (edges, pooled)):
        return [((edges.rowptr, edges.col, hat, hat_t), (pooled.rowptr, pooled.col, g, g_t))]
    no_hat, no_g = np.zeros_like(hat), np.zeros_like(g)
    return [
        ((edges.rowptr, edges.col, hat, no_hat), (pooled.rowptr, pooled.col, g, no_g)),
        ((edges.rowptr_t, edges.col_t, hat_t, no_hat), (pooled.rowptr_t, pooled.col_t, g_t, no_g)),
    ]


def _fake(perm: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    six = fake_structure(perm.numel(), perm)
    return torch.empty_like(six[1], dtype=alpha.dtype), *six


_coarsen_op = differentiable(
    "coarsen",
    patterns=2,
    inputs="Tensor alpha, Tensor hat, Tensor perm",
    outputs=f"(Tensor, {SIX})",
    wrt=("alpha", "hat"),
    saved="Tensor alpha, Tensor hat, Tensor perm, " + ", ".join(f"Tensor {part}" for part in PARTS),
    saves=lambda inputs, out: (*inputs, out[1], out[2], out[4], out[5], out[6]),
    forward=_forward,
    fake=lambda c_col, col, alpha, hat, perm: _fake(perm, alpha),
    backward=_backward,
    backward_fake=lambda c_col, col, g, alpha, hat, perm, p_rowptr, p_col, p_rowptr_t, p_col_t, p_edge_t, need: (
        torch.empty_like(alpha) if need[0] else empty(alpha),
        torch.empty_like(hat) if need[1] else empty(hat),
    ),
)


def coarsen(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, hat: Tensor, perm: Tensor, ptr: Tensor
) -> tuple[Pattern, Tensor]:
    """As reference.coarsen."""
    weight, *six = _coarsen_op(clusters, pattern, alpha, hat, perm)
    return Pattern(ptr, *six), weight


def _induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    place = rowptr.new_full((rowptr.numel() - 1,), -1)
    place[perm] = torch.arange(perm.numel())
    counts = torch.empty_like(perm)
    arrays = (t.numpy() for t in (rowptr, col, perm, place, counts))
    pieces = sweep(_induce_rows, perm.numel(), 4 * col.numel(), *arrays)
    source = torch.cat([torch.from_numpy(s) for _, s in pieces]) if pieces else counts
    return (*complete(*rows_from(counts, [c for c, _ in pieces])), source)


def _fake_induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, ...]:
    six: Six = fake_structure(perm.numel(), perm)
    return (*six, torch.empty_like(six[1]))


_induce_op = register(
    "induce",
    _induce,
    _fake_induce,
    inputs="Tensor rowptr, Tensor col, Tensor perm",
    outputs=f"({SIX}, Tensor)",
)


def induce(pattern: Pattern, weight: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """As reference.induce."""
    *six, source = _induce_op(pattern.rowptr, pattern.col, perm)
    return Pattern(ptr, *six), weight[source]
