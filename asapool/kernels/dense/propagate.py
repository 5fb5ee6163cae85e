"""Sums over neighbourhoods as batched matrix products: weighted sums, GCN's weights, GIN's sums with edge features."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.attend import BLOCK
from asapool.kernels.dense.graph import DensePattern


def propagate(
    pattern: DensePattern,
    weight: Tensor,
    x: Tensor,
    bias: Tensor | None = None,
    relu: bool = False,
    transpose: bool = False,
) -> Tensor:
    """y_i = Σ_j w_ij x_j, optionally plus bias, then ReLU.

    weight (B, N, N); x (B, N, F); bias (F,); returns (B, N, F). With transpose, y_j = Σ_i w_ij x_i.
    """
    y = (weight.transpose(1, 2) if transpose else weight) @ x
    if bias is not None:
        y = y + bias
    return y.relu() if relu else y


def activate(h: Tensor, bias: Tensor) -> Tensor:
    """max(h + bias, 0)."""
    return (h + bias).relu()


def normalise(pattern: DensePattern, hat: Tensor) -> Tensor:
    """GCN's symmetric weights: n_ij = d_i^-½ Â_ij d_j^-½ with d_i = Σ_j Â_ij; a row without weight gets zeros."""
    wide = hat.to(torch.promote_types(hat.dtype, torch.float32))
    d = wide.sum(2)
    scale = torch.where(d > 0, d, torch.ones_like(d)).rsqrt() * (d > 0)
    return (scale[:, :, None] * wide * scale[:, None, :]).to(hat.dtype)


def sum_neighbours(pattern: DensePattern, weight: Tensor, x: Tensor, eps: Tensor | None = None) -> Tensor:
    """y_i = (1 + ε) x_i + Σ_j A_ij x_j; weight (B, N, N), x (B, N, F); returns (B, N, F)."""
    return _scaled(x, eps) + weight @ x


def sum_messages(
    pattern: DensePattern, weight: Tensor, x: Tensor, eps: Tensor | None, edge_attr: Tensor, W: Tensor
) -> Tensor:
    """y_i = (1 + ε) x_i + Σ_j A_ij max(x_j + W e_ij, 0).

    weight (B, N, N); x (B, N, F); edge_attr (B, N, N, D); W (F, D); returns (B, N, F).
    """
    sums = []
    for x_f, W_f in zip(torch.split(x, BLOCK, dim=2), torch.split(W, BLOCK, dim=0), strict=True):
        message = (x_f[:, None] + edge_attr @ W_f.t()).relu()  # (B, N, N, features of this block)
        sums.append((weight[..., None] * message).sum(2))
    return _scaled(x, eps) + torch.cat(sums, dim=2)


def _scaled(x: Tensor, eps: Tensor | None) -> Tensor:
    return x if eps is None else (1 + eps) * x
