"""Scores of nodes, forward and backward: wᵀσ(x_i), and how much each cluster stands out from its neighbours."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import BLOCK, Loop, lookup_loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, empty, fresh, scalar
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


def project_rows(x: Tensor, w: Tensor, slope: float) -> Tensor:
    """token of all rows."""
    x_, token = array(x), fresh(x.size(0), like=x)
    run_rows(_project_rows, x_.shape[0], 2 * x_.size, x_, array(w), scalar(slope, x), token)
    return torch.from_numpy(token)


def project_backward(g: Tensor, x: Tensor, w: Tensor, slope: float, need: list[bool]) -> tuple[Tensor, Tensor]:
    """∂x and ∂w from ∂token."""
    x_, blocks = array(x), -(-x.size(0) // BLOCK)
    dx, dw = np.empty_like(x_), fresh(blocks, x.size(1), like=x)
    run_rows(_project_blocks_backward, blocks, 3 * x_.size, x_, array(w), scalar(slope, x), g.numpy(), dx, dw)
    return torch.from_numpy(dx), torch.from_numpy(dw.sum(0))


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
