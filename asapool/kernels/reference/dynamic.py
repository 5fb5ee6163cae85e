"""Attention whose query does not cancel in the softmax."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from asapool.kernels.graph import Pattern
from asapool.kernels.reference.attend import softmax_rows
from asapool.kernels.reference.propagate import feature_blocks


def attend_dynamic(clusters: Pattern, query: Tensor, token: Tensor, w: Tensor, negative_slope: float = 0.2) -> Tensor:
    """Share each cluster out among its members: α_ij = softmax_j(wᵀσ(q_i + t_j)), σ = LeakyReLU.

    query (N, F); token (N, F); w (F,); returns α (E,). σ bends q_i + t_j where it changes its sign, which depends on
    both, so that the query decides which members count.
    """
    wide = torch.promote_types(token.dtype, torch.float32)  # bfloat16 sums would lose most of their digits
    inputs = (query.to(wide), token.to(wide), w.to(wide), clusters.row, clusters.col, negative_slope)
    score: Tensor = _Scores.apply(*inputs)  # type: ignore[no-untyped-call]
    return softmax_rows(clusters, score).to(token.dtype)


class _Scores(torch.autograd.Function):
    """s_ij = wᵀσ(q_i + t_j), one block of features at a time, so that no E×F tensor arises."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, token: Tensor, w: Tensor, row: Tensor, col: Tensor, slope: float) -> Tensor:
        ctx.save_for_backward(query, token, w, row, col)
        ctx.slope = slope
        score = token.new_zeros(col.numel())
        for f in feature_blocks(token.size(0), col.numel(), token.size(1)):
            score += leaky_relu(query[:, f].index_select(0, row) + token[:, f].index_select(0, col), slope) @ w[f]
        return score

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        query, token, w, row, col = ctx.saved_tensors
        dquery, dtoken, dw = torch.zeros_like(query), torch.zeros_like(token), torch.zeros_like(w)
        for f in feature_blocks(token.size(0), col.numel(), token.size(1)):
            sums = query[:, f].index_select(0, row) + token[:, f].index_select(0, col)
            dw[f] = g @ leaky_relu(sums, ctx.slope)
            dsums = g[:, None] * torch.where(sums > 0, w[f], ctx.slope * w[f])
            dquery[:, f].index_add_(0, row, dsums)
            dtoken[:, f].index_add_(0, col, dsums)
        return dquery, dtoken, dw, None, None, None
