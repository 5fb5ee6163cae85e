"""One number per node, wᵀσ(x_i)."""

from __future__ import annotations

import torch
from torch import Tensor


def project(x: Tensor, w: Tensor, negative_slope: float = 1.0) -> Tensor:
    """One number per node: token_i = wᵀσ(x_i), σ = LeakyReLU (slope 1: the identity).

    x (N, F); w (F,); returns (N,).

    >>> project(torch.tensor([[1., -1.]]), torch.tensor([2., 5.]), 0.2)
    tensor([1.])
    """
    return (x if negative_slope == 1.0 else torch.nn.functional.leaky_relu(x, negative_slope)) @ w
