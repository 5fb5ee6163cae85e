"""How much each cluster stands out from its neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern


def score(pattern: Pattern, weight: Tensor | None, u: Tensor, loops: bool = False) -> Tensor:
    """Compare each node with its neighbours: φ_i = u1_i + Σ_{j∈N(i)} A_ij (u2_i − u3_j).

    weight (E,), None meaning that every entry weighs 1; u (N, 3C) = u1 ‖ u2 ‖ u3; returns φ (N, C).
    `loops` says whether the diagonal counts as a neighbour.
    """
    u1, u2, u3 = u.chunk(3, dim=1)
    if weight is None:
        weight = torch.ones_like(u[:1, 0]).expand(pattern.col.numel())
    row = pattern.row
    A = weight if loops else weight * (row != pattern.col)
    degree = torch.zeros_like(u[:, 0]).index_add(0, row, A)
    around = torch.zeros_like(u3).index_add(0, row, A[:, None] * u3[pattern.col])
    return u1 + degree[:, None] * u2 - around
