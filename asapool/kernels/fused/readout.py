"""One row of numbers per graph: mean and maximum in one pass."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.checks import check_pointer
from asapool.kernels.fused.compiled import Loop, sweep
from asapool.kernels.fused.operation import array, differentiable, fresh


@Loop
def _readout_graphs(start, stop, x, ptr, r):  # type: ignore[no-untyped-def]
    """r_b = mean_i x_i ‖ max_i x_i, zeros for a graph without nodes."""
    F = x.shape[1]
    for b in range(start, stop):
        lo, hi = ptr[b], ptr[b + 1]
        mean, top = r[b, :F], r[b, F:]  # two arrays, or the compiler takes one number at a time
        for f in range(F):
            mean[f] = 0
            top[f] = x[lo, f] if hi > lo else 0
        for i in range(lo, hi):
            for f in range(F):
                v = x[i, f]
                mean[f] += v
                top[f] = v if v > top[f] or v != v else top[f]  # NaN wins
        share = x.dtype.type(1) / x.dtype.type(max(hi - lo, 1))
        for f in range(F):
            mean[f] *= share


@Loop
def _unreadout_graphs(start, stop, x, ptr, r, g, dx, tied):  # type: ignore[no-untyped-def]
    """Every node gets its part of the mean; those at the maximum share its gradient."""
    F, zero, one = x.shape[1], x.dtype.type(0), x.dtype.type(1)
    for b in range(start, stop):
        lo, hi = ptr[b], ptr[b + 1]
        share = one / x.dtype.type(max(hi - lo, 1))
        top, g_mean, g_top, part = r[b, F:], g[b, :F], g[b, F:], tied[b]
        for f in range(F):
            part[f] = zero
        for i in range(lo, hi):
            x_i = x[i]
            for f in range(F):
                part[f] += one if x_i[f] == top[f] else zero
        for f in range(F):
            part[f] = g_top[f] / part[f]
        for i in range(lo, hi):
            x_i, d_i = x[i], dx[i]
            for f in range(F):
                d_i[f] = share * g_mean[f] + (part[f] if x_i[f] == top[f] else zero)


def _forward(x: Tensor, ptr: Tensor) -> Tensor:
    B, x_ = ptr.numel() - 1, array(x)
    check_pointer("ptr", array(ptr), len(x_))
    r = fresh(B, 2 * x.size(1), like=x)
    sweep(_readout_graphs, B, 3 * x_.size, x_, array(ptr), r)
    return torch.from_numpy(r)


def _backward(g: Tensor, x: Tensor, ptr: Tensor, r: Tensor, need: list[bool]) -> Tensor:
    x_, B = array(x), r.size(0)
    dx, tied = np.empty_like(x_), fresh(B, x.size(1), like=x)
    sweep(_unreadout_graphs, B, 4 * x_.size, x_, ptr.numpy(), array(r), g.numpy(), dx, tied)
    return torch.from_numpy(dx)


_readout_op = differentiable(
    "readout",
    patterns=0,
    inputs="Tensor x, Tensor ptr",
    wrt=("x",),
    saved="Tensor x, Tensor ptr, Tensor r",
    saves=lambda inputs, r: (*inputs, r),
    forward=_forward,
    fake=lambda x, ptr: x.new_empty(ptr.numel() - 1, 2 * x.size(1)),
    backward=_backward,
    backward_fake=lambda g, x, ptr, r, need: torch.empty_like(x),
)


def readout(x: Tensor, ptr: Tensor) -> Tensor:
    """As reference.readout."""
    r: Tensor = _readout_op(x, ptr)
    return r
