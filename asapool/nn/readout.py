"""Readouts, which turn nodes into one row per graph, and the three global pooling methods that the paper compares."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, choose
from asapool.kernels import Pattern
from asapool.nn.inputs import as_nodes, sorting


class Readout(nn.Module):
    """Concatenate mean, maximum or sum of the nodes of each graph: r_b = mean_i x_i ‖ max_i x_i.

    Args:
        parts: any of "mean", "max" and "sum", in this order in the result.
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
        """The settings that print shows."""
        return ", ".join(self.parts)


class Set2SetPool(nn.Module):
    """Read the nodes T times with a refined query: q_t = LSTM(q_{t-1} ‖ r_{t-1}), r_t = Σ_i softmax_i(x_i·q_t) x_i.

    "Order Matters: Sequence to sequence for Sets" (ICLR 2016); torch_geometric's Set2Set. Returns q_T ‖ r_T, (B, 2F).
    """

    def __init__(self, in_channels: int, steps: int = 5) -> None:
        super().__init__()
        from torch_geometric.nn import Set2Set  # imported only when needed, because it loads torch_geometric

        self.in_channels, self.out_channels = in_channels, 2 * in_channels
        self.pool = Set2Set(in_channels, processing_steps=steps)

    def forward(self, x: Tensor, pattern: Tensor | Pattern | None = None) -> Tensor:
        """x (N, F) and batch (N,), or the pattern of a packed batch; returns (B, 2F)."""
        x, pattern = as_nodes(x, pattern, self.in_channels)
        # in the precision of its weights: oneDNN has no bfloat16 LSTM for processors without AVX-512
        with torch.autocast(x.device.type, enabled=False):
            weights = self.pool.lstm.weight_ih_l0
            r: Tensor = self.pool(x.to(weights.dtype), pattern.batch, dim_size=pattern.ptr.numel() - 1)
        return r


class GlobalAttentionPool(nn.Module):
    """Sum the nodes with attention: r = Σ_i softmax_i(g·x_i + c) h(x_i), h the identity or a linear layer (transform).

    "Gated Graph Sequence Neural Networks" (ICLR 2016); torch_geometric's AttentionalAggregation. Returns (B, F).
    """

    def __init__(self, in_channels: int, transform: bool = False) -> None:
        super().__init__()
        from torch_geometric.nn import AttentionalAggregation

        self.in_channels, self.out_channels = in_channels, in_channels
        h = nn.Linear(in_channels, in_channels) if transform else None
        self.pool = AttentionalAggregation(nn.Linear(in_channels, 1), h)

    def forward(self, x: Tensor, pattern: Tensor | Pattern | None = None) -> Tensor:
        """x (N, F) and batch (N,), or the pattern of a packed batch; returns (B, F)."""
        x, pattern = as_nodes(x, pattern, self.in_channels)
        r: Tensor = self.pool(x, pattern.batch, dim_size=pattern.ptr.numel() - 1)
        return r


class SortPool(nn.Module):
    """Sort the nodes by their last feature, largest first, and concatenate the first K; small graphs are zero-padded.

    "An End-to-End Deep Learning Architecture for Graph Classification" (AAAI 2018). Ties are broken as in the paper, by
    the feature before the last and so on, so the result does not depend on node numbers. torch_geometric's
    SortAggregation is otherwise equal, but breaks ties by node number, and after a ReLU ties at 0 are common.

    >>> pool = SortPool(2, K=2)
    >>> pattern, _ = kernels.pack(torch.empty(2, 0, dtype=torch.int64), torch.tensor([0, 3, 4]), 4)
    >>> pool(torch.tensor([[1., 0.], [9., 4.], [2., 0.], [7., 7.]]), pattern).tolist()
    [[9.0, 4.0, 2.0, 0.0], [7.0, 7.0, 0.0, 0.0]]
    """

    def __init__(self, in_channels: int, K: int, *, backend: str = "auto") -> None:
        super().__init__()
        if K < 1:
            raise ConfigError(f"SortPool must keep at least one node, got K={K}")
        self.in_channels, self.K, self.out_channels = in_channels, K, K * in_channels
        self.backend = choose("backend", backend, kernels.BACKENDS)

    def forward(self, x: Tensor, pattern: Tensor | Pattern | None = None) -> Tensor:
        """x (N, F) and batch (N,), or the pattern of a packed batch; returns (B, K·F)."""
        x, pattern = as_nodes(x, pattern, self.in_channels)
        B = pattern.ptr.numel() - 1
        if x.size(0) == 0:
            return x.new_zeros(B, self.out_channels)
        # unique sorts rows by their first column, then the second; flipped, by the last column, then the one before
        _, rank = torch.unique(x.detach().flip(1), dim=0, return_inverse=True)
        count = pattern.ptr.diff().clamp(max=self.K)
        perm, ptr = kernels.select(rank.double(), pattern.ptr, count, backend=self.backend)
        batch = pattern.batch[perm]
        place = batch * self.K + torch.arange(perm.numel(), device=x.device) - ptr[batch]
        return x.new_zeros(B * self.K, self.in_channels).index_copy(0, place, x[perm]).view(B, self.out_channels)

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.in_channels}, K={self.K}"
