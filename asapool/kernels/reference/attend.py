"""Memberships of nodes in clusters by attention: cluster maxima, softmax and dynamic scores."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from asapool.kernels.graph import Pattern
from asapool.kernels.reference.propagate import entry_blocks


class _ClusterMax(torch.autograd.Function):
    """m_i = max_j x_j; tied members share the gradient equally, so that relabelling nodes changes nothing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, row: Tensor, col: Tensor) -> Tensor:
        m = torch.full_like(x, -torch.inf)
        for e in entry_blocks(col.numel(), x.size(1)):
            at = row[e, None].expand(-1, x.size(1))
            m.scatter_reduce_(0, at, x.index_select(0, col[e]), "amax")
        ctx.save_for_backward(x, m, row, col)
        return m

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (g,) = grads
        x, m, row, col = ctx.saved_tensors
        blocks = list(entry_blocks(col.numel(), x.size(1)))
        ties, dx = torch.zeros_like(x), torch.zeros_like(x)
        for e in blocks:
            ties.index_add_(0, row[e], _is_top(x, m, row[e], col[e]))
        share = g / ties
        for e in blocks:
            dx.index_add_(0, col[e], _is_top(x, m, row[e], col[e]) * share.index_select(0, row[e]))
        return dx, None, None


def _is_top(x: Tensor, m: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return (x.index_select(0, j) == m.index_select(0, i)).to(x.dtype)


def cluster_max(clusters: Pattern, x: Tensor) -> Tensor:
    """The largest value of each feature in each cluster: m_i = max_{j∈c(i)} x_j.

    x (N, F); returns m (N, F).
    """
    row, col = clusters.row, clusters.col
    if torch.compiler.is_compiling():  # see propagate
        members = x.index_select(0, col)
        return torch.full_like(x, -torch.inf).scatter_reduce(0, row[:, None].expand_as(members), members, "amax")
    m: Tensor = _ClusterMax.apply(x, row, col)  # type: ignore[no-untyped-call]
    return m


def attend(clusters: Pattern, query: Tensor | None, token: Tensor, negative_slope: float = 1.0) -> Tensor:
    """Memberships of the members of each cluster: α_ij = softmax_j(σ(query_i + token_j)), σ = LeakyReLU.

    query (N,) or None, token (N,); returns α (E,). With slope 1, σ is the identity and the query cancels in the
    softmax.
    """
    row, col = clusters.row, clusters.col
    score = token[col] if query is None else query[row] + token[col]
    if negative_slope != 1.0:
        score = torch.nn.functional.leaky_relu(score, negative_slope)
    return softmax_rows(clusters, score)


def softmax_rows(clusters: Pattern, score: Tensor) -> Tensor:
    """α_ij = softmax_j(score_ij) over the members of each cluster; score (E,), returns (E,)."""
    row = clusters.row
    wide = score.to(torch.promote_types(score.dtype, torch.float32))
    top = wide.new_full((clusters.diag.numel(),), -torch.inf).scatter_reduce(0, row, wide.detach(), "amax")
    power = (wide - top[row]).exp()
    total = torch.zeros_like(top).index_add(0, row, power)
    return (power / total[row]).to(score.dtype)


def attend_dynamic(clusters: Pattern, query: Tensor, token: Tensor, w: Tensor, negative_slope: float = 0.2) -> Tensor:
    """Memberships of the members of each cluster: α_ij = softmax_j(wᵀσ(q_i + t_j)), σ = LeakyReLU.

    query (N, F); token (N, F); w (F,); returns α (E,). The sign of q_i + t_j, where σ changes its slope, depends on
    both, so the query affects which members are weighted most.
    """
    wide = torch.promote_types(token.dtype, torch.float32)  # bfloat16 sums would lose most of their digits
    inputs = (query.to(wide), token.to(wide), w.to(wide), clusters.row, clusters.col, negative_slope)
    score: Tensor = _Scores.apply(*inputs)  # type: ignore[no-untyped-call]
    return softmax_rows(clusters, score).to(token.dtype)


class _Scores(torch.autograd.Function):
    """s_ij = wᵀσ(q_i + t_j), one block of entries at a time, which avoids an E×F tensor."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, token: Tensor, w: Tensor, row: Tensor, col: Tensor, slope: float) -> Tensor:
        ctx.save_for_backward(query, token, w, row, col)
        ctx.slope = slope
        score = token.new_zeros(col.numel())
        for e in entry_blocks(col.numel(), token.size(1)):
            score[e] = leaky_relu(query.index_select(0, row[e]) + token.index_select(0, col[e]), slope) @ w
        return score

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        query, token, w, row, col = ctx.saved_tensors
        dquery, dtoken, dw = torch.zeros_like(query), torch.zeros_like(token), torch.zeros_like(w)
        for e in entry_blocks(col.numel(), token.size(1)):
            sums = query.index_select(0, row[e]) + token.index_select(0, col[e])
            dw += g[e] @ leaky_relu(sums, ctx.slope)
            dsums = g[e, None] * torch.where(sums > 0, w, ctx.slope * w)
            dquery.index_add_(0, row[e], dsums)
            dtoken.index_add_(0, col[e], dsums)
        return dquery, dtoken, dw, None, None, None
