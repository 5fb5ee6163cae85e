"""From nodes to one row per graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.nn.inputs import sorting


class Readout(nn.Module):
    """Mean and maximum of the nodes of each graph, side by side: r_b = mean_i x_i ‖ max_i x_i.

    >>> Readout()(torch.tensor([[1.], [3.], [7.]]), torch.tensor([0, 0, 1]))
    tensor([[2., 3.],
            [7., 7.]])
    """

    def __init__(self, *, backend: str = "auto") -> None:
        super().__init__()
        self.backend = backend

    def forward(self, x: Tensor, batch: Tensor | None = None, *, ptr: Tensor | None = None) -> Tensor:
        """x (N, F); batch (N,), or ptr (B+1,); returns (B, 2F)."""
        if ptr is None:
            batch = torch.zeros(x.size(0), dtype=torch.int64, device=x.device) if batch is None else batch
            order = sorting(batch)
            if order is not None:
                x, batch = x[order], batch[order]
            ptr = torch.cat([batch.new_zeros(1), torch.bincount(batch).cumsum(0)])
        return kernels.readout(x, ptr, backend=self.backend)
