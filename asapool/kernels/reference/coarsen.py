"""Edges of the pooled graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, fake_structure
from asapool.kernels.graph import Pattern
from asapool.kernels.limits import FULL, MANY, REFERENCE_BYTES, is_thinned, limit_of_graph, max_pooled_edges, refuse
from asapool.kernels.reference.group_gradients import Entries, Factors, add_group_gradients, graph_groups
from asapool.kernels.reference.hubs import strongest_pairs
from asapool.kernels.reference.pairs import OneGraph, add_pair_gradients, find, pair_weights
from asapool.kernels.reference.pattern import from_keys, sparse, times, times_in_op


def coarsen(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, hat: Tensor, perm: Tensor, ptr: Tensor,
    max_neighbours: int | None = None,
) -> tuple[Pattern, Tensor]:  # fmt: skip
    """Connect kept clusters that share a node or an edge: A^p = Ŝᵀ Â Ŝ with Ŝ_lp = α_{perm[p], l}.

    alpha (E_c,) over the clusters; hat (E,) = Â over the edges; perm (K,), ptr (B+1,) of the kept clusters.
    Returns the pooled structure and its weights (E^p,), differentiable with respect to both α and Â.
    A graph with more edges than asapool.kernels.limits allows is refused; with max_neighbours, only the strongest edges
    of every node are formed if a graph has many.
    """
    most, inputs = max_neighbours or 0, (*clusters.tensors[:2], alpha, *pattern.tensors[:2], hat, perm)
    if torch.compiler.is_compiling():
        weight, *structure = _coarsen_op(*inputs, pattern.ptr, ptr, most)
        return Pattern(ptr, *structure), weight
    weight, *structure = _Coarsen.apply(*inputs, pattern.ptr, ptr, most)  # type: ignore[no-untyped-call]
    return Pattern(ptr, *structure), weight


def weights_at(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, value: Tensor, perm: Tensor, pooled: Pattern
) -> Tensor:
    """Ŝᵀ V Ŝ at the entries of a pooled structure from `coarsen`; value (E,) = V over the edges."""
    inputs, ptr = (*clusters.tensors[:2], alpha, *pattern.tensors[:2], value, perm), pooled.ptr
    wanted = pooled.row * perm.numel() + pooled.col
    if torch.compiler.is_compiling():
        every, rowptr, col, *_ = _coarsen_op(*inputs, pattern.ptr, ptr, 0)
        at = torch.searchsorted(_rows(rowptr, col) * perm.numel() + col, wanted)
        return torch.index_select(every, 0, at)
    kept, entries = ptr.diff(), pooled.rowptr[ptr].diff()
    thinned = ((kept**2 > min(max_pooled_edges(), MANY)) & (entries < kept**2)).nonzero().view(-1).tolist()
    S, A = _factors(tuple(inputs), ptr, thinned)
    product = times(S.t(), times(A, S)).coalesce()
    at, met = find(_keys(product), wanted)
    weight = torch.where(met, product.values()[at], 0) if product.values().numel() else value.new_zeros(at.numel())
    for b in thinned:
        graph, here = _cut(inputs, pattern.ptr, ptr, b), slice(*pooled.rowptr[ptr[b : b + 2]].tolist())
        p, q = pooled.row[here] - ptr[b], pooled.col[here] - ptr[b]
        more: Tensor = _PairWeights.apply(alpha, value, graph, p, q)  # type: ignore[no-untyped-call]
        weight = weight.index_add(0, torch.arange(here.start, here.stop, device=weight.device), more)
    return weight


Product = Callable[[Tensor, Tensor], Tensor]
WIDEST = 1024  # kept clusters of a graph above which products of sparse matrices are faster
Inputs = tuple[Tensor, ...]  # rowptr and col of the clusters, α, rowptr and col of the edges, Â, perm


def thinned_graphs(inputs: Inputs, ptr: Tensor, kept_ptr: Tensor, most: int) -> list[int]:
    """The graphs of which only the strongest edges are formed; an error if the others have too many edges.

    A row of A^p has at most min(K, walks) entries. A walk goes from cluster p to a member j, along an edge to l, and to
    a kept cluster that contains l.
    """
    c_rowptr, c_col, _, rowptr, col, _, perm = inputs
    limit, kept = max_pooled_edges(REFERENCE_BYTES), kept_ptr.diff()
    if int((kept * kept).sum()) <= min(limit, MANY if most else FULL):
        return []
    p = _kept_clusters(c_rowptr, c_col, perm)
    holders = torch.bincount(c_col[p >= 0], minlength=rowptr.numel() - 1)
    ways = torch.zeros_like(holders).index_add(0, _rows(rowptr, col), holders[col])
    walks = torch.zeros_like(holders).index_add(0, _rows(c_rowptr, c_col), ways[c_col])[perm]
    batch = torch.repeat_interleave(kept, output_size=perm.numel())
    edges = torch.zeros_like(kept).index_add(0, batch, torch.minimum(walks, kept[batch]))
    return choose_thinned(edges.tolist(), ptr.diff().tolist(), kept.tolist(), most, limit)


def choose_thinned(edges: Sequence[int], nodes: Sequence[int], kept: Sequence[int], most: int, limit: int) -> list[int]:
    """The graphs of which only the strongest edges are formed; an error if the others have too many edges.

    Args:
        edges: upper bound on the edges of every pooled graph.
        nodes: nodes of every graph.
        kept: kept clusters of every graph.
        most: edges to keep per cluster; 0 = all.
        limit: on the pooled edges.
    """
    thinned = [b for b in range(len(edges)) if is_thinned(edges[b], kept[b], most, limit)]
    whole = sorted(set(range(len(edges))) - set(thinned), key=lambda b: (-edges[b], b))
    total = sum(edges[b] for b in whole)
    for b in whole:  # the largest first
        allowed = limit_of_graph(kept[b], limit)
        if not most and edges[b] > allowed:
            refuse(b, nodes[b], edges[b], total, allowed)
    for b in whole:
        if total <= limit:
            break
        if not most:
            refuse(b, nodes[b], edges[b], total, limit)
        thinned.append(b)
        total -= edges[b]
    return sorted(thinned)


def _cut(inputs: Inputs, ptr: Tensor, kept_ptr: Tensor, b: int) -> OneGraph:
    c_rowptr, c_col, _, rowptr, col, _, perm = inputs
    lo, hi = ptr[b : b + 2].tolist()
    k = slice(*kept_ptr[b : b + 2].tolist())
    return OneGraph.cut((c_rowptr, c_col), (rowptr, col), perm[k], lo, hi)


def _pairs(inputs: Inputs, ptr: Tensor, kept_ptr: Tensor, b: int, most: int) -> tuple[OneGraph, Tensor, Tensor]:
    graph = _cut(inputs, ptr, kept_ptr, b)
    return graph, *strongest_pairs(graph, inputs[2], inputs[5], most)


def _together(
    key: Tensor, value: Tensor, pairs: Sequence[tuple[OneGraph, Tensor, Tensor]], more: Sequence[Tensor], ptr: Tensor,
    thinned: Sequence[int],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Entries and weights of all graphs, sorted."""
    K = int(ptr[-1])
    places = [(p + ptr[b]) * K + q + ptr[b] for b, (_, p, q) in zip(thinned, pairs, strict=True)]
    key, order = torch.cat([key, *places]).sort()
    return key, torch.cat([value, *more])[order]


class _PairWeights(torch.autograd.Function):
    """Weights of chosen pairs, with gradients."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor, hat: Tensor, graph: OneGraph, p: Tensor, q: Tensor) -> Tensor:
        ctx.save_for_backward(alpha, hat, p, q)
        ctx.graph = graph
        return pair_weights(graph, alpha, hat, p, q)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        alpha, hat, p, q = ctx.saved_tensors
        dalpha, dhat = torch.zeros_like(alpha), torch.zeros_like(hat)
        add_pair_gradients(ctx.graph, alpha, hat, p, q, gradients[0], dalpha, dhat)
        return dalpha, dhat, None, None, None


def _factors(inputs: Inputs, ptr: Tensor, without: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Ŝ (N, K) and Â (N, N) as sparse matrices; Ŝ without the clusters of some graphs."""
    c_rowptr, c_col, alpha, rowptr, col, hat, perm = inputs
    N, K = rowptr.numel() - 1, perm.numel()
    p = _kept_clusters(c_rowptr, c_col, perm)
    kept = p >= 0
    for b in without:
        kept &= (p < ptr[b]) | (p >= ptr[b + 1])
    wide = torch.promote_types(alpha.dtype, torch.float32)  # torch has no sparse products in bfloat16
    S = sparse(c_col[kept], p[kept], alpha[kept].to(wide), (N, K))
    return S, sparse(_rows(rowptr, col), col, hat.to(wide), (N, N))


def _kept_clusters(c_rowptr: Tensor, c_col: Tensor, perm: Tensor) -> Tensor:
    """The kept cluster of every membership, -1 if the cluster is not kept."""
    place = perm.new_full((c_rowptr.numel() - 1,), -1)
    place[perm] = torch.arange(perm.numel(), device=perm.device)
    return place[_rows(c_rowptr, c_col)]


def _rows(rowptr: Tensor, col: Tensor) -> Tensor:
    return torch.repeat_interleave(rowptr.diff(), output_size=col.numel())


def _keys(pooled: Tensor) -> Tensor:
    i, j = pooled.indices()
    key: Tensor = i * pooled.size(0) + j
    return key


def _forward(*arguments: Any, product: Product = times_in_op) -> tuple[Tensor, ...]:
    *inputs, node_ptr, ptr, most = arguments
    alpha, hat, perm = inputs[2], inputs[5], inputs[6]
    thinned = thinned_graphs(tuple(inputs), node_ptr, ptr, most)
    S, A = _factors(tuple(inputs), ptr, thinned)
    pooled = product(S.t(), product(A, S)).coalesce()
    key, value = _keys(pooled), pooled.values().to(alpha.dtype, copy=True)
    if thinned:
        pairs = [_pairs(tuple(inputs), node_ptr, ptr, b, most) for b in thinned]
        more = [pair_weights(graph, alpha, hat, p, q) for graph, p, q in pairs]
        key, value = _together(key, value, pairs, more, ptr, thinned)
    return value, *from_keys(key, ptr, perm.numel()).structure


def _backward(
    gradient: Tensor, rowptr_p: Tensor, col_p: Tensor, *arguments: Any, product: Product = times_in_op
) -> tuple[Tensor, Tensor]:
    """∂Ŝ = Â Ŝ Gᵀ + Âᵀ Ŝ G and ∂Â = Ŝ G Ŝᵀ with G = ∂A^p, each only at the entries that exist."""
    *inputs, node_ptr, ptr, most = arguments
    alpha, hat = inputs[2], inputs[5]
    wide = torch.promote_types(alpha.dtype, torch.float32)
    thinned = thinned_graphs(tuple(inputs), node_ptr, ptr, most)
    nodes, kept = node_ptr.tolist(), ptr.tolist()
    large = [b for b in range(len(kept) - 1) if kept[b + 1] - kept[b] > WIDEST and b not in thinned]
    factors = Factors.of(tuple(inputs), wide)
    G = Entries(rowptr_p, col_p, gradient.to(wide))
    dalpha, dhat = torch.zeros_like(factors.alpha), torch.zeros_like(factors.hat)
    for n, k in graph_groups(nodes, kept, {*large, *thinned}):
        add_group_gradients(factors, G, n, k, dalpha, dhat)
    dalpha, dhat = dalpha.to(alpha.dtype), dhat.to(hat.dtype)
    if large:
        others = sorted(set(range(len(kept) - 1)) - set(large))
        more = _sparse_gradients(gradient, rowptr_p, col_p, tuple(inputs), ptr, others, product)
        dalpha, dhat = dalpha + more[0], dhat + more[1]
    for b in thinned:
        row_p, here = _rows(rowptr_p, col_p), slice(*rowptr_p[ptr[b : b + 2]].tolist())
        p, q = row_p[here] - ptr[b], col_p[here] - ptr[b]
        graph = _cut(tuple(inputs), node_ptr, ptr, b)
        add_pair_gradients(graph, alpha, hat, p, q, gradient[here], dalpha, dhat)
    return dalpha, dhat


def _sparse_gradients(
    gradient: Tensor, rowptr_p: Tensor, col_p: Tensor, inputs: Inputs, ptr: Tensor, without: Sequence[int],
    product: Product,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gradients as products of sparse matrices, without those of some graphs."""
    c_rowptr, c_col, alpha, rowptr, col, hat, perm = inputs
    S, A = _factors(inputs, ptr, without)
    row_p, whole = _rows(rowptr_p, col_p), torch.ones_like(col_p, dtype=torch.bool)
    for b in without:
        whole &= (row_p < ptr[b]) | (row_p >= ptr[b + 1])
    G = sparse(row_p[whole], col_p[whole], gradient[whole].to(S.dtype), (perm.numel(), perm.numel()))
    p = _kept_clusters(c_rowptr, c_col, perm)
    dS = product(A, product(S, G.t())) + product(A.t(), product(S, G))
    dalpha = torch.where(p >= 0, _entries(dS, c_col, p.clamp(min=0)), 0).to(alpha.dtype)
    dhat = _entries(product(S, product(G, S.t())), _rows(rowptr, col), col).to(hat.dtype)
    return dalpha, dhat


def _entries(M: Tensor, row: Tensor, col: Tensor) -> Tensor:
    """Values of a sparse matrix at the entries (row, col), 0 if it has no such entry."""
    M = M.coalesce()
    if M.values().numel() == 0:
        return M.values().new_zeros(row.numel())
    (i, j), key = M.indices(), row * M.size(1) + col
    keys = i * M.size(1) + j
    at = torch.searchsorted(keys, key).clamp(max=keys.numel() - 1)
    return torch.where(keys[at] == key, M.values()[at], 0)


def _fake(*arguments: Any) -> Any:
    alpha, perm = arguments[2], arguments[6]
    structure = fake_structure(perm.numel(), perm)
    return torch.empty_like(structure[1], dtype=alpha.dtype), *structure


class _Coarsen(torch.autograd.Function):
    """The eager path; the custom op below is the same for torch.compile, where torch.sparse.mm cannot be used."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
        weight, *structure = _forward(*inputs, product=times)
        ctx.save_for_backward(*structure[:2], *inputs[:-1])
        ctx.most = inputs[-1]
        ctx.mark_non_differentiable(*structure)
        return weight, *structure

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        dalpha, dhat = _backward(gradients[0], *ctx.saved_tensors, ctx.most, product=times)
        return None, None, dalpha, None, None, dhat, None, None, None, None


INPUTS = (
    "Tensor c_rowptr, Tensor c_col, Tensor alpha, Tensor rowptr, Tensor col, Tensor hat, Tensor perm, Tensor node_ptr, "
    "Tensor ptr, int most"
)
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


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(output[1], output[2], *inputs[:-1])
    ctx.most = inputs[-1]


def _autograd(ctx: Any, gradient: Tensor, *others: Any) -> tuple[Tensor | None, ...]:
    dalpha, dhat = _backward_op(gradient, *ctx.saved_tensors, ctx.most)
    return None, None, dalpha, None, None, dhat, None, None, None, None


_coarsen_op.register_autograd(_autograd, setup_context=_setup)
