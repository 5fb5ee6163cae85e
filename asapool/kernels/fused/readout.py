"""One row of numbers per graph: mean, maximum and sum in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.checks import check_pointer
from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, fresh


@Loop
def _readout_graphs(start, stop, x, ptr, places, r):  # type: ignore[no-untyped-def]
    """mean_i x_i, max_i x_i and Σ_i x_i, each at its place in r_b (-1: not wanted); zeros for a graph without nodes."""
    F = x.shape[1]
    at_mean, at_top, at_sum = places
    total, top = np.empty(F, x.dtype), np.empty(F, x.dtype)
    for b in range(start, stop):
        lo, hi = ptr[b], ptr[b + 1]
        for f in range(F):
            total[f] = 0
            top[f] = x[lo, f] if hi > lo else 0
        for i in range(lo, hi):
            for f in range(F):
                v = x[i, f]
                total[f] += v
                top[f] = v if v > top[f] or v != v else top[f]  # NaN wins
        share = x.dtype.type(1) / x.dtype.type(max(hi - lo, 1))
        for f in range(F if at_mean >= 0 else 0):
            r[b, at_mean + f] = total[f] * share
        for f in range(F if at_top >= 0 else 0):
            r[b, at_top + f] = top[f]
        for f in range(F if at_sum >= 0 else 0):
            r[b, at_sum + f] = total[f]


@Loop
def _readout_graphs_backward(start, stop, x, ptr, places, r, g, dx):  # type: ignore[no-untyped-def]
    """Every node gets its share of the mean and all of the sum; those at the maximum share its gradient."""
    F, zero, one = x.shape[1], x.dtype.type(0), x.dtype.type(1)
    at_mean, at_top, at_sum = places
    share, part = np.zeros(F, x.dtype), np.empty(F, x.dtype)
    for b in range(start, stop):
        lo, hi = ptr[b], ptr[b + 1]
        nodes = x.dtype.type(max(hi - lo, 1))
        for f in range(F if at_mean >= 0 else 0):
            share[f] = g[b, at_mean + f] / nodes
        if at_top >= 0:
            top, g_top = r[b, at_top : at_top + F], g[b, at_top : at_top + F]
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
                    d_i[f] = share[f] + (part[f] if x_i[f] == top[f] else zero)
        else:
            for i in range(lo, hi):
                for f in range(F):
                    dx[i, f] = share[f]
        if at_sum >= 0:
            g_sum = g[b, at_sum : at_sum + F]
            for i in range(lo, hi):
                for f in range(F):
                    dx[i, f] += g_sum[f]


def _places(parts: str, F: int) -> tuple[int, int, int]:
    """The first column of mean, max and sum in a row; -1 where one is not wanted."""
    names = parts.split(",")
    mean, top, total = (names.index(name) * F if name in names else -1 for name in ("mean", "max", "sum"))
    return mean, top, total


def _forward(x: Tensor, ptr: Tensor, parts: str) -> Tensor:
    B, F, x_ = ptr.numel() - 1, x.size(1), array(x)
    check_pointer("ptr", array(ptr), len(x_))
    r = fresh(B, (parts.count(",") + 1) * F, like=x)
    run_rows(_readout_graphs, B, 3 * x_.size, x_, array(ptr), _places(parts, F), r)
    return torch.from_numpy(r)


def _backward(g: Tensor, x: Tensor, ptr: Tensor, r: Tensor, parts: str, need: list[bool]) -> Tensor:
    x_ = array(x)
    dx = np.empty_like(x_)
    arrays = (x_, ptr.numpy(), _places(parts, x.size(1)), array(r), g.numpy(), dx)
    run_rows(_readout_graphs_backward, r.size(0), 4 * x_.size, *arrays)
    return torch.from_numpy(dx)


_readout_op = differentiable(
    "readout",
    patterns=0,
    inputs="Tensor x, Tensor ptr, str parts",
    wrt=("x",),
    saved="Tensor x, Tensor ptr, Tensor r, str parts",
    saves=lambda inputs, r: (inputs[0], inputs[1], r, inputs[2]),
    forward=_forward,
    fake=lambda x, ptr, parts: x.new_empty(ptr.numel() - 1, (parts.count(",") + 1) * x.size(1)),
    backward=_backward,
    backward_fake=lambda g, x, ptr, r, parts, need: torch.empty_like(x),
)


def readout(x: Tensor, ptr: Tensor, parts: Sequence[str] = ("mean", "max")) -> Tensor:
    """As reference.readout."""
    r: Tensor = _readout_op(x, ptr, ",".join(parts))
    return r
