"""Memberships of nodes in clusters (a masked softmax), and how much each cluster stands out."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.graph import DensePattern

BLOCK = 16  # features at a time, so that the largest tensor is (B, N, N, 16)


def cluster_max(clusters: DensePattern, x: Tensor) -> Tensor:
    """The largest value of each feature in each cluster: m_i = max_{j∈c(i)} x_j, 0 for padding.

    x (B, N, F); returns m (B, N, F). Tied members share the gradient.
    """
    entries, lowest = clusters.entries[..., None], torch.finfo(x.dtype).min
    parts = [torch.where(entries, part[:, None], lowest).amax(2) for part in torch.split(x, BLOCK, dim=2)]
    return torch.cat(parts, dim=2) * clusters.ptr.mask[:, :, None].to(x.dtype)


def attend(clusters: DensePattern, query: Tensor | None, token: Tensor, negative_slope: float = 1.0) -> Tensor:
    """Memberships of the members of each cluster: α_ij = softmax_j(LeakyReLU(query_i + token_j)).

    query (B, N) or None, token (B, N); returns α (B, N, N), zero outside the clusters.
    """
    score = token[:, None, :] if query is None else query[:, :, None] + token[:, None, :]
    if negative_slope != 1.0:
        score = torch.nn.functional.leaky_relu(score, negative_slope)
    return _softmax(clusters, score)


def attend_dynamic(
    clusters: DensePattern, query: Tensor, token: Tensor, w: Tensor, negative_slope: float = 0.2
) -> Tensor:
    """The same with scores wᵀLeakyReLU(query_i + token_j): query and token (B, N, F), w (F,); returns α (B, N, N)."""
    score = token.new_zeros(*token.shape[:2], token.size(1))
    blocks = (torch.split(t, BLOCK, dim=-1) for t in (query, token, w))
    for q, t, w_block in zip(*blocks, strict=True):
        sums = q[:, :, None] + t[:, None]
        score = score + torch.nn.functional.leaky_relu(sums, negative_slope) @ w_block
    return _softmax(clusters, score)


def _softmax(clusters: DensePattern, score: Tensor) -> Tensor:
    """softmax_j over the members of each cluster, zero outside; score (B, N, N) or (B, 1, N)."""
    wide = score.to(torch.promote_types(score.dtype, torch.float32))
    entries = clusters.entries
    # a row of padding has no entries: the softmax of its equal scores is finite, and the mask sets it to zero
    alpha = torch.where(entries, wide, torch.finfo(wide.dtype).min).softmax(2)
    return torch.where(entries, alpha, 0.0).to(score.dtype)


def project(x: Tensor, w: Tensor, negative_slope: float = 1.0) -> Tensor:
    """One number per node: token_i = wᵀ LeakyReLU(x_i); x (B, N, F), w (F,); returns (B, N)."""
    return (x if negative_slope == 1.0 else torch.nn.functional.leaky_relu(x, negative_slope)) @ w


def score(pattern: DensePattern, weight: Tensor | None, u: Tensor, loops: bool = False) -> Tensor:
    """Compare each node with its neighbours: φ_i = u1_i + Σ_{j∈N(i)} A_ij (u2_i − u3_j).

    weight (B, N, N), None = all ones; u (B, N, 3C) = u1 ‖ u2 ‖ u3; returns φ (B, N, C).
    """
    wide = torch.promote_types(u.dtype, torch.float32)
    u1, u2, u3 = u.to(wide).chunk(3, dim=2)
    A = pattern.entries.to(wide) if weight is None else weight.to(wide)
    if not loops:
        A = torch.where(pattern.eye, 0.0, A)
    return (u1 + A.sum(2, keepdim=True) * u2 - A @ u3).to(u.dtype)
