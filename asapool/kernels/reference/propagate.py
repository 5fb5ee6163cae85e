"""GCN's weights, and weighted sums over neighbourhoods, which GCN and cluster formation share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern


def normalise(pattern: Pattern, hat: Tensor) -> Tensor:
    """GCN's symmetric weights: n_ij = d_i^-½ Â_ij d_j^-½ with d_i = Σ_j Â_ij.

    hat (E,) is Â; returns (E,). A row without weight gets zeros.
    """
    row = pattern.row
    wide = hat.to(torch.promote_types(hat.dtype, torch.float32))  # a degree in bfloat16 stops at 256
    d = wide.new_zeros(pattern.diag.numel()).index_add(0, row, wide)
    scale = torch.where(d > 0, d, torch.ones_like(d)).rsqrt() * (d > 0)
    return (scale[row] * wide * scale[pattern.col]).to(hat.dtype)


def feature_blocks(N: int, E: int, F: int) -> Iterator[slice]:
    """Split F features into blocks such that one value per entry and feature of a block needs no more memory than x.

    >>> list(feature_blocks(N=10, E=40, F=8))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None), slice(6, 8, None)]
    """
    width = max(1, N * F // max(E, 1))
    for start in range(0, F, width):
        yield slice(start, min(start + width, F))


class _Propagate(torch.autograd.Function):
    """y_i = Σ_j w_ij x_j, one block of features at a time, which avoids an E×F tensor."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Tensor, row: Tensor, col: Tensor) -> Tensor:
        ctx.save_for_backward(weight, x, row, col)
        y = torch.zeros_like(x)
        for f in feature_blocks(x.size(0), col.numel(), x.size(1)):
            y[:, f].index_add_(0, row, weight[:, None] * x[:, f].index_select(0, col))
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (g,) = grads
        weight, x, row, col = ctx.saved_tensors
        dx, dw = torch.zeros_like(x), torch.zeros_like(weight)
        for f in feature_blocks(x.size(0), col.numel(), x.size(1)):
            g_i = g[:, f].index_select(0, row)
            dx[:, f].index_add_(0, col, weight[:, None] * g_i)
            dw += (g_i * x[:, f].index_select(0, col)).sum(1)
        return dw, dx, None, None


def propagate(
    pattern: Pattern, weight: Tensor, x: Tensor, bias: Tensor | None = None, relu: bool = False, transpose: bool = False
) -> Tensor:
    """Weighted sum over the neighbours of every node: y_i = Σ_j w_ij x_j, optionally plus bias, then max(·, 0).

    weight (E,); x (N, F); bias (F,); returns (N, F). With transpose, y_j = Σ_i w_ij x_i.
    """
    row, col = (pattern.col, pattern.row) if transpose else (pattern.row, pattern.col)
    wide = torch.promote_types(x.dtype, torch.float32)  # bfloat16 sums would lose most of their digits
    weight, wide_x = weight.to(wide), x.to(wide)
    if torch.compiler.is_compiling():  # a loop over blocks cannot be unrolled if their number depends on the data
        y = torch.zeros_like(wide_x).index_add(0, row, weight[:, None] * wide_x.index_select(0, col))
    else:
        y = _Propagate.apply(weight, wide_x, row, col)  # type: ignore[no-untyped-call]
    y = y.to(x.dtype)
    if bias is not None:
        y = y + bias
    return y.relu() if relu else y


def activate(h: Tensor, bias: Tensor) -> Tensor:
    """Bias and ReLU of a convolution: y = max(h + bias, 0).

    h (N, F); bias (F,); returns (N, F).
    """
    return (h + bias).relu()
