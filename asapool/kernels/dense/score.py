"""How much each cluster stands out from its neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.graph import DensePattern


def score(pattern: DensePattern, weight: Tensor | None, u: Tensor, loops: bool = False) -> Tensor:
    """Compare each node with its neighbours: φ_i = u1_i + Σ_{j∈N(i)} A_ij (u2_i − u3_j).

    weight (B, N, N), None meaning that every entry weighs 1; u (B, N, 3C) = u1 ‖ u2 ‖ u3; returns φ (B, N, C).
    """
    wide = torch.promote_types(u.dtype, torch.float32)
    u1, u2, u3 = u.to(wide).chunk(3, dim=2)
    A = pattern.entries.to(wide) if weight is None else weight.to(wide)
    if not loops:
        A = torch.where(pattern.eye, 0.0, A)
    return (u1 + A.sum(2, keepdim=True) * u2 - A @ u3).to(u.dtype)
