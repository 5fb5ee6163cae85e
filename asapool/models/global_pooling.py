"""The paper's global architecture, where all convolutions come before one pooling; and the encoder without a graph."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.kernels import Graph, Padding
from asapool.models.blocks import ConvBlock
from asapool.models.config import ModelConfig
from asapool.models.hierarchical import MakePool
from asapool.models.shape import LevelShape


class GlobalEncoder(nn.Module):
    """One row per graph, of at most 256 numbers: r = pool(x^L), x^l = ReLU(conv(x^{l-1}, A)).

    With `jumping` the largest value that any layer gave is pooled, max_l x^l, which keeps the width.

    Args:
        config: hidden, levels, conv, batch_norm, jumping and backend are read.
        in_channels: F, features of a node.
        make_pool: returns the pooling layer, a module with `out_channels` and `forward(x, pattern)`.
    """

    def __init__(self, config: ModelConfig, in_channels: int, make_pool: MakePool) -> None:
        super().__init__()
        self.jumping = config.jumping
        widths = [in_channels] + [config.hidden] * (config.levels - 1)
        self.convs = nn.ModuleList(ConvBlock(config, width) for width in widths)
        self.pool = make_pool(LevelShape(in_channels=config.hidden))
        self.out_channels = cast(int, self.pool.out_channels)

    def forward(self, x: Tensor, graph: Graph) -> tuple[Tensor, None]:
        """x (N, F) of a packed graph; returns r (B, out) and nothing to add to the loss."""
        layers = []
        for conv in self.convs:
            x = conv(x, graph)
            layers.append(x)
        x = torch.stack(layers).amax(0) if self.jumping else x
        return self.pool(x, graph.pattern), None


class SumEncoder(nn.Module):
    """What can be known without a single edge: r = ReLU(W Σ_i x_i + b)."""

    def __init__(self, config: ModelConfig, in_channels: int) -> None:
        super().__init__()
        self.out_channels = config.hidden
        self.lin = nn.Linear(in_channels, config.hidden)

    def forward(self, x: Tensor, ptr: Tensor | Padding) -> tuple[Tensor, None]:
        """x (N, F), ptr (B+1,), or padded x (B, N, F); returns r (B, hidden) and nothing to add to the loss."""
        if isinstance(ptr, Padding):
            return self.lin(kernels.readout(x, ptr, ("sum",))).relu(), None
        B = ptr.numel() - 1
        batch = torch.repeat_interleave(ptr.diff(), output_size=x.size(0))
        return self.lin(x.new_zeros(B, x.size(1)).index_add(0, batch, x)).relu(), None
