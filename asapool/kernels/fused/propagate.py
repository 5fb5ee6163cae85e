"""Weighted sums over neighbourhoods, forward along rows and backward along columns, without an E×F tensor."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, sweep
from asapool.kernels.fused.operation import differentiable, empty
from asapool.kernels.graph import Pattern


@Loop
def _sum_rows(start, stop, rowptr, col, weight, x, bias, relu, y):  # type: ignore[no-untyped-def]
    """y_i = Σ_j w_ij x_j + bias, then max(·, 0)."""
    F, zero = x.shape[1], x.dtype.type(0)
    for i in range(start, stop):
        e, end = rowptr[i], rowptr[i + 1]
        if bias.size:
            for f in range(F):
                y[i, f] = bias[f]
        else:
            for f in range(F):
                y[i, f] = 0
        while e + 1 < end:  # two neighbours at a time: half as many trips of y through the registers
            a, b, j, k = weight[e], weight[e + 1], col[e], col[e + 1]
            for f in range(F):
                y[i, f] += a * x[j, f] + b * x[k, f]
            e += 2
        if e < end:
            a, j = weight[e], col[e]
            for f in range(F):
                y[i, f] += a * x[j, f]
        if relu:
            for f in range(F):
                y[i, f] = y[i, f] if y[i, f] > zero else zero


@Loop
def _spread_rows(start, stop, rowptr_t, col_t, edge_t, weight, g, dx):  # type: ignore[no-untyped-def]
    """dx_j = Σ_i w_ij g_i, by columns."""
    F = g.shape[1]
    for j in range(start, stop):
        for f in range(F):
            dx[j, f] = 0
        for e in range(rowptr_t[j], rowptr_t[j + 1]):
            w, i = weight[edge_t[e]], col_t[e]
            for f in range(F):
                dx[j, f] += w * g[i, f]


@Loop
def _match_rows(start, stop, rowptr, col, x, g, dw):  # type: ignore[no-untyped-def]
    """dw_ij = g_i · x_j."""
    F = x.shape[1]
    for i in range(start, stop):
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            total = x[j, 0] * g[i, 0]
            for f in range(1, F):
                total += x[j, f] * g[i, f]
            dw[e] = total


@Loop
def _both_rows(start, stop, rowptr_t, col_t, edge_t, weight, x, g, dx, dw):  # type: ignore[no-untyped-def]
    """dx and dw in one walk: each row of g is read once for both."""
    F = g.shape[1]
    for j in range(start, stop):
        for f in range(F):
            dx[j, f] = 0
        for e in range(rowptr_t[j], rowptr_t[j + 1]):
            w, i = weight[edge_t[e]], col_t[e]
            total = x[j, 0] * g[i, 0]
            dx[j, 0] += w * g[i, 0]
            for f in range(1, F):
                dx[j, f] += w * g[i, f]
                total += x[j, f] * g[i, f]
            dw[edge_t[e]] = total


@Loop
def _normalise_rows(start, stop, rowptr, col, hat, scale, n):  # type: ignore[no-untyped-def]
    """n_ij = s_i Â_ij s_j."""
    for i in range(start, stop):
        for e in range(rowptr[i], rowptr[i + 1]):
            n[e] = scale[i] * hat[e] * scale[col[e]]


@Loop
def _scale_rows(start, stop, rowptr, hat, scale):  # type: ignore[no-untyped-def]
    """s_i = (Σ_j Â_ij)^-½, 0 for an empty row."""
    for i in range(start, stop):
        d = hat[0] * 0
        for e in range(rowptr[i], rowptr[i + 1]):
            d += hat[e]
        scale[i] = 1 / np.sqrt(d) if d > 0 else 0


@Loop
def _unscale_rows(start, stop, by_row, by_col, hat, g, scale, ds):  # type: ignore[no-untyped-def]
    """∂/∂d_i = −½ s_i³ (Σ_j g_ij Â_ij s_j + Σ_k g_ki Â_ki s_k)."""
    rowptr, col = by_row
    rowptr_t, col_t, edge_t = by_col
    for i in range(start, stop):
        total = hat[0] * 0
        for e in range(rowptr[i], rowptr[i + 1]):
            total += g[e] * hat[e] * scale[col[e]]
        for e in range(rowptr_t[i], rowptr_t[i + 1]):
            total += g[edge_t[e]] * hat[edge_t[e]] * scale[col_t[e]]
        ds[i] = -total * scale[i] * scale[i] * scale[i] / 2


@Loop
def _unnormalise_rows(start, stop, rowptr, col, g, scale, ds, dhat):  # type: ignore[no-untyped-def]
    """∂/∂Â_ij = s_i s_j g_ij + ∂/∂d_i."""
    for i in range(start, stop):
        for e in range(rowptr[i], rowptr[i + 1]):
            dhat[e] = scale[i] * scale[col[e]] * g[e] + ds[i]


def _forward(
    rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, edge_t: Tensor, weight: Tensor, x: Tensor,
    bias: Tensor | None, relu: bool,
) -> Tensor:  # fmt: skip
    x, weight = x.detach().contiguous(), weight.detach().contiguous()
    y = torch.empty_like(x)
    b = x.new_empty(0) if bias is None else bias.detach()
    work = col.numel() * x.size(1)
    arrays = (t.numpy() for t in (rowptr, col, weight, x, b))
    sweep(_sum_rows, x.size(0), work, *arrays, relu, y.numpy())
    return y


def _backward(
    g: Tensor, rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, edge_t: Tensor, weight: Tensor, x: Tensor,
    y: Tensor, relu: bool, need: list[bool],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    x, weight = x.detach().contiguous(), weight.detach().contiguous()
    if relu:
        g = torch.where(y > 0, g, 0)
    N, work = x.size(0), col.numel() * x.size(1)
    dw = torch.empty_like(weight) if need[0] else empty(x)
    dx = torch.empty_like(x) if need[1] else empty(x)
    if need[0] and need[1]:
        arrays = (t.numpy() for t in (rowptr_t, col_t, edge_t, weight, x, g, dx, dw))
        sweep(_both_rows, N, 2 * work, *arrays)
    elif need[1]:
        sweep(_spread_rows, N, work, *(t.numpy() for t in (rowptr_t, col_t, edge_t, weight, g, dx)))
    elif need[0]:
        sweep(_match_rows, N, work, *(t.numpy() for t in (rowptr, col, x, g, dw)))
    return dw, dx, g.sum(0) if need[2] else empty(x)


_propagate_op = differentiable(
    "propagate",
    forward=_forward,
    fake=lambda rowptr, col, rowptr_t, col_t, edge_t, weight, x, bias, relu: torch.empty_like(x),
    backward=_backward,
    backward_fake=lambda g, rowptr, col, rowptr_t, col_t, edge_t, weight, x, y, relu, need: (
        torch.empty_like(weight) if need[0] else empty(x),
        torch.empty_like(x) if need[1] else empty(x),
        x.new_empty(x.size(1)) if need[2] else empty(x),
    ),
    wrt=(5, 6, 7),
    saves=lambda inputs, y: (*inputs[:7], y if inputs[8] else empty(y)),
    options=lambda inputs: (inputs[8],),
)


def propagate(
    pattern: Pattern, weight: Tensor, x: Tensor, bias: Tensor | None = None, relu: bool = False, transpose: bool = False
) -> Tensor:
    """As reference.propagate."""
    _, rowptr, col, _, rowptr_t, col_t, edge_t = pattern
    if transpose:
        weight = weight[edge_t]
        back = torch.empty_like(edge_t).scatter(0, edge_t, torch.arange(edge_t.numel()))
        rowptr, col, rowptr_t, col_t, edge_t = rowptr_t, col_t, rowptr, col, back
    y: Tensor = _propagate_op(rowptr, col, rowptr_t, col_t, edge_t, weight, x, bias, relu)
    return y


def _scale(rowptr: Tensor, hat: Tensor) -> Tensor:
    scale = hat.new_empty(rowptr.numel() - 1)
    sweep(_scale_rows, scale.numel(), hat.numel(), rowptr.numpy(), hat.numpy(), scale.numpy())
    return scale


def _normalise(
    rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, edge_t: Tensor, hat: Tensor
) -> Tensor:
    hat = hat.detach().contiguous()
    n = torch.empty_like(hat)
    arrays = (t.numpy() for t in (rowptr, col, hat, _scale(rowptr, hat), n))
    sweep(_normalise_rows, rowptr.numel() - 1, 2 * hat.numel(), *arrays)
    return n


def _unnormalise(
    g: Tensor, rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, edge_t: Tensor, hat: Tensor,
    need: list[bool],
) -> Tensor:  # fmt: skip
    hat = hat.detach().contiguous()
    N, scale, dhat = rowptr.numel() - 1, _scale(rowptr, hat), torch.empty_like(hat)
    ds = torch.empty_like(scale)
    by_row, by_col = (rowptr.numpy(), col.numpy()), (rowptr_t.numpy(), col_t.numpy(), edge_t.numpy())
    sweep(_unscale_rows, N, 4 * hat.numel(), by_row, by_col, hat.numpy(), g.numpy(), scale.numpy(), ds.numpy())
    arrays = (t.numpy() for t in (g, scale, ds, dhat))
    sweep(_unnormalise_rows, N, 2 * hat.numel(), *by_row, *arrays)
    return dhat


_normalise_op = differentiable(
    "normalise",
    forward=_normalise,
    fake=lambda rowptr, col, rowptr_t, col_t, edge_t, hat: torch.empty_like(hat),
    backward=_unnormalise,
    backward_fake=lambda g, rowptr, col, rowptr_t, col_t, edge_t, hat, need: torch.empty_like(hat),
    wrt=(5,),
    saves=lambda inputs, n: inputs,
)


def normalise(pattern: Pattern, hat: Tensor) -> Tensor:
    """As reference.normalise."""
    _, rowptr, col, _, rowptr_t, col_t, edge_t = pattern
    n: Tensor = _normalise_op(rowptr, col, rowptr_t, col_t, edge_t, hat)
    return n
