"""Parts of all networks: a convolution with its ReLU, scaled descriptors, the layers behind the last pooling."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from asapool.errors import InputError
from asapool.kernels import Graph
from asapool.kernels.rng import dropout
from asapool.models.config import ModelConfig
from asapool.nn.convolutions import convolution
from asapool.nn.norms import NodeNorm
from asapool.nn.semantics import semantics_named


class Dropout(nn.Dropout):
    """torch.nn.Dropout that draws from the generator of its training, see asapool.kernels.rng.

    Outside a training it draws from torch's global generator, as torch's layer does.
    """

    def forward(self, input: Tensor) -> Tensor:
        """x ⊙ m / (1 − p), m ~ Bernoulli(1 − p) while training, else x."""
        return dropout(input, self.p, self.training)


class ConvBlock(nn.Module):
    """x' = ReLU(norm(conv(x, graph))), norm only if the config asks for it."""

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

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """x (N, in) of a packed graph, or (B, N, in) of a padded one; returns (…, hidden)."""
        x = self.conv(x, graph)
        return x if self.norm is None else self.norm(x, graph.pattern.ptr).relu()


class Head(nn.Module):
    """From the summary of a graph to its logits: W₂ dropout(ReLU(W₁ r))."""

    def __init__(self, config: ModelConfig, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.lin1 = nn.Linear(in_channels, config.hidden)
        self.dropout = Dropout(config.dropout)
        self.lin2 = nn.Linear(config.hidden, num_classes)

    def forward(self, r: Tensor) -> Tensor:
        """r (B, in); returns the logits (B, C)."""
        logits: Tensor = self.lin2(self.dropout(self.lin1(r).relu()))
        return logits


MOST = 8.0  # deviations from the mean to which a descriptor is cut: one wild value must not drown a molecule


class DescriptorScale(nn.Module):
    """d' = (d − mean) / deviation, cut to [−8, 8], and 0 where d is missing (NaN).

    Mean and deviation are those of the training graphs; they are buffers, so the checkpoint holds them.

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
        """Take mean and deviation from the descriptors (G, D) of the training graphs; a constant one is only moved."""
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
    """Cut graph_attr (B, counts + descriptors) into its two parts; another shape is refused."""
    expected = (B, counts + descriptors)
    if graph_attr is None or tuple(graph_attr.shape) != expected:
        given = "none" if graph_attr is None else str(tuple(graph_attr.shape))
        parts = " and ".join(["the ECFP counts"] * (counts > 0) + [f"{descriptors} descriptors"] * (descriptors > 0))
        raise InputError(f"graph_attr must hold {parts} of every graph, shape {expected}, got {given}")
    return graph_attr[:, :counts], graph_attr[:, counts:]
