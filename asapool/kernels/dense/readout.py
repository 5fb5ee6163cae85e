"""Readout and normalisation over the real nodes of each graph, without padding."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from asapool.kernels.dense.graph import Padding


def readout(x: Tensor, ptr: Padding, parts: Sequence[str] = ("mean", "max")) -> Tensor:
    """Concatenate the mean, maximum or sum of the real nodes of every graph.

    x (B, N, F); parts: any of "mean", "max" and "sum"; returns (B, len(parts)·F). A graph without nodes gets zeros.
    """
    mask, sizes = ptr.mask[:, :, None], ptr.sizes[:, None]
    total = torch.where(mask, x, 0.0).sum(1)
    rows = []
    for part in parts:
        if part == "max":
            rows.append(torch.where(mask, x, torch.finfo(x.dtype).min).amax(1) * (sizes > 0).to(x.dtype))
        else:
            rows.append(total if part == "sum" else total / sizes.clamp(min=1).to(x.dtype))
    return torch.cat(rows, dim=1)


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
