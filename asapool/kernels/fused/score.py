"""How much each cluster stands out from its neighbours, forward and backward."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, empty, fresh
from asapool.kernels.graph import Pattern, Rows


@Loop
def _score_rows(start, stop, rowptr, col, weight, u, loops, phi):  # type: ignore[no-untyped-def]
    """φ_i = u1_i + Σ_j A_ij (u2_i − u3_j)."""
    C, zero, one = phi.shape[1], u.dtype.type(0), u.dtype.type(1)
    for i in range(start, stop):
        for c in range(C):
            total, own = u[i, c], u[i, C + c]
            for e in range(rowptr[i], rowptr[i + 1]):
                A = weight[e] if weight.size else one
                part = A * (own - u[col[e], 2 * C + c])
                total += part if loops or col[e] != i else zero
            phi[i, c] = total


@Loop
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
            g_i, own = g[i, c], u[i, C + c]
            for e in range(rowptr[i], rowptr[i + 1]):
                part = g_i * (own - u[col[e], 2 * C + c])
                part = part if loops or col[e] != i else zero
                dw[e] = part if c == 0 else dw[e] + part


@Loop
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
