"""Edge features of the pooled graph."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern
from asapool.kernels.reference.coarsen import weights_at


def coarsen_features(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, weight: Tensor, edge_attr: Tensor, perm: Tensor, pooled: Pattern
) -> Tensor:
    """Average the features of the edges between two clusters.

    e^p_pq = Σ_jl Ŝ_jp A_jl Ŝ_lq e_jl / Σ_jl Ŝ_jp A_jl Ŝ_lq with Ŝ_lp = α_{perm[p], l}, and 0 if there is no such edge.

    alpha (E_c,) over the clusters; weight (E,) = A and edge_attr (E, D) over the edges; perm (K,); pooled: the
    structure from `coarsen`. Returns (E^p, D), differentiable with respect to α, A and e.
    """
    wide = torch.promote_types(edge_attr.dtype, torch.float32)  # bfloat16 sums would lose most of their digits
    S, A, e = alpha.to(wide), weight.to(wide), edge_attr.to(wide)

    def total(value: Tensor) -> Tensor:
        return weights_at(clusters, S, pattern, value, perm, pooled)

    weights = total(A)
    joined = weights > torch.finfo(wide).tiny
    sums = torch.stack([total(A * e[:, d]) for d in range(e.size(1))], dim=1)
    means = sums / torch.where(joined, weights, 1)[:, None]
    return torch.where(joined[:, None], means, 0).to(edge_attr.dtype)
