"""GCN's weights n_ij = d_i^-½ Â_ij d_j^-½, forward and backward."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable
from asapool.kernels.graph import Pattern, Rows


@Loop
def _scale_rows(start, stop, rowptr, hat, scale):  # type: ignore[no-untyped-def]
    """s_i = (Σ_j Â_ij)^-½, 0 for an empty row."""
    for i in range(start, stop):
        d = hat.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            d += hat[e]
        scale[i] = 1 / np.sqrt(d) if d > 0 else 0


@Loop
def _normalise_rows(start, stop, rowptr, col, hat, scale, n):  # type: ignore[no-untyped-def]
    """n_ij = s_i Â_ij s_j."""
    for i in range(start, stop):
        for e in range(rowptr[i], rowptr[i + 1]):
            n[e] = scale[i] * hat[e] * scale[col[e]]


@Loop
def _scale_rows_backward(start, stop, rowptr, col, hat, g, scale, part, ds):  # type: ignore[no-untyped-def]
    """Σ_j g_ij Â_ij s_j, and the parts g_ij Â_ij for those who read by column."""
    for i in range(start, stop):
        total = hat.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            part[e] = g[e] * hat[e]
            total += part[e] * scale[col[e]]
        ds[i] = total


@Loop
def _scale_columns_backward(start, stop, rowptr_t, col_t, edge_t, part, scale, ds):  # type: ignore[no-untyped-def]
    """∂/∂d_i = −½ s_i³ (Σ_j g_ij Â_ij s_j + Σ_k g_ki Â_ki s_k)."""
    for i in range(start, stop):
        total = ds[i]
        for e in range(rowptr_t[i], rowptr_t[i + 1]):
            total += part[edge_t[e]] * scale[col_t[e]]
        ds[i] = -total * scale[i] * scale[i] * scale[i] / 2


@Loop
def _normalise_rows_backward(start, stop, rowptr, col, g, scale, ds, dhat):  # type: ignore[no-untyped-def]
    """∂/∂Â_ij = s_i s_j g_ij + ∂/∂d_i."""
    for i in range(start, stop):
        for e in range(rowptr[i], rowptr[i + 1]):
            dhat[e] = scale[i] * scale[col[e]] * g[e] + ds[i]


def _normalise(rows: Rows, hat: Tensor) -> tuple[Tensor, Tensor]:
    hat_ = array(hat)
    n, scale = np.empty_like(hat_), np.empty(rows.rowptr.size - 1, hat_.dtype)
    run_rows(_scale_rows, scale.size, 25 * hat_.size, rows.rowptr, hat_, scale)
    run_rows(_normalise_rows, scale.size, 35 * hat_.size, rows.rowptr, rows.col, hat_, scale, n)
    return torch.from_numpy(n), torch.from_numpy(scale)


def _normalise_backward(rows: Rows, g: Tensor, hat: Tensor, scale: Tensor, need: list[bool]) -> Tensor:
    hat_, g_, scale_ = array(hat), g.numpy(), array(scale)
    dhat, ds = np.empty_like(hat_), np.empty_like(scale_)  # dhat holds the parts first
    run_rows(_scale_rows_backward, ds.size, 30 * hat_.size, rows.rowptr, rows.col, hat_, g_, scale_, dhat, ds)
    run_rows(_scale_columns_backward, ds.size, 30 * hat_.size, *rows[2:], dhat, scale_, ds)
    run_rows(_normalise_rows_backward, ds.size, 35 * hat_.size, rows.rowptr, rows.col, g_, scale_, ds, dhat)
    return torch.from_numpy(dhat)


_normalise_op = differentiable(
    "normalise",
    patterns=1,
    inputs="Tensor hat",
    outputs="(Tensor, Tensor)",
    wrt=("hat",),
    saved="Tensor hat, Tensor scale",
    saves=lambda inputs, out: (inputs[0], out[1]),
    forward=_normalise,
    fake=lambda rows, hat: (torch.empty_like(hat), hat.new_empty(rows.rowptr.numel() - 1)),
    backward=_normalise_backward,
    backward_fake=lambda rows, g, hat, scale, need: torch.empty_like(hat),
)


def normalise(pattern: Pattern, hat: Tensor) -> Tensor:
    """As reference.normalise."""
    n: Tensor = _normalise_op(pattern, hat)[0]
    return n
