"""Numbers that belong to a whole graph, such as measured or computed descriptors, on their way into the head."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from asapool.errors import InputError

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
