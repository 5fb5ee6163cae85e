"""Memberships of nodes in clusters: maxima, softmax and dynamic scores wᵀσ(q_i + t_j), row by row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import BLOCK, Loop, lookup_loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, empty, fresh, fresh_like, scalar
from asapool.kernels.graph import Array, Pattern, Rows


@Loop
def _max_rows(start, stop, rowptr, col, x, m):  # type: ignore[no-untyped-def]
    """m_i = max_j x_j."""
    F = x.shape[1]
    for i in range(start, stop):
        m_i, j = m[i], col[rowptr[i]]
        for f in range(F):
            m_i[f] = x[j, f]
        for e in range(rowptr[i] + 1, rowptr[i + 1]):
            j = col[e]
            for f in range(F):
                v = x[j, f]
                m_i[f] = v if v > m_i[f] or v != v else m_i[f]  # NaN wins


@Loop
def _tie_shares(start, stop, rowptr, col, x, m, g, share):  # type: ignore[no-untyped-def]
    """g_i divided among the members that reach the maximum."""
    F, zero, one = x.shape[1], x.dtype.type(0), x.dtype.type(1)
    for i in range(start, stop):
        for f in range(F):
            share[i, f] = 0
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            for f in range(F):
                share[i, f] += one if x[j, f] == m[i, f] else zero
        for f in range(F):
            share[i, f] = g[i, f] / share[i, f]


@Loop
def _cluster_max_rows_backward(start, stop, rowptr_t, col_t, x, m, share, dx):  # type: ignore[no-untyped-def]
    """dx_j = Σ of the shares of the clusters in which j reaches the maximum."""
    F, zero = x.shape[1], x.dtype.type(0)
    for j in range(start, stop):
        for f in range(F):
            dx[j, f] = 0
        for e in range(rowptr_t[j], rowptr_t[j + 1]):
            i = col_t[e]
            for f in range(F):
                dx[j, f] += share[i, f] if x[j, f] == m[i, f] else zero


@lookup_loop
def _score_rows(start, stop, rowptr, col, query, token, slope, s):  # type: ignore[no-untyped-def]
    """s_ij = LeakyReLU(query_i + token_j), minus the maximum of the row."""
    for i in range(start, stop):
        q = query[i] if query.size else token.dtype.type(0)
        top = token.dtype.type(-np.inf)
        for e in range(rowptr[i], rowptr[i + 1]):
            v = q + token[col[e]]
            v = v if v > 0 else v * slope
            s[e] = v
            top = max(top, v)
        for e in range(rowptr[i], rowptr[i + 1]):
            s[e] -= top


@Loop
def _divide_rows(start, stop, rowptr, alpha):  # type: ignore[no-untyped-def]
    """Divide every row by its sum."""
    for i in range(start, stop):
        total = alpha.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            total += alpha[e]
        for e in range(rowptr[i], rowptr[i + 1]):
            alpha[e] /= total


@lookup_loop
def _softmax_rows_backward(start, stop, rowptr, col, query, token, slope, alpha, g, ds):  # type: ignore[no-untyped-def]
    """∂s_ij = α_ij (g_ij − Σ_k α_ik g_ik), times the slope of LeakyReLU."""
    for i in range(start, stop):
        mean = token.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            mean += alpha[e] * g[e]
        q = query[i] if query.size else token.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            bend = token.dtype.type(1) if q + token[col[e]] > 0 else slope
            ds[e] = alpha[e] * (g[e] - mean) * bend


@lookup_loop
def _add_rows(start, stop, rowptr, edge, value, total):  # type: ignore[no-untyped-def]
    """Sum of a value over each row; `edge` has the position of an entry's value (empty: its own)."""
    for i in range(start, stop):
        t = value.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            t += value[edge[e]] if edge.size else value[e]
        total[i] = t


def cluster_max_rows(rows: Rows, x: Tensor) -> Tensor:
    """m_i = max_{j∈c(i)} x_j of all rows."""
    x_ = array(x)
    m = fresh_like(x_)
    run_rows(_max_rows, x_.shape[0], rows.col.size * (x_.shape[1] + 40), rows.rowptr, rows.col, x_, m)
    return torch.from_numpy(m)


def cluster_max_backward(rows: Rows, g: Tensor, x: Tensor, m: Tensor, need: list[bool]) -> Tensor:
    """∂x from ∂m."""
    x_, m_ = array(x), array(m)
    share, dx, work = fresh_like(x_), fresh_like(x_), rows.col.size * (x_.shape[1] + 40)
    run_rows(_tie_shares, x_.shape[0], work, rows.rowptr, rows.col, x_, m_, g.numpy(), share)
    run_rows(_cluster_max_rows_backward, x_.shape[0], work, rows.rowptr_t, rows.col_t, x_, m_, share, dx)
    return torch.from_numpy(dx)


_cluster_max_op = differentiable(
    "cluster_max",
    patterns=1,
    inputs="Tensor x",
    wrt=("x",),
    saved="Tensor x, Tensor m",
    saves=lambda inputs, m: (*inputs, m),
    forward=cluster_max_rows,
    fake=lambda rows, x: torch.empty_like(x),
    backward=cluster_max_backward,
    backward_fake=lambda rows, g, x, m, need: torch.empty_like(x),
)


def cluster_max(clusters: Pattern, x: Tensor) -> Tensor:
    """As reference.cluster_max."""
    m: Tensor = _cluster_max_op(clusters, x)
    return m


def scores(rows: Rows, query: Tensor | None, token: Tensor, slope: float) -> Array:
    """exp(s_ij − max_j s_ij) of all rows: memberships before they are divided by their sum."""
    token_, e = array(token), fresh(rows.col.size, like=token)
    q = token_[:0] if query is None else array(query)
    run_rows(_score_rows, token_.size, 40 * e.size, rows.rowptr, rows.col, q, token_, scalar(slope, token), e)
    np.exp(e, out=e)  # numpy's exp is vectorised, that of a compiled loop is not
    return e


def divide_by_sums(rows: Rows, alpha: Array) -> Tensor:
    """Divide every row by its sum, in place."""
    run_rows(_divide_rows, rows.rowptr.size - 1, 25 * alpha.size, rows.rowptr, alpha)
    return torch.from_numpy(alpha)


def softmax_backward(rows: Rows, g: Tensor, alpha: Tensor) -> Array:
    """∂s_ij = α_ij (g_ij − Σ_k α_ik g_ik), for scores without an outer LeakyReLU."""
    a, N = array(alpha), rows.rowptr.size - 1
    ds, zeros = np.empty_like(a), np.zeros(N, a.dtype)
    arrays = (rows.rowptr, rows.col, a[:0], zeros, scalar(1.0, alpha), a, g.numpy(), ds)
    run_rows(_softmax_rows_backward, N, 50 * a.size, *arrays)
    return ds


def attend_rows(rows: Rows, query: Tensor | None, token: Tensor, slope: float) -> Tensor:
    """α of all rows."""
    return divide_by_sums(rows, scores(rows, query, token, slope))


def attend_backward(
    rows: Rows, g: Tensor, query: Tensor | None, token: Tensor, alpha: Tensor, slope: float, need: list[bool]
) -> tuple[Tensor, Tensor]:
    """∂query and ∂token from ∂α."""
    token_, E = array(token), rows.col.size
    q, N, ds = token_[:0] if query is None else array(query), token_.size, fresh(E, like=token)
    arrays = (rows.rowptr, rows.col, q, token_, scalar(slope, token), array(alpha), g.numpy(), ds)
    run_rows(_softmax_rows_backward, N, 50 * E, *arrays)
    dq, dt = fresh(N if need[0] else 0, like=token), fresh(N if need[1] else 0, like=token)
    if need[0]:
        run_rows(_add_rows, N, 25 * E, rows.rowptr, rows.edge_t[:0], ds, dq)
    if need[1]:
        run_rows(_add_rows, N, 25 * E, rows.rowptr_t, rows.edge_t, ds, dt)
    return torch.from_numpy(dq), torch.from_numpy(dt)


_attend_op = differentiable(
    "attend",
    patterns=1,
    inputs="Tensor? query, Tensor token, float slope",
    wrt=("query", "token"),
    saved="Tensor? query, Tensor token, Tensor alpha, float slope",
    saves=lambda inputs, alpha: (inputs[0], inputs[1], alpha, inputs[2]),
    forward=attend_rows,
    fake=lambda rows, query, token, slope: torch.empty_like(rows.col, dtype=token.dtype),
    backward=attend_backward,
    backward_fake=lambda rows, g, query, token, alpha, slope, need: (
        torch.empty_like(token) if need[0] else empty(token),
        torch.empty_like(token) if need[1] else empty(token),
    ),
)


def attend(clusters: Pattern, query: Tensor | None, token: Tensor, negative_slope: float = 1.0) -> Tensor:
    """As reference.attend."""
    alpha: Tensor = _attend_op(clusters, query, token, float(negative_slope))
    return alpha


@Loop
def _dynamic_rows(start, stop, rowptr, col, query, token, w, slope, s):  # type: ignore[no-untyped-def]
    """s_ij = wᵀσ(q_i + t_j), minus the maximum of the row."""
    F, zero = token.shape[1], token.dtype.type(0)
    for i in range(start, stop):
        top = token.dtype.type(-np.inf)
        for e in range(rowptr[i], rowptr[i + 1]):
            j, total = col[e], zero
            for f in range(F):
                v = query[i, f] + token[j, f]
                total += w[f] * (v if v > zero else slope * v)
            s[e] = total
            top = max(top, total)
        for e in range(rowptr[i], rowptr[i + 1]):
            s[e] -= top


@Loop
def _dynamic_blocks_backward(start, stop, rows, centre, neighbour, w, slope, ds, dcentre, dw):  # type: ignore[no-untyped-def]
    """∂centre_i = Σ_j ∂s_ij w σ'(centre_i + neighbour_j) and, unless dw is empty, ∂w = Σ_ij ∂s_ij σ(·) of each block.

    rows: row pointer, columns, and positions of the entries in ds (empty: their own).
    """
    rowptr, col, edge = rows
    (N, F), zero = centre.shape, centre.dtype.type(0)
    for b in range(start, stop):
        for f in range(F if dw.size else 0):
            dw[b, f] = zero
        for i in range(b * BLOCK, min((b + 1) * BLOCK, N)):
            for f in range(F):
                dcentre[i, f] = zero
            for k in range(rowptr[i], rowptr[i + 1]):
                j, above = col[k], ds[edge[k]] if edge.size else ds[k]
                below = above * slope
                for f in range(F):
                    dcentre[i, f] += above if centre[i, f] + neighbour[j, f] > zero else below
                if dw.size:
                    for f in range(F):
                        v = centre[i, f] + neighbour[j, f]
                        dw[b, f] += v * (above if v > zero else below)
            for f in range(F):
                dcentre[i, f] *= w[f]


def dynamic_scores(rows: Rows, query: Tensor, token: Tensor, w: Tensor, slope: float) -> Array:
    """exp(s_ij − max_j s_ij) of all rows: memberships before they are divided by their sum."""
    e = fresh(rows.col.size, like=token)
    arrays = (array(query), array(token), array(w), scalar(slope, token), e)
    run_rows(_dynamic_rows, token.size(0), e.size * (2 * token.size(1) + 40), rows.rowptr, rows.col, *arrays)
    np.exp(e, out=e)
    return e


def dynamic_backward(
    rows: Rows, ds: Array, query: Tensor, token: Tensor, w: Tensor, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """∂query, ∂token and ∂w from ∂s."""
    q, t, w_, (N, F) = array(query), array(token), array(w), token.shape
    blocks, work, bend = -(-N // BLOCK), ds.size * (3 * F + 40), scalar(slope, token)
    dq, dt, dw = fresh_like(q), fresh_like(t), fresh(blocks, F, like=token)
    by_row, by_column = (rows.rowptr, rows.col, rows.edge_t[:0]), rows[2:]
    run_rows(_dynamic_blocks_backward, blocks, work, by_row, q, t, w_, bend, ds, dq, dw)
    run_rows(_dynamic_blocks_backward, blocks, work, by_column, t, q, w_, bend, ds, dt, dw[:0])
    return torch.from_numpy(dq), torch.from_numpy(dt), torch.from_numpy(dw.sum(0))


def _attend_dynamic(rows: Rows, query: Tensor, token: Tensor, w: Tensor, slope: float) -> Tensor:
    return divide_by_sums(rows, dynamic_scores(rows, query, token, w, slope))


def _attend_dynamic_backward(
    rows: Rows, g: Tensor, query: Tensor, token: Tensor, w: Tensor, alpha: Tensor, slope: float, need: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    return dynamic_backward(rows, softmax_backward(rows, g, alpha), query, token, w, slope)


_attend_dynamic_op = differentiable(
    "attend_dynamic",
    patterns=1,
    inputs="Tensor query, Tensor token, Tensor w, float slope",
    wrt=("query", "token", "w"),
    saved="Tensor query, Tensor token, Tensor w, Tensor alpha, float slope",
    saves=lambda inputs, alpha: (*inputs[:3], alpha, inputs[3]),
    forward=_attend_dynamic,
    fake=lambda rows, query, token, w, slope: torch.empty_like(rows.col, dtype=token.dtype),
    backward=_attend_dynamic_backward,
    backward_fake=lambda rows, g, query, token, w, alpha, slope, need: (
        torch.empty_like(query),
        torch.empty_like(token),
        torch.empty_like(w),
    ),
)


def attend_dynamic(clusters: Pattern, query: Tensor, token: Tensor, w: Tensor, negative_slope: float = 0.2) -> Tensor:
    """As reference.attend_dynamic."""
    alpha: Tensor = _attend_dynamic_op(clusters, query, token, w, float(negative_slope))
    return alpha
