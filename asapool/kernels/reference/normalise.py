"""GCN's weights n_ij = d_i^-½ Â_ij d_j^-½."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern


def normalise(pattern: Pattern, hat: Tensor) -> Tensor:
    """GCN's symmetric weights: n_ij = d_i^-½ Â_ij d_j^-½ with d_i = Σ_j Â_ij.

    hat (E,) is Â; returns (E,). A row without weight gets zeros.
    """
    row = pattern.row
    wide = hat.to(torch.promote_types(hat.dtype, torch.float32))  # a degree in bfloat16 stands still at 256
    d = wide.new_zeros(pattern.diag.numel()).index_add(0, row, wide)
    scale = torch.where(d > 0, d, torch.ones_like(d)).rsqrt() * (d > 0)
    return (scale[row] * wide * scale[pattern.col]).to(hat.dtype)
