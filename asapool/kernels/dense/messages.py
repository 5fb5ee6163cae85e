"""Sums over neighbours as GIN has them: the node itself counts 1 + ε, and edge features may enter every message."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.attend import BLOCK
from asapool.kernels.dense.graph import DensePattern


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
