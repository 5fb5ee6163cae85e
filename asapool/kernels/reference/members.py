"""Memberships that sum to 1 for every node: each node is divided among the kept clusters."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern
from asapool.kernels.reference.pattern import from_keys

JOINED, NOT_KEPT = -1, -2  # entries without a membership α


def join(clusters: Pattern, pattern: Pattern, fitness: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """The kept clusters, extended so that every node is in at least one of them.

    A node in no kept cluster joins the nearest kept centre by hops, regardless of the direction of edges; ties go to
    the fittest, then to the lower number. If no centre can be reached, it joins the fittest of the graph.

    fitness (N,); perm (K,), ptr (B+1,) of the kept clusters. Returns the structure, in which other clusters have only
    their diagonal entry, and for each entry its position in `clusters`, -1 (JOINED) for a node that joined and -2
    (NOT_KEPT) for the diagonal of a cluster that was not kept, (E_m,).
    """
    N, row, col = pattern.diag.numel(), clusters.row, clusters.col
    is_kept = torch.zeros(N, dtype=torch.bool, device=perm.device).index_fill(0, perm, True)
    covered = torch.zeros_like(is_kept).index_fill(0, col[is_kept[row]], True)
    by_number = torch.sort(perm).values
    best = by_number[torch.argsort(-fitness.detach()[by_number], stable=True)]
    rank = torch.full((N,), -1, device=perm.device).index_copy(
        0, best, torch.arange(best.numel(), 0, -1, device=perm.device)
    )  # the fittest has the highest rank, K; nodes that are not kept have -1
    label = rank
    while True:  # one hop per iteration; a label that arrived earlier is nearer and is not replaced
        offered = torch.full_like(label, -1)
        offered = offered.scatter_reduce(0, pattern.row, label[pattern.col], "amax")
        offered = offered.scatter_reduce(0, pattern.col, label[pattern.row], "amax")
        spread = torch.where(label >= 0, label, offered)
        if torch.equal(spread, label):
            break
        label = spread
    batch = pattern.batch
    top = torch.full((ptr.numel() - 1,), -1, device=perm.device).scatter_reduce(0, batch, rank, "amax")
    label = torch.where(label >= 0, label, top[batch])
    uncovered = (~covered).nonzero().view(-1)
    inside = is_kept[row].nonzero().view(-1)
    dropped = (~is_kept).nonzero().view(-1)
    joined = best[best.numel() - label[uncovered]]
    key = torch.cat([row[inside] * N + col[inside], joined * N + uncovered, dropped * N + dropped])
    source = torch.cat([inside, torch.full_like(uncovered, JOINED), torch.full_like(dropped, NOT_KEPT)])
    sorted_key, place = torch.sort(key)
    return from_keys(sorted_key, pattern.ptr, N), source[place]


def share(members: Pattern, source: Tensor, alpha: Tensor, fitness: Tensor) -> Tensor:
    """Divide every node among the kept clusters that contain it: M_jp = φ_p α_pj / Σ_q φ_q α_qj.

    members, source: from `join`; alpha (E_c,); fitness (N,). Returns (E_m,), at the entry (p, j) of members: 1 for a
    node that joined a cluster, 0 at the diagonal of clusters that were not kept. If all φ_q α_qj of a node vanish, for
    example by dropout, its shares are equal.
    """
    wide = torch.promote_types(alpha.dtype, torch.float32)
    has_alpha = source >= 0
    strength = fitness.to(wide)[members.row] * alpha.to(wide)[source.clamp(min=0)]
    counts = (source != NOT_KEPT).to(wide)
    strength = torch.where(has_alpha, strength, counts)
    N, col = members.diag.numel(), members.col
    total = strength.new_zeros(N).index_add(0, col, strength)
    vanish = total <= torch.finfo(wide).tiny
    number = torch.zeros_like(total).index_add(0, col, counts)
    even = counts / number[col]
    return torch.where(vanish[col], even, strength / torch.where(vanish, 1, total)[col]).to(alpha.dtype)
