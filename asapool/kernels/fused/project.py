"""One number per node, wᵀσ(x_i), forward and backward."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import BLOCK, Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, fresh, scalar


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
