"""Edges of the pooled graph: A^p = Ŝᵀ Â Ŝ row by row, with one dense row at hand instead of a dense matrix.

Row p of A^p is (α_p Â) Ŝ: first t = α_p Â over the nodes, then t Ŝ over the kept clusters. Backward, with G = ∂A^p and every
matrix by rows, the same walk gives ∂α_p = Â d for d = Σ_q G_pq α_q (and the transposed for α's other place in the
product), and ∂Â_jl = Σ_q r_q α_ql for r = Σ_p α_pj G_p. Each row writes its own results, so nothing is added across threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, sweep
from asapool.kernels.fused.operation import differentiable, empty, register
from asapool.kernels.fused.pattern import Six, complete, fake_structure, rows_from
from asapool.kernels.graph import Pattern
from asapool.kernels.reference.coarsen import strongest

__all__ = ["coarsen", "induce", "strongest"]


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
    """Rows of Ŝᵀ Â Ŝ, columns ascending: S is Ŝ by cluster, T by node, A is Â by row."""
    s_rowptr, s_col, s_value = S
    a_rowptr, a_col, a_value = A
    t_rowptr, t_col, t_value = T
    N, K = a_rowptr.size - 1, s_rowptr.size - 1
    row, out = np.zeros(N, s_value.dtype), np.zeros(K, s_value.dtype)
    in_row, in_out = np.zeros(N, np.bool_), np.zeros(K, np.bool_)
    nodes, clusters = np.empty(N, np.int64), np.empty(K, np.int64)
    cols, values = np.empty(16 + 8 * (stop - start), np.int64), np.empty(16 + 8 * (stop - start), s_value.dtype)
    size = 0
    for p in range(start, stop):
        n = 0
        for k in range(s_rowptr[p], s_rowptr[p + 1]):
            j, a = s_col[k], s_value[k]
            for e in range(a_rowptr[j], a_rowptr[j + 1]):
                m = a_col[e]
                if not in_row[m]:
                    in_row[m] = True
                    nodes[n] = m
                    n += 1
                row[m] += a * a_value[e]
        found, low, high = 0, K, -1
        for k in range(n):
            m = nodes[k]
            t = row[m]
            row[m], in_row[m] = 0, False
            for e in range(t_rowptr[m], t_rowptr[m + 1]):
                q = t_col[e]
                if not in_out[q]:
                    in_out[q] = True
                    clusters[found] = q
                    found += 1
                    low, high = min(low, q), max(high, q)
                out[q] += t * t_value[e]
        if size + found > cols.size:
            wider_cols, wider_values = np.empty(2 * (size + found), np.int64), np.empty(2 * (size + found), out.dtype)
            wider_cols[:size], wider_values[:size] = cols[:size], values[:size]
            cols, values = wider_cols, wider_values
        if high - low < 4 * found:  # nearly full: walking over the gaps is cheaper than sorting
            for q in range(low, high + 1):
                if in_out[q]:
                    cols[size], values[size] = q, out[q]
                    size += 1
                    out[q], in_out[q] = 0, False
        else:
            ordered = np.sort(clusters[:found])
            for k in range(found):
                q = ordered[k]
                cols[size], values[size] = q, out[q]
                size += 1
                out[q], in_out[q] = 0, False
        counts[p] = found
    return cols[:size].copy(), values[:size].copy()


@Loop
def _alpha_rows(start, stop, S, A, G, ds):  # type: ignore[no-untyped-def]
    """ds_pj += Σ_l Â_jl d_l with d = Σ_q G_pq α_q."""
    s_rowptr, s_col, s_value = S
    a_rowptr, a_col, a_value = A
    g_rowptr, g_col, g_value = G
    d, nodes = np.zeros(a_rowptr.size - 1, s_value.dtype), np.empty(a_rowptr.size - 1, np.int64)
    touched = np.zeros(a_rowptr.size - 1, np.bool_)
    for p in range(start, stop):
        n = 0
        for e in range(g_rowptr[p], g_rowptr[p + 1]):
            q, g = g_col[e], g_value[e]
            for k in range(s_rowptr[q], s_rowptr[q + 1]):
                m = s_col[k]
                if not touched[m]:
                    touched[m] = True
                    nodes[n] = m
                    n += 1
                d[m] += g * s_value[k]
        for k in range(s_rowptr[p], s_rowptr[p + 1]):
            j = s_col[k]
            total = s_value.dtype.type(0)
            for e in range(a_rowptr[j], a_rowptr[j + 1]):
                total += a_value[e] * d[a_col[e]]
            ds[k] += total
        for k in range(n):
            d[nodes[k]], touched[nodes[k]] = 0, False


@Loop
def _hat_rows(start, stop, rowptr, col, T, G, dhat):  # type: ignore[no-untyped-def]
    """∂Â_jl = Σ_q r_q α_ql with r = Σ_p α_pj G_p."""
    t_rowptr, t_col, t_value = T
    g_rowptr, g_col, g_value = G
    K = g_rowptr.size - 1
    r, clusters, touched = np.zeros(K, g_value.dtype), np.empty(K, np.int64), np.zeros(K, np.bool_)
    for j in range(start, stop):
        n = 0
        for k in range(t_rowptr[j], t_rowptr[j + 1]):
            p, a = t_col[k], t_value[k]
            for e in range(g_rowptr[p], g_rowptr[p + 1]):
                q = g_col[e]
                if not touched[q]:
                    touched[q] = True
                    clusters[n] = q
                    n += 1
                r[q] += a * g_value[e]
        for e in range(rowptr[j], rowptr[j + 1]):
            total = g_value.dtype.type(0)
            for k in range(t_rowptr[col[e]], t_rowptr[col[e] + 1]):
                total += r[t_col[k]] * t_value[k]
            dhat[e] = total
        for k in range(n):
            r[clusters[k]], touched[clusters[k]] = 0, False


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


def _views(rowptr: Tensor, col: Tensor, alpha: Tensor, perm: Tensor) -> tuple[Any, Any, Tensor]:
    """Ŝ by cluster and by node, as arrays, and the entries of S it consists of."""
    K, N = perm.numel(), rowptr.numel() - 1
    s_rowptr, s_edge = rowptr.new_zeros(K + 1), torch.empty_like(col)
    s_col, s_value = _kept_rows(*(t.numpy() for t in (rowptr, col, alpha, perm, s_rowptr, s_edge)))
    S = (s_rowptr.numpy(), s_col, s_value)
    return S, _by_node(*S, N), s_edge[: s_col.size]


def _forward(
    c_rowptr: Tensor, c_col: Tensor, alpha: Tensor, rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor,
    edge_t: Tensor, hat: Tensor, perm: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    alpha, hat = alpha.detach().contiguous(), hat.detach().contiguous()
    S, T, _ = _views(c_rowptr, c_col, alpha, perm)
    counts = torch.empty_like(perm)
    A = (rowptr.numpy(), col.numpy(), hat.numpy())
    pieces = sweep(_coarsen_rows, perm.numel(), 20 * col.numel(), S, A, T, counts.numpy())
    values = [torch.from_numpy(v) for _, v in pieces]
    weight = torch.cat(values) if len(values) > 1 else values[0] if values else alpha.new_empty(0)
    return (*complete(*rows_from(counts, [c for c, _ in pieces])), weight)


def _backward(
    g: Tensor, c_rowptr: Tensor, c_col: Tensor, alpha: Tensor, rowptr: Tensor, col: Tensor, rowptr_t: Tensor,
    col_t: Tensor, edge_t: Tensor, hat: Tensor, perm: Tensor, p_rowptr: Tensor, p_col: Tensor, p_rowptr_t: Tensor,
    p_col_t: Tensor, p_edge_t: Tensor, need: list[bool],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    alpha, hat = alpha.detach().contiguous(), hat.detach().contiguous()
    S, T, s_edge = _views(c_rowptr, c_col, alpha, perm)
    work = 20 * p_col.numel()
    G = (p_rowptr.numpy(), p_col.numpy(), g.numpy())
    dalpha, dhat = empty(alpha), empty(hat)
    if need[0]:
        ds = np.zeros_like(S[2])
        A = (rowptr.numpy(), col.numpy(), hat.numpy())
        A_t = (rowptr_t.numpy(), col_t.numpy(), hat[edge_t].numpy())
        G_t = (p_rowptr_t.numpy(), p_col_t.numpy(), g[p_edge_t].numpy())
        sweep(_alpha_rows, perm.numel(), work, S, A, G, ds)
        sweep(_alpha_rows, perm.numel(), work, S, A_t, G_t, ds)
        dalpha = torch.zeros_like(alpha).index_copy_(0, s_edge, torch.from_numpy(ds))
    if need[1]:
        dhat = torch.empty_like(hat)
        sweep(_hat_rows, rowptr.numel() - 1, work, rowptr.numpy(), col.numpy(), T, G, dhat.numpy())
    return dalpha, dhat


_coarsen_op = differentiable(
    "coarsen",
    forward=_forward,
    fake=lambda c_rowptr, c_col, alpha, rowptr, col, rowptr_t, col_t, edge_t, hat, perm: _fake(perm, alpha),
    backward=_backward,
    backward_fake=lambda g, c_rowptr, c_col, alpha, rowptr, col, rowptr_t, col_t, edge_t, hat, *rest: (
        torch.empty_like(alpha) if rest[-1][0] else empty(alpha),
        torch.empty_like(hat) if rest[-1][1] else empty(hat),
    ),
    wrt=(2, 8),
    saves=lambda inputs, out: (*inputs, out[0], out[1], out[3], out[4], out[5]),
)


def _fake(perm: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    six = fake_structure(perm.numel(), perm)
    return (*six, torch.empty_like(six[1], dtype=alpha.dtype))


def coarsen(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, hat: Tensor, perm: Tensor, ptr: Tensor
) -> tuple[Pattern, Tensor]:
    """As reference.coarsen."""
    _, rowptr, col, _, rowptr_t, col_t, edge_t = pattern
    *six, weight = _coarsen_op(
        clusters.rowptr, clusters.col, alpha, rowptr, col, rowptr_t, col_t, edge_t, hat, perm
    )
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


_induce_op = register("induce", _induce, _fake_induce)


def induce(pattern: Pattern, weight: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """As reference.induce."""
    *six, source = _induce_op(pattern.rowptr, pattern.col, perm)
    return Pattern(ptr, *six), weight[source]
