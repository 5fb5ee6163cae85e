"""Scores of nodes, forward and backward: wᵀσ(x_i), and how much each cluster stands out from its neighbours."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.errors import InputError
from asapool.kernels.fused.compiled import BLOCK, Loop, lookup_loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, empty, fresh, fresh_like, scalar
from asapool.kernels.fused.vectors import at, choose, fill, lanes, load, plus, pointer, store, times
from asapool.kernels.graph import Pattern, Rows


@Loop
def _project_rows(start, stop, x, w, slope, token):  # type: ignore[no-untyped-def]
    """token_i = wᵀσ(x_i)."""
    F, zero = x.shape[1], x.dtype.type(0)
    for i in range(start, stop):
        total = zero
        for f in range(F):
            v = x[i, f]
            total += w[f] * (v if v > zero else slope * v)
        token[i] = total


@Loop
def _project_blocks_backward(start, stop, x, w, slope, g, dx, dw):  # type: ignore[no-untyped-def]
    """∂x_i = g_i σ'(x_i) w and, for each block of rows, ∂w = Σ_i g_i σ(x_i)."""
    N, F = x.shape
    zero = x.dtype.type(0)
    for b in range(start, stop):
        for f in range(F):
            dw[b, f] = zero
        for i in range(b * BLOCK, min((b + 1) * BLOCK, N)):
            above, below = g[i], g[i] * slope
            for f in range(F):
                dx[i, f] = w[f] * (above if x[i, f] > zero else below)
            for f in range(F):
                dw[b, f] += x[i, f] * (above if x[i, f] > zero else below)


@Loop
def _project_pool_blocks_backward(start, stop, x, columns, g, token, dx, sums):  # type: ignore[no-untyped-def]
    """∂x_i += Σ_c g_ic column_c + t_i σ'(x_i) w and, for each block, Σ_i g_ic x_i and Σ_i t_i σ(x_i).

    columns: three, and w. token: σ's slope and t. A block is walked once for every 64 bytes of a row, so that its sums
    stay in registers.
    """
    (slope, t), (N, F), zero = token, x.shape, x.dtype.type(0)
    x_, dx_, u = pointer(x), pointer(dx), pointer(columns)
    L, nil = lanes(x_), fill(x_, zero)
    for block in range(start, stop):
        lo, hi, sums_ = block * BLOCK, min((block + 1) * BLOCK, N), at(pointer(sums), block * 4 * F)
        for f in range(0, F // L * L, L):
            u_0, u_1, u_2, w = load(u, f), load(u, F + f), load(u, 2 * F + f), load(u, 3 * F + f)
            s_0, s_1, s_2, s_3 = nil, nil, nil, nil
            for i in range(lo, hi):
                x_i = load(x_, i * F + f)
                a, b, c = fill(x_, g[i, 0]), fill(x_, g[i, 1]), fill(x_, g[i, 2])
                d = choose(x_i, fill(x_, t[i]), fill(x_, t[i] * slope))
                step = plus(plus(times(a, u_0), times(b, u_1)), plus(times(c, u_2), times(d, w)))
                store(dx_, i * F + f, plus(load(dx_, i * F + f), step))
                s_0, s_1 = plus(s_0, times(a, x_i)), plus(s_1, times(b, x_i))
                s_2, s_3 = plus(s_2, times(c, x_i)), plus(s_3, times(d, x_i))
            store(sums_, f, s_0)
            store(sums_, F + f, s_1)
            store(sums_, 2 * F + f, s_2)
            store(sums_, 3 * F + f, s_3)
        for f in range(F // L * L, F):
            s_0, s_1, s_2, s_3 = zero, zero, zero, zero
            for i in range(lo, hi):
                v, a, b, c, d = x[i, f], g[i, 0], g[i, 1], g[i, 2], t[i]
                d = d if v > zero else d * slope
                dx[i, f] += a * columns[0, f] + b * columns[1, f] + c * columns[2, f] + d * columns[3, f]
                s_0, s_1, s_2, s_3 = s_0 + a * v, s_1 + b * v, s_2 + c * v, s_3 + d * v
            sums_[f], sums_[F + f], sums_[2 * F + f], sums_[3 * F + f] = s_0, s_1, s_2, s_3


def project_rows(x: Tensor, w: Tensor, slope: float) -> Tensor:
    """token of all rows."""
    if x.size(1) != w.numel():
        raise InputError(f"w must have {x.size(1)} numbers, one per column of x, got {w.numel()}")
    x_, token = array(x), fresh(x.size(0), like=x)
    run_rows(_project_rows, x_.shape[0], 2 * x_.size, x_, array(w), scalar(slope, x), token)
    return torch.from_numpy(token)


def project_backward(g: Tensor, x: Tensor, w: Tensor, slope: float, need: list[bool]) -> tuple[Tensor, Tensor]:
    """∂x and ∂w from ∂token."""
    x_, blocks = array(x), -(-x.size(0) // BLOCK)
    dx, dw = fresh_like(x_), fresh(blocks, x.size(1), like=x)
    run_rows(_project_blocks_backward, blocks, 3 * x_.size, x_, array(w), scalar(slope, x), g.numpy(), dx, dw)
    return torch.from_numpy(dx), torch.from_numpy(dw.sum(0))


def project_pool_backward(
    x: Tensor, U: Tensor, g: Tensor, token: tuple[Tensor, float, Tensor] | None, dx: Tensor
) -> tuple[Tensor, Tensor]:
    """∂U (F, 3) and ∂w from ∂(x U) and, unless token is None, from (w, slope, ∂token); ∂x is added to dx."""
    (N, F), blocks = x.shape, -(-x.size(0) // BLOCK)
    w, slope, t = (x.new_zeros(F), 1.0, x.new_zeros(N)) if token is None else token
    columns, sums = torch.cat([U.detach().t(), w.detach().view(1, F)]), fresh(blocks, 4, F, like=x)
    arrays = (array(x), columns.numpy(), array(g), (scalar(slope, x), array(t)), dx.numpy(), sums)
    run_rows(_project_pool_blocks_backward, blocks, 8 * N * F, *arrays)
    total = torch.from_numpy(sums.sum(0))
    return total[:3].t(), total[3]


_project_op = differentiable(
    "project",
    patterns=0,
    inputs="Tensor x, Tensor w, float slope",
    wrt=("x", "w"),
    saved="Tensor x, Tensor w, float slope",
    saves=lambda inputs, token: inputs,
    forward=project_rows,
    fake=lambda x, w, slope: x.new_empty(x.size(0)),
    backward=project_backward,
    backward_fake=lambda g, x, w, slope, need: (torch.empty_like(x), torch.empty_like(w)),
)


def project(x: Tensor, w: Tensor, negative_slope: float = 1.0) -> Tensor:
    """As reference.project."""
    token: Tensor = _project_op(x, w, float(negative_slope))
    return token


@lookup_loop
def _score_rows(start, stop, rowptr, col, weight, u, loops, phi):  # type: ignore[no-untyped-def]
    """φ_i = u1_i + Σ_j A_ij (u2_i − u3_j)."""
    C, zero, one = phi.shape[1], u.dtype.type(0), u.dtype.type(1)
    for i in range(start, stop):
        for c in range(C):
            total, u2_i = u[i, c], u[i, C + c]
            for e in range(rowptr[i], rowptr[i + 1]):
                A = weight[e] if weight.size else one
                part = A * (u2_i - u[col[e], 2 * C + c])
                total += part if loops or col[e] != i else zero
            phi[i, c] = total


@lookup_loop
def _score_rows_backward(start, stop, rowptr, col, weight, u, g, loops, du, dw):  # type: ignore[no-untyped-def]
    """∂u1_i = g_i, ∂u2_i = (Σ_j A_ij) g_i and, unless dw is empty, ∂A_ij = g_i · (u2_i − u3_j)."""
    C, zero, one = g.shape[1], g.dtype.type(0), g.dtype.type(1)
    for i in range(start, stop):
        degree = zero
        for e in range(rowptr[i], rowptr[i + 1]):
            A = weight[e] if weight.size else one
            degree += A if loops or col[e] != i else zero
        for c in range(C):
            du[i, c], du[i, C + c] = g[i, c], degree * g[i, c]
        for c in range(C if dw.size else 0):
            g_i, u2_i = g[i, c], u[i, C + c]
            for e in range(rowptr[i], rowptr[i + 1]):
                part = g_i * (u2_i - u[col[e], 2 * C + c])
                part = part if loops or col[e] != i else zero
                dw[e] = part if c == 0 else dw[e] + part


@lookup_loop
def _score_columns_backward(start, stop, rowptr_t, col_t, edge_t, weight, g, loops, du):  # type: ignore[no-untyped-def]
    """∂u3_j = −Σ_i A_ij g_i."""
    C, zero, one = g.shape[1], g.dtype.type(0), g.dtype.type(1)
    for j in range(start, stop):
        for c in range(C):
            total = zero
            for e in range(rowptr_t[j], rowptr_t[j + 1]):
                A = weight[edge_t[e]] if weight.size else one
                part = A * g[col_t[e], c]
                total += part if loops or col_t[e] != j else zero
            du[j, 2 * C + c] = -total


def score_rows(rows: Rows, weight: Tensor | None, u: Tensor, loops: bool) -> Tensor:
    """φ of all rows."""
    u_, N, C = array(u), u.size(0), u.size(1) // 3
    A, phi = u_[:0, 0].copy() if weight is None else array(weight), fresh(N, C, like=u)
    run_rows(_score_rows, N, 60 * C * rows.col.size, rows.rowptr, rows.col, A, u_, loops, phi)
    return torch.from_numpy(phi)


def score_backward(
    rows: Rows, g: Tensor, weight: Tensor | None, u: Tensor, loops: bool, need: list[bool]
) -> tuple[Tensor, Tensor]:
    """∂weight and ∂u from ∂φ."""
    u_, g_, N, work = array(u), g.numpy(), u.size(0), 40 * g.size(1) * rows.col.size
    A = u_[:0, 0].copy() if weight is None else array(weight)
    dw, du = fresh(rows.col.size if need[0] else 0, like=u), np.empty_like(u_)
    run_rows(_score_rows_backward, N, work, rows.rowptr, rows.col, A, u_, g_, loops, du, dw)
    if need[1]:
        run_rows(_score_columns_backward, N, work, rows.rowptr_t, rows.col_t, rows.edge_t, A, g_, loops, du)
    return torch.from_numpy(dw), torch.from_numpy(du)


_score_op = differentiable(
    "score",
    patterns=1,
    inputs="Tensor? weight, Tensor u, bool loops",
    wrt=("weight", "u"),
    saved="Tensor? weight, Tensor u, bool loops",
    saves=lambda inputs, phi: inputs,
    forward=score_rows,
    fake=lambda rows, weight, u, loops: u.new_empty(u.size(0), u.size(1) // 3),
    backward=score_backward,
    backward_fake=lambda rows, g, weight, u, loops, need: (
        torch.empty_like(weight) if need[0] else empty(u),
        torch.empty_like(u),
    ),
)


def score(pattern: Pattern, weight: Tensor | None, u: Tensor, loops: bool = False) -> Tensor:
    """As reference.score."""
    phi: Tensor = _score_op(pattern, weight, u, loops)
    return phi
