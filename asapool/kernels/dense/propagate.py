"""Weighted sums over neighbourhoods as batched matrix products."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.graph import DensePattern


def propagate(
    pattern: DensePattern,
    weight: Tensor,
    x: Tensor,
    bias: Tensor | None = None,
    relu: bool = False,
    transpose: bool = False,
) -> Tensor:
    """y_i = Σ_j w_ij x_j, plus bias, then ReLU, each if asked.

    weight (B, N, N); x (B, N, F); bias (F,); returns (B, N, F). With transpose, y_j = Σ_i w_ij x_i.
    """
    y = (weight.transpose(1, 2) if transpose else weight) @ x
    if bias is not None:
        y = y + bias
    return y.relu() if relu else y


def activate(h: Tensor, bias: Tensor) -> Tensor:
    """max(h + bias, 0)."""
    return (h + bias).relu()


def normalise(pattern: DensePattern, hat: Tensor) -> Tensor:
    """GCN's symmetric weights: n_ij = d_i^-½ Â_ij d_j^-½ with d_i = Σ_j Â_ij; a row without weight gets zeros."""
    wide = hat.to(torch.promote_types(hat.dtype, torch.float32))
    d = wide.sum(2)
    scale = torch.where(d > 0, d, torch.ones_like(d)).rsqrt() * (d > 0)
    return (scale[:, :, None] * wide * scale[:, None, :]).to(hat.dtype)
