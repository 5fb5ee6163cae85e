"""Edges of the pooled graph."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.graph import Graph, Pattern
from asapool.kernels.reference.pattern import from_keys, sparse, times


def coarsen(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, hat: Tensor, perm: Tensor, ptr: Tensor
) -> tuple[Pattern, Tensor]:
    """Connect kept clusters that share a node or an edge: A^p = Ŝᵀ Â Ŝ with Ŝ_lp = α_{perm[p], l}.

    alpha (E_c,) over the clusters; hat (E,) = Â over the edges; perm (K,), ptr (B+1,) of the kept.
    Returns the pooled structure and its weights (E^p,), differentiable with respect to both α and Â.
    """
    N, K = pattern.diag.numel(), perm.numel()
    place = perm.new_full((N,), -1)
    place[perm] = torch.arange(K, device=perm.device)
    p = place[clusters.row]
    kept = p >= 0
    wide = torch.promote_types(alpha.dtype, torch.float32)  # sparse products know no bfloat16
    S = sparse(clusters.col[kept], p[kept], alpha[kept].to(wide), (N, K))
    A = sparse(pattern.row, pattern.col, hat.to(wide), (N, N))
    pooled = times(S.t(), times(A, S)).coalesce()
    i, j = pooled.indices()
    return from_keys(i * K + j, ptr, K), pooled.values().to(alpha.dtype)


def strongest(graph: Graph, most: int) -> Graph:
    """Keep at most the `most` strongest edges of every node, besides the diagonal.

    Where the A of a graph is symmetric (to rounding), an edge stays only if it is among the strongest of both its ends,
    so that A stays symmetric. Ties go to the lower neighbour number.
    """
    pattern, weight = graph.pattern, graph.weight
    row, col, N = pattern.row, pattern.col, pattern.diag.numel()
    strength = weight.detach()
    # the entries of a graph stand in the same stretch by row and by column, so each graph is compared by itself
    back, batch = strength[pattern.edge_t], pattern.batch[row]
    same = (pattern.col_t == col) & torch.isclose(strength, back, rtol=1e-3, atol=1e-6)
    same &= (pattern.rowptr.diff() == pattern.rowptr_t.diff())[row]
    mutual = (torch.zeros_like(pattern.ptr).index_add(0, batch, (~same).long()) == 0)[batch]
    strength = torch.where(mutual, strength + back, strength)  # the same number from both ends, whatever the rounding
    off = row != col
    order = torch.argsort(torch.where(off, strength, torch.inf), descending=True, stable=True)
    order = order[torch.argsort(row[order], stable=True)]  # row by row: diagonal, then the strongest first
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=order.device) - pattern.rowptr[row]
    stays = rank <= most
    stays = stays & (stays[pattern.edge_t] | ~mutual)
    kept = stays.nonzero().view(-1)
    return Graph(from_keys(row[kept] * N + col[kept], pattern.ptr, N), weight[kept])
