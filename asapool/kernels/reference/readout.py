"""One row of numbers per graph."""

from __future__ import annotations

import torch
from torch import Tensor


def readout(x: Tensor, ptr: Tensor) -> Tensor:
    """Summarise every graph by the mean and the maximum of its nodes: r_b = mean_i x_i ‖ max_i x_i.

    x (N, F); ptr (B+1,); returns (B, 2F). A graph without nodes gets zeros.

    >>> readout(torch.tensor([[1., 4.], [3., 0.]]), torch.tensor([0, 2]))
    tensor([[2., 2., 3., 4.]])
    """
    count, (N, F) = ptr.diff(), x.shape
    batch = torch.repeat_interleave(count, output_size=N)
    mean = x.new_zeros(count.numel(), F).index_add(0, batch, x) / count.clamp(min=1)[:, None].to(x.dtype)
    top = x.new_zeros(count.numel(), F).scatter_reduce(0, batch[:, None].expand(-1, F), x, "amax", include_self=False)
    return torch.cat([mean, top], dim=1)
