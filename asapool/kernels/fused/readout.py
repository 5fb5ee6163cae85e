"""Readout (mean, maximum and sum in one pass) and normalisation over the nodes of each graph, with gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.checks import check_pointer
from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, fresh, fresh_like, scalar


@Loop
def _readout_graphs(start, stop, x, ptr, places, r):  # type: ignore[no-untyped-def]
    """mean_i x_i, max_i x_i and Σ_i x_i, each at its column of r_b (-1: left out); zeros for a graph without nodes."""
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
    """Every node gets its share of the gradient of the mean and all of the sum's; tied maxima share theirs."""
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
    """The first column of mean, max and sum in a row; -1 for one that is left out."""
    names = parts.split(",")
    mean, top, total = (names.index(name) * F if name in names else -1 for name in ("mean", "max", "sum"))
    return mean, top, total


def _readout(x: Tensor, ptr: Tensor, parts: str) -> Tensor:
    B, F, x_ = ptr.numel() - 1, x.size(1), array(x)
    check_pointer("ptr", array(ptr), len(x_))
    r = fresh(B, (parts.count(",") + 1) * F, like=x)
    run_rows(_readout_graphs, B, 3 * x_.size, x_, array(ptr), _places(parts, F), r)
    return torch.from_numpy(r)


def _readout_backward(g: Tensor, x: Tensor, ptr: Tensor, r: Tensor, parts: str, need: list[bool]) -> Tensor:
    x_ = array(x)
    dx = fresh_like(x_)
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
    forward=_readout,
    fake=lambda x, ptr, parts: x.new_empty(ptr.numel() - 1, (parts.count(",") + 1) * x.size(1)),
    backward=_readout_backward,
    backward_fake=lambda g, x, ptr, r, parts, need: torch.empty_like(x),
)


def readout(x: Tensor, ptr: Tensor, parts: Sequence[str] = ("mean", "max")) -> Tensor:
    """As reference.readout."""
    r: Tensor = _readout_op(x, ptr, ",".join(parts))
    return r


@Loop
def _norm_graphs(start, stop, x, ptr, weight, bias, mean_scale, eps, shift, scale, y):  # type: ignore[no-untyped-def]
    """shift_b = α μ_b, scale_b = 1/√(mean (x_i − shift_b)² + ε), y_i = γ (x_i − shift_b) scale_b + β."""
    F, zero, one = x.shape[1], x.dtype.type(0), x.dtype.type(1)
    for b in range(start, stop):
        lo, hi = ptr[b], ptr[b + 1]
        m, s, share = shift[b], scale[b], one / x.dtype.type(max(hi - lo, 1))
        for f in range(F):
            m[f], s[f] = zero, zero
        for i in range(lo, hi):
            for f in range(F):
                m[f] += x[i, f]
        for f in range(F):
            m[f] *= share * mean_scale[f]
        for i in range(lo, hi):
            for f in range(F):
                d = x[i, f] - m[f]
                s[f] += d * d
        for f in range(F):
            s[f] = one / np.sqrt(s[f] * share + eps)
        for i in range(lo, hi):
            for f in range(F):
                y[i, f] = weight[f] * ((x[i, f] - m[f]) * s[f]) + bias[f]


@Loop
def _norm_graphs_backward(start, stop, x, ptr, params, shift, scale, g, dx, dparams):  # type: ignore[no-untyped-def]
    """∂x and, for each graph, ∂γ, ∂β and ∂α.

    With z_i = (x_i − α μ) s: ∂β = Σ g_i, ∂γ = Σ g_i z_i, and h_i = x_i − α μ has ∂h_i = γ s (g_i − z_i mean(g z)),
    so that ∂(α μ) = −Σ ∂h_i and ∂x_i = ∂h_i − α mean(∂h).
    """
    weight, mean_scale = params
    dweight, dbias, dmean_scale = dparams
    F, zero, one = x.shape[1], x.dtype.type(0), x.dtype.type(1)
    total = np.empty(F, x.dtype)
    for b in range(start, stop):
        lo, hi = ptr[b], ptr[b + 1]
        m, s, dw, db, da, share = shift[b], scale[b], dweight[b], dbias[b], dmean_scale[b], one / max(hi - lo, 1)
        share = x.dtype.type(share)
        for f in range(F):
            dw[f], db[f], da[f], total[f] = zero, zero, zero, zero
        for i in range(lo, hi):
            for f in range(F):
                dw[f] += g[i, f] * ((x[i, f] - m[f]) * s[f])
                db[f] += g[i, f]
                da[f] += x[i, f]
        for i in range(lo, hi):
            for f in range(F):
                d = weight[f] * s[f] * (g[i, f] - (x[i, f] - m[f]) * s[f] * (dw[f] * share))
                dx[i, f] = d
                total[f] += d
        for f in range(F):
            da[f] *= -(total[f] * share)
            total[f] *= mean_scale[f] * share
        for i in range(lo, hi):
            for f in range(F):
                dx[i, f] -= total[f]


def _graph_norm(
    x: Tensor, ptr: Tensor, weight: Tensor, bias: Tensor, mean_scale: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    B, F, x_ = ptr.numel() - 1, x.size(1), array(x)
    check_pointer("ptr", array(ptr), len(x_))
    y, shift, scale = fresh_like(x_), fresh(B, F, like=x), fresh(B, F, like=x)
    params = (array(weight), array(bias), array(mean_scale), scalar(eps, x))
    run_rows(_norm_graphs, B, 5 * x_.size, x_, array(ptr), *params, shift, scale, y)
    return torch.from_numpy(y), torch.from_numpy(shift), torch.from_numpy(scale)


def _graph_norm_backward(
    g: Tensor, x: Tensor, ptr: Tensor, weight: Tensor, mean_scale: Tensor, shift: Tensor, scale: Tensor,
    need: list[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    x_, B, F = array(x), *shift.shape
    dx, dparams = fresh_like(x_), (fresh(B, F, like=x), fresh(B, F, like=x), fresh(B, F, like=x))
    params, stats = (array(weight), array(mean_scale)), (array(shift), array(scale))
    run_rows(_norm_graphs_backward, B, 8 * x_.size, x_, ptr.numpy(), params, *stats, g.numpy(), dx, dparams)
    dweight, dbias, dmean_scale = (torch.from_numpy(d.sum(0)) for d in dparams)
    return torch.from_numpy(dx), dweight, dbias, dmean_scale


_graph_norm_op = differentiable(
    "graph_norm",
    patterns=0,
    inputs="Tensor x, Tensor ptr, Tensor weight, Tensor bias, Tensor mean_scale, float eps",
    outputs="(Tensor, Tensor, Tensor)",
    wrt=("x", "weight", "bias", "mean_scale"),
    saved="Tensor x, Tensor ptr, Tensor weight, Tensor mean_scale, Tensor shift, Tensor scale",
    saves=lambda inputs, out: (inputs[0], inputs[1], inputs[2], inputs[4], out[1], out[2]),
    forward=_graph_norm,
    fake=lambda x, ptr, weight, bias, mean_scale, eps: (
        torch.empty_like(x),
        x.new_empty(ptr.numel() - 1, x.size(1)),
        x.new_empty(ptr.numel() - 1, x.size(1)),
    ),
    backward=_graph_norm_backward,
    backward_fake=lambda g, x, ptr, weight, *rest: (torch.empty_like(x), *(torch.empty_like(weight) for _ in range(3))),
)


def graph_norm(x: Tensor, ptr: Tensor, weight: Tensor, bias: Tensor, mean_scale: Tensor, eps: float) -> Tensor:
    """As reference.graph_norm."""
    y: Tensor = _graph_norm_op(x, ptr, weight, bias, mean_scale, float(eps))[0]
    return y
