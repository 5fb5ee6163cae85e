"""How strongly each node belongs to each cluster."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern
from asapool.kernels.reference.propagate import feature_blocks


class _ClusterMax(torch.autograd.Function):
    """m_i = max_j x_j; members that share the maximum share its gradient, so that relabelling nodes changes nothing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, row: Tensor, col: Tensor) -> Tensor:
        m = torch.full_like(x, -torch.inf)
        for f in feature_blocks(x.size(0), col.numel(), x.size(1)):
            at = row[:, None].expand(-1, f.stop - f.start)
            m[:, f] = m[:, f].scatter_reduce(0, at, x[:, f].index_select(0, col), "amax")
        ctx.save_for_backward(x, m, row, col)
        return m

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (g,) = grads
        x, m, row, col = ctx.saved_tensors
        dx = torch.zeros_like(x)
        for f in feature_blocks(x.size(0), col.numel(), x.size(1)):
            top = (x[:, f].index_select(0, col) == m[:, f].index_select(0, row)).to(x.dtype)
            share = g[:, f] / torch.zeros_like(g[:, f]).index_add_(0, row, top)
            dx[:, f].index_add_(0, col, top * share.index_select(0, row))
        return dx, None, None


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
    """Share each cluster out among its members: α_ij = softmax_j(σ(query_i + token_j)), σ = LeakyReLU.

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
