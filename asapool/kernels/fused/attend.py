"""How strongly each node belongs to each cluster: maxima and softmaxes row by row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, sweep
from asapool.kernels.fused.operation import differentiable, empty
from asapool.kernels.graph import Pattern


@Loop
def _max_rows(start, stop, rowptr, col, x, m):  # type: ignore[no-untyped-def]
    """m_i = max_j x_j."""
    F = x.shape[1]
    for i in range(start, stop):
        j = col[rowptr[i]]
        for f in range(F):
            m[i, f] = x[j, f]
        for e in range(rowptr[i] + 1, rowptr[i + 1]):
            j = col[e]
            for f in range(F):
                m[i, f] = x[j, f] if x[j, f] > m[i, f] else m[i, f]


@Loop
def _share_rows(start, stop, rowptr, col, x, m, g, share):  # type: ignore[no-untyped-def]
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
def _winner_rows(start, stop, rowptr_t, col_t, x, m, share, dx):  # type: ignore[no-untyped-def]
    """dx_j = Σ of the shares of the clusters in which j reaches the maximum."""
    F, zero = x.shape[1], x.dtype.type(0)
    for j in range(start, stop):
        for f in range(F):
            dx[j, f] = 0
        for e in range(rowptr_t[j], rowptr_t[j + 1]):
            i = col_t[e]
            for f in range(F):
                dx[j, f] += share[i, f] if x[j, f] == m[i, f] else zero


@Loop
def _softmax_rows(start, stop, rowptr, col, query, token, slope, alpha):  # type: ignore[no-untyped-def]
    """α_ij = softmax_j(LeakyReLU(query_i + token_j))."""
    for i in range(start, stop):
        q = query[i] if query.size else token[0] * 0
        top = token[0] * 0 - np.inf
        for e in range(rowptr[i], rowptr[i + 1]):
            s = q + token[col[e]]
            s = s if s > 0 else s * slope
            alpha[e] = s
            top = max(top, s)
        total = token[0] * 0
        for e in range(rowptr[i], rowptr[i + 1]):
            alpha[e] = np.exp(alpha[e] - top)
            total += alpha[e]
        for e in range(rowptr[i], rowptr[i + 1]):
            alpha[e] /= total


@Loop
def _unsoftmax_rows(start, stop, rowptr, col, query, token, slope, alpha, g):  # type: ignore[no-untyped-def]
    """g becomes the gradient of the scores: α_ij (g_ij − Σ_k α_ik g_ik), times the slope of LeakyReLU."""
    for i in range(start, stop):
        mean = token[0] * 0
        for e in range(rowptr[i], rowptr[i + 1]):
            mean += alpha[e] * g[e]
        q = query[i] if query.size else mean * 0
        for e in range(rowptr[i], rowptr[i + 1]):
            bend = slope if q + token[col[e]] <= 0 else slope * 0 + 1
            g[e] = alpha[e] * (g[e] - mean) * bend


@Loop
def _add_rows(start, stop, rowptr, edge, value, total):  # type: ignore[no-untyped-def]
    """Sum of a value over each row; `edge` says where an entry's value stands (empty: in place)."""
    for i in range(start, stop):
        t = value[0] * 0
        for e in range(rowptr[i], rowptr[i + 1]):
            t += value[edge[e]] if edge.size else value[e]
        total[i] = t


def _cluster_max(rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, x: Tensor) -> Tensor:
    x = x.detach().contiguous()
    m = torch.empty_like(x)
    sweep(_max_rows, x.size(0), col.numel() * x.size(1), *(t.numpy() for t in (rowptr, col, x, m)))
    return m


def _cluster_max_back(
    g: Tensor, rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, x: Tensor, m: Tensor, need: list[bool]
) -> Tensor:
    x = x.detach().contiguous()
    share, dx, work = torch.empty_like(x), torch.empty_like(x), col.numel() * x.size(1)
    sweep(_share_rows, x.size(0), work, *(t.numpy() for t in (rowptr, col, x, m, g, share)))
    sweep(_winner_rows, x.size(0), work, *(t.numpy() for t in (rowptr_t, col_t, x, m, share, dx)))
    return dx


_cluster_max_op = differentiable(
    "cluster_max",
    forward=_cluster_max,
    fake=lambda rowptr, col, rowptr_t, col_t, x: torch.empty_like(x),
    backward=_cluster_max_back,
    backward_fake=lambda g, rowptr, col, rowptr_t, col_t, x, m, need: torch.empty_like(x),
    wrt=(4,),
    saves=lambda inputs, m: (*inputs, m),
)


def cluster_max(clusters: Pattern, x: Tensor) -> Tensor:
    """As reference.cluster_max."""
    m: Tensor = _cluster_max_op(clusters.rowptr, clusters.col, clusters.rowptr_t, clusters.col_t, x)
    return m


def _attend(
    rowptr: Tensor, col: Tensor, rowptr_t: Tensor, edge_t: Tensor, query: Tensor | None, token: Tensor, slope: float
) -> Tensor:
    token = token.detach().contiguous()
    q = empty(token) if query is None else query.detach().contiguous()
    alpha = token.new_empty(col.numel())
    bend = token.new_tensor(slope).numpy()[()]
    arrays = (t.numpy() for t in (rowptr, col, q, token))
    sweep(_softmax_rows, token.numel(), 20 * col.numel(), *arrays, bend, alpha.numpy())
    return alpha


def _attend_back(
    g: Tensor, rowptr: Tensor, col: Tensor, rowptr_t: Tensor, edge_t: Tensor, query: Tensor | None, token: Tensor,
    alpha: Tensor, slope: float, need: list[bool],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    token = token.detach().contiguous()
    q = empty(token) if query is None else query.detach().contiguous()
    N, g, bend = token.numel(), g.clone(), token.new_tensor(slope).numpy()[()]
    arrays = (t.numpy() for t in (rowptr, col, q, token))
    sweep(_unsoftmax_rows, N, 8 * col.numel(), *arrays, bend, alpha.numpy(), g.numpy())
    dq, dt = torch.empty_like(q) if need[0] else empty(q), torch.empty_like(token) if need[1] else empty(q)
    if need[0]:
        sweep(_add_rows, N, 2 * col.numel(), *(t.numpy() for t in (rowptr, rowptr[:0], g, dq)))
    if need[1]:
        sweep(_add_rows, N, 2 * col.numel(), *(t.numpy() for t in (rowptr_t, edge_t, g, dt)))
    return dq, dt


_attend_op = differentiable(
    "attend",
    forward=_attend,
    fake=lambda rowptr, col, rowptr_t, edge_t, query, token, slope: torch.empty_like(col, dtype=token.dtype),
    backward=_attend_back,
    backward_fake=lambda g, rowptr, col, rowptr_t, edge_t, query, token, alpha, slope, need: (
        torch.empty_like(token) if need[0] else empty(token),
        torch.empty_like(token) if need[1] else empty(token),
    ),
    wrt=(4, 5),
    saves=lambda inputs, alpha: (*inputs[:6], alpha),
    options=lambda inputs: (inputs[6],),
)


def attend(clusters: Pattern, query: Tensor | None, token: Tensor, negative_slope: float = 1.0) -> Tensor:
    """As reference.attend."""
    alpha: Tensor = _attend_op(
        clusters.rowptr, clusters.col, clusters.rowptr_t, clusters.edge_t, query, token, float(negative_slope)
    )
    return alpha
