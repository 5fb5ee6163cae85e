"""Scores of nodes: wᵀσ(x_i), and how much each cluster stands out from its neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern


def project(x: Tensor, w: Tensor, negative_slope: float = 1.0) -> Tensor:
    """One number per node: token_i = wᵀσ(x_i), σ = LeakyReLU (slope 1: the identity).

    x (N, F); w (F,); returns (N,).

    >>> project(torch.tensor([[1., -1.]]), torch.tensor([2., 5.]), 0.2)
    tensor([1.])
    """
    return (x if negative_slope == 1.0 else torch.nn.functional.leaky_relu(x, negative_slope)) @ w


def score(pattern: Pattern, weight: Tensor | None, u: Tensor, loops: bool = False) -> Tensor:
    """Compare each node with its neighbours: φ_i = u1_i + Σ_{j∈N(i)} A_ij (u2_i − u3_j).

    weight (E,), None = all ones; u (N, 3C) = u1 ‖ u2 ‖ u3; returns φ (N, C).
    `loops`: whether a node counts as its own neighbour.
    """
    wide = torch.promote_types(u.dtype, torch.float32)  # bfloat16 sums would lose most of their digits
    u1, u2, u3 = u.to(wide).chunk(3, dim=1)
    weight = u1.new_ones(1).expand(pattern.col.numel()) if weight is None else weight.to(wide)
    row = pattern.row
    A = weight if loops else weight * (row != pattern.col)
    degree = torch.zeros_like(u1[:, 0]).index_add(0, row, A)
    neighbours = torch.zeros_like(u3).index_add(0, row, A[:, None] * u3[pattern.col])
    return (u1 + degree[:, None] * u2 - neighbours).to(u.dtype)
