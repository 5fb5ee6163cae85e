"""How many clusters a graph keeps: ⌈kN⌉ in exact decimal arithmetic."""

from __future__ import annotations

from torch import Tensor

from asapool.errors import ConfigError

BILLION = 10**9


def check_ratio(ratio: float | int) -> float | int:
    """A share in (0, 1], or a whole number of clusters of at least 1."""
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)):
        raise ConfigError(f"ratio must be a number, got {ratio!r}")
    if isinstance(ratio, int) and ratio < 1:
        raise ConfigError(f"ratio as a whole number must keep at least 1 cluster, got {ratio}")
    if isinstance(ratio, float) and not 0 < ratio <= 1:
        raise ConfigError(f"ratio must lie in (0, 1], or be a whole number of clusters to keep, got {ratio}")
    return ratio


def kept_count(nodes: Tensor, ratio: float | int) -> Tensor:
    """⌈kN⌉ for every graph, at least 1 where there is a node; an int ratio keeps that many.

    nodes (B,) int64; returns (B,). 0.55 × 100 is 55, which floating point would make 56.

    >>> import torch
    >>> kept_count(torch.tensor([100, 3, 0]), 0.55).tolist(), kept_count(torch.tensor([100, 3]), 5).tolist()
    ([55, 2, 0], [5, 3])
    """
    if isinstance(ratio, int):
        return nodes.clamp(max=ratio)
    # in whole billionths: more digits than anyone means, and no overflow below 9·10⁹ nodes
    share = max(1, round(ratio * BILLION))
    return (nodes * share + (BILLION - 1)) // BILLION
