"""One row of numbers per graph."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from asapool.kernels.dense.graph import Padding


def readout(x: Tensor, ptr: Padding, parts: Sequence[str] = ("mean", "max")) -> Tensor:
    """Summarise every graph by the mean, maximum or sum of its real nodes, side by side.

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
