"""From nodes to one row per graph."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import choose
from asapool.nn.inputs import sorting


class Readout(nn.Module):
    """Mean, maximum and sum of the nodes of each graph, any of them side by side: r_b = mean_i x_i ‖ max_i x_i.

    Args:
        parts: any of "mean", "max" and "sum", in the order wanted.
        backend: see asapool.kernels.

    >>> Readout()(torch.tensor([[1.], [3.], [7.]]), torch.tensor([0, 0, 1]))
    tensor([[2., 3.],
            [7., 7.]])
    >>> Readout(("sum",))(torch.tensor([[1.], [3.], [7.]]), torch.tensor([0, 0, 1])).tolist()
    [[4.0], [7.0]]
    """

    def __init__(self, parts: Sequence[str] = ("mean", "max"), *, backend: str = "auto") -> None:
        super().__init__()
        self.parts = kernels.check_readout(parts)
        self.backend = choose("backend", backend, kernels.BACKENDS)

    def forward(self, x: Tensor, batch: Tensor | None = None, *, ptr: Tensor | None = None) -> Tensor:
        """x (N, F); batch (N,), or ptr (B+1,); returns (B, len(parts)·F)."""
        if ptr is None:
            batch = torch.zeros(x.size(0), dtype=torch.int64, device=x.device) if batch is None else batch
            order = sorting(batch)
            if order is not None:
                x, batch = x[order], batch[order]
            ptr = torch.cat([batch.new_zeros(1), torch.bincount(batch).cumsum(0)])
        return kernels.readout(x, ptr, self.parts, backend=self.backend)

    def extra_repr(self) -> str:
        """What print shows."""
        return ", ".join(self.parts)
