"""The paper's two architectures, hierarchical (pooling after every convolution) and global; and one without edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.kernels import Graph, Padding
from asapool.models.blocks import ConvBlock
from asapool.models.config import ModelConfig
from asapool.models.shape import LevelShape
from asapool.nn.baselines import Coarse, DiffPooling
from asapool.nn.step import PoolStep

MakePool = Callable[[LevelShape], nn.Module]


class LevelPool(Protocol):
    """What the encoder asks of a pooling layer."""

    def step(self, x: Tensor, graph: Graph, *, edges: bool = True) -> PoolStep | Coarse:
        """Pool a packed graph; edges=False leaves the pooled graph out."""


class HierarchicalEncoder(nn.Module):
    """One row per graph: r = Σ_l readout(x^l), where x^l, A^l = pool(ReLU(conv(x^{l-1}, A^{l-1})), A^{l-1}).

    Readout is mean ‖ max. With `jumping` the readouts stand side by side instead of being added.

    Args:
        config: hidden, levels, conv, batch_norm, jumping and backend are read.
        in_channels: F, features of a node.
        make_pool: returns the pooling layer of a level, a module with a method `step` (see LevelPool).
        typical_nodes: nodes of a typical graph, for layers with a fixed number of clusters.
    """

    def __init__(
        self, config: ModelConfig, in_channels: int, make_pool: MakePool, typical_nodes: int | None = None
    ) -> None:
        super().__init__()
        self.jumping, self.backend = config.jumping, config.kernels
        self.out_channels = 2 * config.hidden * (config.levels if config.jumping else 1)
        widths = [in_channels] + [config.hidden] * (config.levels - 1)
        self.convs = nn.ModuleList(ConvBlock(config, width) for width in widths)
        self.pools = nn.ModuleList(
            make_pool(LevelShape(index=index, in_channels=width, typical_nodes=typical_nodes))
            for index, width in enumerate(widths)
        )

    def forward(self, x: Tensor, graph: Graph) -> tuple[Tensor, Tensor | None]:
        """x (N, F) of a packed graph; returns r (B, out) and what is added to the loss (a scalar, None for nothing)."""
        summaries, penalty = [], None
        for step in self.steps(x, graph, last_edges=False):
            summaries.append(kernels.readout(step.x, step.ptr, backend=self.backend))
            if isinstance(step, Coarse) and step.penalty is not None:
                penalty = step.penalty if penalty is None else penalty + step.penalty
        r = torch.cat(summaries, dim=1) if self.jumping else torch.stack(summaries).sum(0)
        return r, penalty

    def steps(self, x: Tensor, graph: Graph, *, last_edges: bool = True) -> Iterator[PoolStep | Coarse]:
        """What every level's pooling did, level by level; training needs no edges behind the last one."""
        last = len(self.convs) - 1
        for level, (conv, pool) in enumerate(zip(self.convs, self.pools, strict=True)):
            z = conv(x, graph)
            edges = level < last or last_edges
            step: PoolStep | Coarse
            if isinstance(pool, DiffPooling):
                step = pool.step(x, graph, edges=edges, z=z)  # both of DiffPool's networks read the input of the level
            else:
                step = cast(LevelPool, pool).step(z, graph, edges=edges)
            yield step
            if step.after is not None:
                x, graph = step.x, step.after


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
