"""Encoders, which turn a batch into one vector per graph: the paper's hierarchical (pooling after every convolution)
and global architectures, one that ignores edges, and their building blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import InputError
from asapool.kernels import Graph, Padding
from asapool.kernels.rng import dropout
from asapool.models.config import LevelShape, ModelConfig
from asapool.nn.baselines import Coarse, DiffPooling
from asapool.nn.convolutions import convolution
from asapool.nn.hooks import apply_linear
from asapool.nn.norms import NodeNorm
from asapool.nn.semantics import semantics_named
from asapool.nn.step import PoolStep


class Dropout(nn.Dropout):
    """torch.nn.Dropout that draws from the generator of its training run, see asapool.kernels.rng.

    Outside a training run it draws from torch's global generator, as torch's layer does.
    """

    def forward(self, input: Tensor) -> Tensor:
        """x ⊙ m / (1 − p), m ~ Bernoulli(1 − p) while training, else x."""
        return dropout(input, self.p, self.training)


class HashedDropout(nn.Dropout):
    """Dropout whose mask is a hash of one random number and the position, as that of the attention.

    It is faster than torch's, and processes that share a batch compute their own rows of it only.
    """

    def __init__(self, p: float, backend: str) -> None:
        super().__init__(p)
        self.backend = backend

    def forward(self, input: Tensor) -> Tensor:
        """x ⊙ m / (1 − p), m ~ Bernoulli(1 − p) while training, else x."""
        return kernels.dropout(input, self.p, backend=self.backend) if self.training and self.p else input


class ConvBlock(nn.Module):
    """x' = ReLU(norm(conv(x, graph))), with norm only if config.batch_norm is set."""

    def __init__(self, config: ModelConfig, in_channels: int) -> None:
        super().__init__()
        self.conv = convolution(
            config.conv,
            in_channels,
            config.hidden,
            relu=not config.batch_norm,
            loops=semantics_named(config.semantics).loops,
            backend=config.kernels,
        )
        self.norm = NodeNorm(config.hidden) if config.batch_norm else None
        self.backend = config.kernels

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """x (N, in) of a packed graph, or (B, N, in) of a padded one; returns (…, hidden)."""
        x = self.conv(x, graph)
        return x if self.norm is None else self.norm.activated(x, graph.pattern.ptr, backend=self.backend)


class Head(nn.Module):
    """The logits of a graph from its vector: W₂ dropout(ReLU(W₁ r))."""

    def __init__(self, config: ModelConfig, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.lin1 = nn.Linear(in_channels, config.hidden)
        self.dropout = Dropout(config.dropout)
        self.lin2 = nn.Linear(config.hidden, num_classes)
        self.backend = config.kernels

    def forward(self, r: Tensor) -> Tensor:
        """r (B, in); returns the logits (B, C)."""
        logits: Tensor = self.lin2(self.dropout(apply_linear(self.lin1, r, self.backend).relu()))
        return logits


MOST = 8.0  # descriptors are clipped to this many deviations from the mean, so that an outlier does not dominate


class DescriptorScale(nn.Module):
    """d' = (d − mean) / deviation, clipped to [−8, 8], and 0 if d is missing (NaN).

    Mean and deviation are those of the training graphs; they are buffers, so they are part of the checkpoint.

    Args:
        channels: D, the number of descriptors.

    >>> scale = DescriptorScale(1)
    >>> scale.fit(np.array([[1.0], [3.0], [np.nan]]))
    >>> scale(torch.tensor([[5.0], [float("nan")]]))
    tensor([[3.],
            [0.]])
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("deviation", torch.ones(channels))

    def fit(self, values: npt.NDArray[np.floating]) -> None:
        """Set mean and deviation from the descriptors (G, D) of the training graphs; constant ones are only shifted."""
        known = np.isfinite(values)
        count = np.maximum(known.sum(axis=0), 1)
        filled = np.where(known, values, 0.0).astype(np.float64)
        mean = filled.sum(axis=0) / count
        deviation = np.sqrt((np.where(known, filled - mean, 0.0) ** 2).sum(axis=0) / count)
        usable = np.isfinite(deviation) & (deviation > 1e-12 * np.maximum(np.abs(mean), 1e-12))
        self.mean.copy_(torch.from_numpy(mean))
        self.deviation.copy_(torch.from_numpy(np.where(usable, deviation, 1.0)))

    def forward(self, d: Tensor) -> Tensor:
        """d (B, D); returns d' (B, D)."""
        return ((d - self.mean) / self.deviation).nan_to_num(0.0, MOST, -MOST).clamp(-MOST, MOST)


def split_graph_attr(graph_attr: Tensor | None, B: int, counts: int, descriptors: int) -> tuple[Tensor, Tensor]:
    """Split graph_attr (B, counts + descriptors) into its two parts; another shape is refused."""
    expected = (B, counts + descriptors)
    if graph_attr is None or tuple(graph_attr.shape) != expected:
        given = "none" if graph_attr is None else str(tuple(graph_attr.shape))
        parts = " and ".join(["the ECFP counts"] * (counts > 0) + [f"{descriptors} descriptors"] * (descriptors > 0))
        raise InputError(f"graph_attr must hold {parts} of every graph, shape {expected}, got {given}")
    return graph_attr[:, :counts], graph_attr[:, counts:]


MakePool = Callable[[LevelShape], nn.Module]


class LevelPool(Protocol):
    """The interface that the encoder expects of a pooling layer."""

    def step(self, x: Tensor, graph: Graph, *, edges: bool = True) -> PoolStep | Coarse:
        """Pool a packed graph; edges=False leaves the pooled graph out."""


class HierarchicalEncoder(nn.Module):
    """One row per graph: r = Σ_l readout(x^l), where x^l, A^l = pool(ReLU(conv(x^{l-1}, A^{l-1})), A^{l-1}).

    Readout is mean ‖ max. With `jumping` the readouts are concatenated instead of added.

    Args:
        config: hidden, levels, conv, batch_norm, jumping and backend are used.
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
        """x (N, F) of a packed graph; returns r (B, out) and a penalty for the loss (a scalar or None)."""
        readouts, penalty = [], None
        for step in self.steps(x, graph, last_edges=False):
            readouts.append(kernels.readout(step.x, step.ptr, backend=self.backend))
            if isinstance(step, Coarse) and step.penalty is not None:
                penalty = step.penalty if penalty is None else penalty + step.penalty
        r = torch.cat(readouts, dim=1) if self.jumping else torch.stack(readouts).sum(0)
        return r, penalty

    def steps(self, x: Tensor, graph: Graph, *, last_edges: bool = True) -> Iterator[PoolStep | Coarse]:
        """The result of every level's pooling, finest first; training needs no edges after the last one."""
        last = len(self.convs) - 1
        for level, (conv, pool) in enumerate(zip(self.convs, self.pools, strict=True)):
            z = conv(x, graph)
            edges = level < last or last_edges
            step: PoolStep | Coarse
            if isinstance(pool, DiffPooling):
                step = pool.step(x, graph, edges=edges, z=z)  # both networks of DiffPool use the input of the level
            else:
                step = cast(LevelPool, pool).step(z, graph, edges=edges)
            yield step
            if step.after is not None:
                x, graph = step.x, step.after


class GlobalEncoder(nn.Module):
    """One row per graph, of at most 256 numbers: r = pool(x^L), x^l = ReLU(conv(x^{l-1}, A)).

    With `jumping` the maximum over the layers, max_l x^l, is pooled, which keeps the width.

    Args:
        config: hidden, levels, conv, batch_norm, jumping and backend are used.
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
        """x (N, F) of a packed graph; returns r (B, out) and no penalty."""
        layers = []
        for conv in self.convs:
            x = conv(x, graph)
            layers.append(x)
        x = torch.stack(layers).amax(0) if self.jumping else x
        return self.pool(x, graph.pattern), None


class SumEncoder(nn.Module):
    """An encoder that ignores the edges: r = ReLU(W Σ_i x_i + b)."""

    def __init__(self, config: ModelConfig, in_channels: int) -> None:
        super().__init__()
        self.out_channels = config.hidden
        self.lin = nn.Linear(in_channels, config.hidden)

    def forward(self, x: Tensor, ptr: Tensor | Padding) -> tuple[Tensor, None]:
        """x (N, F), ptr (B+1,), or padded x (B, N, F); returns r (B, hidden) and no penalty."""
        if isinstance(ptr, Padding):
            return self.lin(kernels.readout(x, ptr, ("sum",))).relu(), None
        B = ptr.numel() - 1
        batch = torch.repeat_interleave(ptr.diff(), output_size=x.size(0))
        return self.lin(x.new_zeros(B, x.size(1)).index_add(0, batch, x)).relu(), None
