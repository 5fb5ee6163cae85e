"""One row of numbers per graph."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.graph import Padding


def readout(x: Tensor, ptr: Padding) -> Tensor:
    """Summarise every graph by the mean and the maximum of its nodes: r_b = mean_i x_i ‖ max_i x_i.

    x (B, N, F); returns (B, 2F). A graph without nodes gets zeros.
    """
    mask = ptr.mask[:, :, None]
    mean = torch.where(mask, x, 0.0).sum(1) / ptr.sizes.clamp(min=1)[:, None].to(x.dtype)
    top = torch.where(mask, x, torch.finfo(x.dtype).min).amax(1) * (ptr.sizes > 0)[:, None].to(x.dtype)
    return torch.cat([mean, top], dim=1)
