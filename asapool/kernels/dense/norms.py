"""Normalisations that leave padding out."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.graph import Padding


def graph_norm(x: Tensor, ptr: Padding, weight: Tensor, bias: Tensor, mean_scale: Tensor, eps: float) -> Tensor:
    """y_i = γ (x_i − α μ_b) / √(mean_{i∈b}(x_i − α μ_b)² + ε) + β over the real nodes of every graph.

    x (B, N, F); weight γ, bias β, mean_scale α (F,); returns (B, N, F).
    """
    mask = ptr.mask[:, :, None]
    size = ptr.sizes.clamp(min=1)[:, None, None].to(x.dtype)
    mean = torch.where(mask, x, 0.0).sum(1, keepdim=True) / size
    h = torch.where(mask, x - mean_scale * mean, 0.0)
    variance = h.square().sum(1, keepdim=True) / size
    return weight * h * (variance + eps).rsqrt() + bias


def node_statistics(x: Tensor, ptr: Padding) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance (F,) of every feature over all real nodes of the batch, and the number of these nodes."""
    mask, count = ptr.mask[:, :, None], ptr.sizes.sum().clamp(min=1)
    mean = torch.where(mask, x, 0.0).sum((0, 1)) / count
    variance = torch.where(mask, (x - mean).square(), 0.0).sum((0, 1)) / count
    return mean, variance, count
