"""Normalisation of every graph by itself, graph by graph, forward and backward."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.checks import check_pointer
from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, fresh, scalar


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


def _forward(
    x: Tensor, ptr: Tensor, weight: Tensor, bias: Tensor, mean_scale: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    B, F, x_ = ptr.numel() - 1, x.size(1), array(x)
    check_pointer("ptr", array(ptr), len(x_))
    y, shift, scale = np.empty_like(x_), fresh(B, F, like=x), fresh(B, F, like=x)
    params = (array(weight), array(bias), array(mean_scale), scalar(eps, x))
    run_rows(_norm_graphs, B, 5 * x_.size, x_, array(ptr), *params, shift, scale, y)
    return torch.from_numpy(y), torch.from_numpy(shift), torch.from_numpy(scale)


def _backward(
    g: Tensor, x: Tensor, ptr: Tensor, weight: Tensor, mean_scale: Tensor, shift: Tensor, scale: Tensor,
    need: list[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    x_, B, F = array(x), *shift.shape
    dx, dparams = np.empty_like(x_), (fresh(B, F, like=x), fresh(B, F, like=x), fresh(B, F, like=x))
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
    forward=_forward,
    fake=lambda x, ptr, weight, bias, mean_scale, eps: (
        torch.empty_like(x),
        x.new_empty(ptr.numel() - 1, x.size(1)),
        x.new_empty(ptr.numel() - 1, x.size(1)),
    ),
    backward=_backward,
    backward_fake=lambda g, x, ptr, weight, *rest: (torch.empty_like(x), *(torch.empty_like(weight) for _ in range(3))),
)


def graph_norm(x: Tensor, ptr: Tensor, weight: Tensor, bias: Tensor, mean_scale: Tensor, eps: float) -> Tensor:
    """As reference.graph_norm."""
    y: Tensor = _graph_norm_op(x, ptr, weight, bias, mean_scale, float(eps))[0]
    return y
