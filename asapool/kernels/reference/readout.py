"""Readout and normalisation over the nodes of each graph."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def readout(x: Tensor, ptr: Tensor, parts: Sequence[str] = ("mean", "max")) -> Tensor:
    """Concatenate the mean, maximum or sum of the nodes of every graph: r_b = mean_i x_i ‖ max_i x_i.

    x (N, F); ptr (B+1,); parts: any of "mean", "max" and "sum", in this order in the result; returns
    (B, len(parts)·F). A graph without nodes gets zeros.

    >>> readout(torch.tensor([[1., 4.], [3., 0.]]), torch.tensor([0, 2]))
    tensor([[2., 2., 3., 4.]])
    >>> readout(torch.tensor([[1., 4.], [3., 0.]]), torch.tensor([0, 2]), ("sum",))
    tensor([[4., 4.]])
    """
    count, (N, F) = ptr.diff(), x.shape
    batch = torch.repeat_interleave(count, output_size=N)
    rows = []
    for part in parts:
        empty = x.new_zeros(count.numel(), F)
        if part == "max":
            rows.append(empty.scatter_reduce(0, batch[:, None].expand(-1, F), x, "amax", include_self=False))
        elif part == "sum":
            rows.append(empty.index_add(0, batch, x))
        else:
            rows.append(empty.index_add(0, batch, x) / count.clamp(min=1)[:, None].to(x.dtype))
    return torch.cat(rows, dim=1)


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
