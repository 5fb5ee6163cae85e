"""Normalisation of every graph by itself."""

from __future__ import annotations

import torch
from torch import Tensor


def graph_norm(x: Tensor, ptr: Tensor, weight: Tensor, bias: Tensor, mean_scale: Tensor, eps: float) -> Tensor:
    """Centre and scale the nodes of every graph: y_i = γ (x_i − α μ_b) / √(mean_{i∈b}(x_i − α μ_b)² + ε) + β.

    x (N, F); ptr (B+1,); weight γ, bias β, mean_scale α (F,); μ_b = mean_{i∈b} x_i; returns (N, F).
    """
    count = ptr.diff()
    batch = torch.repeat_interleave(count, output_size=x.size(0))
    wide = torch.promote_types(x.dtype, torch.float32)  # bfloat16 sums would lose most of their digits
    size = count.clamp(min=1)[:, None].to(wide)
    h = x.to(wide)
    mean = h.new_zeros(count.numel(), h.size(1)).index_add(0, batch, h) / size
    h = h - mean_scale * mean[batch]
    variance = torch.zeros_like(mean).index_add(0, batch, h.square()) / size
    return (weight * h * (variance + eps).rsqrt()[batch] + bias).to(x.dtype)
