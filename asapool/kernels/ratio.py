"""The number of clusters that a graph keeps: ⌈kN⌉ in exact decimal arithmetic."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from asapool.errors import ConfigError

BILLION = 10**9
Counts = TypeVar("Counts", Tensor, np.ndarray[Any, np.dtype[Any]], int)


def check_ratio(ratio: float | int) -> float | int:
    """Validate a ratio: a fraction in (0, 1], or a whole number of clusters of at least 1."""
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float, np.integer, np.floating)):
        raise ConfigError(f"ratio must be a number, got {ratio!r}")
    if isinstance(ratio, (int, np.integer)):
        if not 1 <= ratio < 2**31:
            raise ConfigError(f"ratio as a whole number must keep 1 to 2³¹ − 1 clusters, got {str(ratio)[:30]}")
        return int(ratio)
    if not 0 < ratio <= 1:
        raise ConfigError(f"ratio must lie in (0, 1], or be a whole number of clusters to keep, got {ratio}")
    return float(str(ratio))  # a float32 of 0.1 means 0.1


def kept_count(nodes: Counts, ratio: float | int) -> Counts:
    """⌈kN⌉ for every graph, at least 1 if it has a node; an int ratio keeps that many.

    nodes (B,) int64, a tensor or an array, or one number; returns (B,). 0.55 × 100 gives 55, where floating point gives
    56, and 2/3 of 30 gives 20.

    >>> import torch
    >>> kept_count(torch.tensor([100, 3, 0]), 0.55).tolist(), kept_count(torch.tensor([100, 3]), 5).tolist()
    ([55, 2, 0], [5, 3])
    >>> kept_count(torch.tensor([3, 30]), 2 / 3).tolist()
    [2, 20]
    >>> kept_count(np.array([100, 3, 0]), 0.55).tolist()
    [55, 2, 0]
    """
    if isinstance(ratio, int):
        return min(nodes, ratio) if isinstance(nodes, int) else nodes.clip(max=ratio)
    # in whole billionths: precise enough for any ratio, and no overflow below 4·10⁹ nodes
    share = max(1, round(ratio * BILLION))
    # a third is not a whole number of billionths: up to half a billionth per node may be rounding, and is ignored
    count: Counts = (nodes * (2 * share - 1) + (2 * BILLION - 1)) // (2 * BILLION)
    return count
