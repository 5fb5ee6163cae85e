"""Memberships by node: every node divides itself among the kept clusters."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern
from asapool.kernels.reference.pattern import from_keys

JOINED, NOT_KEPT = -1, -2  # entries that no membership α stands behind


def join(clusters: Pattern, pattern: Pattern, fitness: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """The kept clusters with every node in at least one of them.

    A node that no kept cluster holds joins the nearest kept centre by hops, whatever the direction of the edges; of
    several the fittest, then the one with the lower number. Where no edges lead to one, it is the fittest of the graph.

    fitness (N,); perm (K,), ptr (B+1,) of the kept. Returns the structure, in which clusters that were not kept have
    just their diagonal entry, and for each entry its position in `clusters`, -1 (JOINED) for a node that joined and -2
    (NOT_KEPT) for the diagonal of a cluster that was not kept, (E_m,).
    """
    N, row, col = pattern.diag.numel(), clusters.row, clusters.col
    is_kept = torch.zeros(N, dtype=torch.bool, device=perm.device).index_fill(0, perm, True)
    held = torch.zeros_like(is_kept).index_fill(0, col[is_kept[row]], True)
    by_number = torch.sort(perm).values
    best = by_number[torch.argsort(-fitness.detach()[by_number], stable=True)]
    rank = torch.full((N,), -1, device=perm.device).index_copy(
        0, best, torch.arange(best.numel(), 0, -1, device=perm.device)
    )  # the fittest has the highest rank, K, and all others but the kept -1
    label = rank
    while True:  # one hop in every round; a label that arrived earlier is nearer and stays
        offered = torch.full_like(label, -1)
        offered = offered.scatter_reduce(0, pattern.row, label[pattern.col], "amax")
        offered = offered.scatter_reduce(0, pattern.col, label[pattern.row], "amax")
        further = torch.where(label >= 0, label, offered)
        if torch.equal(further, label):
            break
        label = further
    batch = pattern.batch
    top = torch.full((ptr.numel() - 1,), -1, device=perm.device).scatter_reduce(0, batch, rank, "amax")
    label = torch.where(label >= 0, label, top[batch])
    alone = (~held).nonzero().view(-1)
    inside = is_kept[row].nonzero().view(-1)
    idle = (~is_kept).nonzero().view(-1)
    key = torch.cat([row[inside] * N + col[inside], best[best.numel() - label[alone]] * N + alone, idle * N + idle])
    source = torch.cat([inside, torch.full_like(alone, JOINED), torch.full_like(idle, NOT_KEPT)])
    sorted_key, place = torch.sort(key)
    return from_keys(sorted_key, pattern.ptr, N), source[place]


def share(members: Pattern, source: Tensor, alpha: Tensor, fitness: Tensor) -> Tensor:
    """Divide every node among the kept clusters that hold it: M_jp = φ_p α_pj / Σ_q φ_q α_qj.

    members, source: of `join`; alpha (E_c,); fitness (N,). Returns (E_m,), at the entry (p, j) of members: 1 for a node
    that joined a cluster, 0 at the diagonal of clusters that were not kept. Where all φ_q α_qj of a node vanish, as by
    dropout, its shares are equal.
    """
    wide = torch.promote_types(alpha.dtype, torch.float32)
    held = source >= 0
    strength = fitness.to(wide)[members.row] * alpha.to(wide)[source.clamp(min=0)]
    counts = (source != NOT_KEPT).to(wide)
    strength = torch.where(held, strength, counts)
    N, col = members.diag.numel(), members.col
    total = strength.new_zeros(N).index_add(0, col, strength)
    vanish = total <= torch.finfo(wide).tiny
    number = torch.zeros_like(total).index_add(0, col, counts)
    even = counts / number[col]
    return torch.where(vanish[col], even, strength / torch.where(vanish, 1, total)[col]).to(alpha.dtype)
