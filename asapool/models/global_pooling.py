"""The paper's global architecture, where all convolutions come before one pooling; and the encoder without a graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asapool.kernels import Graph
from asapool.models.blocks import ConvBlock
from asapool.models.config import WIDEST, ModelConfig
from asapool.nn.baselines import GlobalAttentionPool, Set2SetPool, SortPool


class GlobalEncoder(nn.Module):
    """One row per graph, of at most 256 numbers: r = pool(x^L), x^l = ReLU(conv(x^{l-1}, A)).

    With `jumping` the largest value that any layer gave is pooled, max_l x^l, which keeps the width.
    """

    def __init__(self, config: ModelConfig, in_channels: int) -> None:
        super().__init__()
        self.jumping = config.jumping
        widths = [in_channels] + [config.hidden] * (config.levels - 1)
        self.convs = nn.ModuleList(ConvBlock(config, width) for width in widths)
        self.pool = make_global_pool(config)
        self.out_channels = self.pool.out_channels

    def forward(self, x: Tensor, graph: Graph) -> tuple[Tensor, None]:
        """x (N, F) of a packed graph; returns r (B, out) and nothing to add to the loss."""
        layers = []
        for conv in self.convs:
            x = conv(x, graph)
            layers.append(x)
        x = torch.stack(layers).amax(0) if self.jumping else x
        return self.pool(x, graph.pattern), None


def make_global_pool(config: ModelConfig) -> Set2SetPool | GlobalAttentionPool | SortPool:
    """The one pooling; SortPool reads as many nodes as fit into 256 numbers."""
    if config.method == "set2set":
        return Set2SetPool(config.hidden, config.set2set_steps)
    if config.method == "global-attention":
        return GlobalAttentionPool(config.hidden, config.attention_transform)
    return SortPool(config.hidden, WIDEST // config.hidden, backend=config.backend)


class SumEncoder(nn.Module):
    """What can be known without a single edge: r = ReLU(W Σ_i x_i + b)."""

    def __init__(self, config: ModelConfig, in_channels: int) -> None:
        super().__init__()
        self.out_channels = config.hidden
        self.lin = nn.Linear(in_channels, config.hidden)

    def forward(self, x: Tensor, ptr: Tensor) -> tuple[Tensor, None]:
        """x (N, F), ptr (B+1,); returns r (B, hidden) and nothing to add to the loss."""
        B = ptr.numel() - 1
        batch = torch.repeat_interleave(ptr.diff(), output_size=x.size(0))
        return self.lin(x.new_zeros(B, x.size(1)).index_add(0, batch, x)).relu(), None
