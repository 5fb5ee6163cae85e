"""Edges of the pooled graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, fake_structure
from asapool.kernels.graph import Pattern
from asapool.kernels.limits import max_pooled_edges, refuse
from asapool.kernels.reference.pattern import from_keys, sparse, times, times_in_op


def coarsen(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, hat: Tensor, perm: Tensor, ptr: Tensor,
    max_neighbours: int | None = None,
) -> tuple[Pattern, Tensor]:  # fmt: skip
    """Connect kept clusters that share a node or an edge: A^p = Ŝᵀ Â Ŝ with Ŝ_lp = α_{perm[p], l}.

    alpha (E_c,) over the clusters; hat (E,) = Â over the edges; perm (K,), ptr (B+1,) of the kept.
    Returns the pooled structure and its weights (E^p,), differentiable with respect to both α and Â.
    A graph with more edges than asapool.kernels.limits allows is refused; max_neighbours has no effect here.
    """
    if torch.compiler.is_compiling():
        weight, *structure = _coarsen_op(*clusters.tensors[:2], alpha, *pattern.tensors[:2], hat, perm)
        return Pattern(ptr, *structure), weight
    check_size(clusters, pattern, perm, ptr)
    S, A = _factors(clusters.rowptr, clusters.col, alpha, pattern.rowptr, pattern.col, hat, perm)
    pooled = times(S.t(), times(A, S)).coalesce()
    return _pattern(pooled, ptr), pooled.values().to(alpha.dtype)


def check_size(clusters: Pattern, pattern: Pattern, perm: Tensor, ptr: Tensor) -> None:
    """Refuse a graph whose A^p may have more entries than allowed: at most min(K, walks from cluster to cluster) a row.

    A walk goes from cluster p to a member j, along an edge to l, and to a kept cluster that holds l.
    """
    limit, kept = max_pooled_edges(), ptr.diff()
    if int(kept.max()) ** 2 <= limit if kept.numel() else True:
        return
    p = _kept_clusters(clusters.rowptr, clusters.col, perm)
    holders = torch.bincount(clusters.col[p >= 0], minlength=pattern.diag.numel())
    ways = torch.zeros_like(holders).index_add(0, pattern.row, holders[pattern.col])
    walks = torch.zeros_like(holders).index_add(0, clusters.row, ways[clusters.col])[perm]
    batch = torch.repeat_interleave(kept, output_size=perm.numel())
    edges = torch.zeros_like(kept).index_add(0, batch, torch.minimum(walks, kept[batch]))
    for b in (edges > limit).nonzero().view(-1).tolist():
        refuse(b, int(pattern.ptr[b + 1] - pattern.ptr[b]), int(edges[b]))


def _factors(
    c_rowptr: Tensor, c_col: Tensor, alpha: Tensor, rowptr: Tensor, col: Tensor, hat: Tensor, perm: Tensor
) -> tuple[Tensor, Tensor]:
    """Ŝ (N, K) and Â (N, N) as sparse matrices."""
    N, K = rowptr.numel() - 1, perm.numel()
    p = _kept_clusters(c_rowptr, c_col, perm)
    kept = p >= 0
    wide = torch.promote_types(alpha.dtype, torch.float32)  # torch has no sparse products in bfloat16
    S = sparse(c_col[kept], p[kept], alpha[kept].to(wide), (N, K))
    return S, sparse(_rows(rowptr, col), col, hat.to(wide), (N, N))


def _kept_clusters(c_rowptr: Tensor, c_col: Tensor, perm: Tensor) -> Tensor:
    """The kept cluster of every membership, -1 where the cluster is not kept."""
    place = perm.new_full((c_rowptr.numel() - 1,), -1)
    place[perm] = torch.arange(perm.numel(), device=perm.device)
    return place[_rows(c_rowptr, c_col)]


def _rows(rowptr: Tensor, col: Tensor) -> Tensor:
    return torch.repeat_interleave(rowptr.diff(), output_size=col.numel())


def _pattern(pooled: Tensor, ptr: Tensor) -> Pattern:
    i, j = pooled.indices()
    return from_keys(i * pooled.size(0) + j, ptr, pooled.size(0))


def _forward(*inputs: Tensor) -> tuple[Tensor, ...]:
    S, A = _factors(*inputs)
    pooled = times_in_op(S.t(), times_in_op(A, S))
    return pooled.values().to(inputs[2].dtype, copy=True), *_pattern(pooled, inputs[-1]).structure


def _backward(gradient: Tensor, rowptr_p: Tensor, col_p: Tensor, *inputs: Tensor) -> tuple[Tensor, Tensor]:
    """∂Ŝ = Â Ŝ Gᵀ + Âᵀ Ŝ G and ∂Â = Ŝ G Ŝᵀ with G = ∂A^p, each only at the entries that exist."""
    c_rowptr, c_col, alpha, rowptr, col, hat, perm = inputs
    S, A = _factors(*inputs)
    G = sparse(_rows(rowptr_p, col_p), col_p, gradient.to(S.dtype), (perm.numel(), perm.numel()))
    p = _kept_clusters(c_rowptr, c_col, perm)
    dS = times_in_op(A, times_in_op(S, G.t())) + times_in_op(A.t(), times_in_op(S, G))
    dalpha = torch.where(p >= 0, _entries(dS, c_col, p.clamp(min=0)), 0)
    dhat = _entries(times_in_op(S, times_in_op(G, S.t())), _rows(rowptr, col), col)
    return dalpha.to(alpha.dtype), dhat.to(hat.dtype)


def _entries(M: Tensor, row: Tensor, col: Tensor) -> Tensor:
    """Entries of a sparse matrix, 0 where it has none."""
    M = M.coalesce()
    if M.values().numel() == 0:
        return M.values().new_zeros(row.numel())
    (i, j), key = M.indices(), row * M.size(1) + col
    keys = i * M.size(1) + j
    at = torch.searchsorted(keys, key).clamp(max=keys.numel() - 1)
    return torch.where(keys[at] == key, M.values()[at], 0)


def _fake(
    c_rowptr: Tensor, c_col: Tensor, alpha: Tensor, rowptr: Tensor, col: Tensor, hat: Tensor, perm: Tensor
) -> Any:
    structure = fake_structure(perm.numel(), perm)
    return torch.empty_like(structure[1], dtype=alpha.dtype), *structure


INPUTS = "Tensor c_rowptr, Tensor c_col, Tensor alpha, Tensor rowptr, Tensor col, Tensor hat, Tensor perm"
_coarsen_op = torch.library.custom_op(
    "asapool::reference_coarsen", _forward, mutates_args=(), schema=f"({INPUTS}) -> (Tensor, {STRUCTURE})"
)
_coarsen_op.register_fake(_fake)
_backward_op = torch.library.custom_op(
    "asapool::reference_coarsen_backward",
    _backward,
    mutates_args=(),
    schema=f"(Tensor gradient, Tensor rowptr_p, Tensor col_p, {INPUTS}) -> (Tensor, Tensor)",
)
_backward_op.register_fake(
    lambda gradient, rowptr_p, col_p, *inputs: (torch.empty_like(inputs[2]), torch.empty_like(inputs[5]))
)


def _setup(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(output[1], output[2], *inputs)


def _autograd(ctx: Any, gradient: Tensor, *others: Any) -> tuple[Tensor | None, ...]:
    dalpha, dhat = _backward_op(gradient, *ctx.saved_tensors)
    return None, None, dalpha, None, None, dhat, None


_coarsen_op.register_autograd(_autograd, setup_context=_setup)
