"""Edge features of the pooled graph: a weighted mean per pooled edge, for the structure from `coarsen`.

The denominator of a mean and its D numerators are D + 1 channels of one product Ŝᵀ(A ∘ ẽ)Ŝ, ẽ = (1, e). Row p of it is
first t_l = Σ_j α_pj A_jl ẽ_jl over the nodes, then Σ_l t_l α_ql over the kept clusters q. Backward, H_pq has the
gradients of the channels of a pooled edge. Each row writes its own results, so nothing is added across threads.

S is Ŝ by cluster (row pointer, columns and values of all clusters, and the kept ones), T is Ŝ by node, A the edges (row
pointer, columns, positions (empty: their own), weights, features).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.coarsen import kept_by_node
from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, empty, fresh
from asapool.kernels.graph import Array, Pattern, Rows

WIDE = 8  # channels of a vector


@Loop
def _feature_rows(start, stop, ptrs, sizes, S, A, T, pooled, weights, means):  # type: ignore[no-untyped-def]
    """Means of the rows p of the pooled graph, and their denominators, 0 if no edge connects two clusters."""
    ptr, kept = ptrs
    rowptr, col, value, perm = S
    a_rowptr, a_col, _, a_value, attr = A
    t_rowptr, t_col, t_value = T
    p_rowptr, p_col = pooled
    D, zero, tiny = attr.shape[1], value.dtype.type(0), np.finfo(value.dtype).tiny
    row, nodes, new = (
        np.zeros((sizes[0], D + 1), value.dtype),
        np.empty(sizes[0], np.int64),
        np.ones(sizes[0], np.uint8),
    )
    place, b = np.full(sizes[1], -1, np.int64), 0  # entry of kept cluster q in row p; -1 if a thinned row has none
    for p in range(start, stop):
        while kept[b + 1] <= p:
            b += 1
        lo, k0, n = ptr[b], kept[b], 0
        for k in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            j, a = col[k], value[k]
            for e in range(a_rowptr[j], a_rowptr[j + 1]):
                w, m = a * a_value[e], a_col[e] - lo
                if w == zero:
                    continue
                if new[m]:
                    nodes[n] = m
                    new[m] = 0
                    n += 1
                row[m, 0] += w
                for d in range(D):
                    row[m, d + 1] += w * attr[e, d]
        for e in range(p_rowptr[p], p_rowptr[p + 1]):
            place[p_col[e] - k0] = e
            weights[e] = zero
            for d in range(D):
                means[e, d] = zero
        for x in range(n):
            m = nodes[x]
            new[m] = 1
            for k in range(t_rowptr[lo + m], t_rowptr[lo + m + 1]):
                e, a = place[t_col[k] - k0], t_value[k]
                if e < 0:
                    continue
                weights[e] += a * row[m, 0]
                for d in range(D):
                    means[e, d] += a * row[m, d + 1]
            for c in range(D + 1):
                row[m, c] = zero
        for e in range(p_rowptr[p], p_rowptr[p + 1]):
            place[p_col[e] - k0] = -1
            if weights[e] <= tiny:
                weights[e] = zero
            for d in range(D):
                means[e, d] = zero if weights[e] == zero else means[e, d] / weights[e]


@Loop
def _alpha_rows_backward(start, stop, ptrs, sizes, S, A, pooled, H, dalpha):  # type: ignore[no-untyped-def]
    """∂α_pj += Σ_l A_jl d_l · ẽ_jl with d_l = Σ_q α_ql H_pq; with A and pooled edges by column, for the other α.

    The channels of ẽ and H are padded to a multiple of WIDE, so that the innermost loops are vectors.
    """
    ptr, kept = ptrs
    rowptr, col, value, perm = S
    a_rowptr, a_col, a_edge, a_value, attr = A
    p_rowptr, p_col, p_edge = pooled
    C, zero = attr.shape[1], value.dtype.type(0)
    sums, b = np.zeros((sizes[0], C), value.dtype), 0
    for p in range(start, stop):
        while kept[b + 1] <= p:
            b += 1
        lo = ptr[b]
        for x in range(p_rowptr[p], p_rowptr[p + 1]):
            h, i = p_edge[x] if p_edge.size else x, perm[p_col[x]]
            for k in range(rowptr[i], rowptr[i + 1]):
                m, v = col[k] - lo, value[k]
                for c in range(0, C, WIDE):
                    for d in range(WIDE):
                        sums[m, c + d] += v * H[h, c + d]
        for k in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            j, total = col[k], zero
            for x in range(a_rowptr[j], a_rowptr[j + 1]):
                e, m, t = a_edge[x] if a_edge.size else x, a_col[x] - lo, zero
                for c in range(0, C, WIDE):
                    for d in range(WIDE):
                        t += sums[m, c + d] * attr[e, c + d]
                total += a_value[e] * t
            dalpha[k] += total
        for x in range(p_rowptr[p], p_rowptr[p + 1]):
            i = perm[p_col[x]]
            for k in range(rowptr[i], rowptr[i + 1]):
                m = col[k] - lo
                for c in range(0, C, WIDE):
                    for d in range(WIDE):
                        sums[m, c + d] = zero


@Loop
def _edge_rows_backward(start, stop, ptrs, sizes, A, T, pooled, H, dweight, dattr):  # type: ignore[no-untyped-def]
    """∂A_jl = r_jl · ẽ_jl and ∂e_jl = A_jl r_jl with r_jl = Σ_pq α_pj α_ql H_pq; empty outputs are skipped."""
    ptr, kept = ptrs
    a_rowptr, a_col, _, a_value, attr = A
    t_rowptr, t_col, t_value = T
    p_rowptr, p_col = pooled
    D, zero = attr.shape[1], attr.dtype.type(0)
    sums, r, b = np.zeros((sizes[1], D + 1), attr.dtype), np.empty(D + 1, attr.dtype), 0
    for j in range(start, stop):
        while ptr[b + 1] <= j:
            b += 1
        k0 = kept[b]
        for k in range(t_rowptr[j], t_rowptr[j + 1]):
            for h in range(p_rowptr[t_col[k]], p_rowptr[t_col[k] + 1]):
                for c in range(D + 1):
                    sums[p_col[h] - k0, c] += t_value[k] * H[h, c]
        for e in range(a_rowptr[j], a_rowptr[j + 1]):
            r[:] = zero
            for k in range(t_rowptr[a_col[e]], t_rowptr[a_col[e] + 1]):
                for c in range(D + 1):
                    r[c] += t_value[k] * sums[t_col[k] - k0, c]
            total = r[0]
            for d in range(D):
                total += r[d + 1] * attr[e, d]
                if dattr.size:
                    dattr[e, d] = a_value[e] * r[d + 1]
            if dweight.size:
                dweight[e] = total
        for k in range(t_rowptr[j], t_rowptr[j + 1]):
            for h in range(p_rowptr[t_col[k]], p_rowptr[t_col[k] + 1]):
                for c in range(D + 1):
                    sums[p_col[h] - k0, c] = zero


def _largest(ptr: Tensor, kept: Tensor) -> tuple[int, int]:
    """Largest numbers of nodes and of kept clusters of a graph."""
    return (int(ptr.diff().max()), int(kept.diff().max())) if ptr.numel() > 1 else (0, 0)


def _forward(
    clusters: Rows, edges: Rows, pooled: Rows, alpha: Tensor, weight: Tensor, edge_attr: Tensor, perm: Tensor,
    ptr: Tensor, kept: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    S, attr = (clusters.rowptr, clusters.col, array(alpha), perm.numpy()), array(edge_attr)
    A = (edges.rowptr, edges.col, edges.edge_t[:0], array(weight), attr)
    means, weights = fresh(pooled.col.size, attr.shape[1], like=alpha), fresh(pooled.col.size, like=alpha)
    arrays = (
        (ptr.numpy(), kept.numpy()),
        _largest(ptr, kept),
        S,
        A,
        kept_by_node(*S, True),
        pooled[:2],
        weights,
        means,
    )
    run_rows(_feature_rows, perm.numel(), _work(edges, pooled, attr), *arrays)
    return torch.from_numpy(means), torch.from_numpy(weights)


def _work(edges: Rows, pooled: Rows, attr: Array) -> int:
    return int(edges.col.size + pooled.col.size) * (int(attr.shape[1]) + 1) * 60


def _padded(values: Array, first: int) -> Array:
    """The columns from `first` on of an array whose width is a multiple of WIDE; the others are 0."""
    columns = values.shape[1]
    padded = np.zeros((len(values), -(-(columns + first) // WIDE) * WIDE), values.dtype)
    padded[:, first : first + columns] = values
    return padded


def _backward(
    clusters: Rows, edges: Rows, pooled: Rows, g: Tensor, alpha: Tensor, weight: Tensor, edge_attr: Tensor,
    perm: Tensor, ptr: Tensor, kept: Tensor, means: Tensor, weights: Tensor, need: list[bool],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    S, attr, A_ = (clusters.rowptr, clusters.col, array(alpha), perm.numpy()), array(edge_attr), array(weight)
    share = torch.where(weights == 0, 0, 1 / weights)[:, None] * g
    H = torch.cat([-(share * means).sum(1, keepdim=True), share], dim=1).numpy()
    here, sizes, ptrs = edges.edge_t[:0], _largest(ptr, kept), (ptr.numpy(), kept.numpy())
    work = 2 * _work(edges, pooled, attr)
    dalpha = np.zeros_like(S[2]) if need[0] else S[2][:0]
    dweight, dattr = (
        fresh(len(A_) if need[1] else 0, like=alpha),
        fresh(len(A_) if need[2] else 0, attr.shape[1], like=alpha),
    )
    A = (edges.rowptr, edges.col, here, A_, attr)
    if need[0]:
        wide, wide_H = _padded(attr, 1), _padded(H, 0)
        wide[:, 0] = 1
        for A_side, pooled_side in (((*A[:4], wide), (*pooled[:2], here)), ((*edges[2:], A_, wide), pooled[2:])):
            run_rows(_alpha_rows_backward, perm.numel(), work, ptrs, sizes, S, A_side, pooled_side, wide_H, dalpha)
    if need[1] or need[2]:
        T = kept_by_node(*S, True)
        run_rows(_edge_rows_backward, len(edges.rowptr) - 1, work, ptrs, sizes, A, T, pooled[:2], H, dweight, dattr)
    return torch.from_numpy(dalpha), torch.from_numpy(dweight), torch.from_numpy(dattr)


INPUTS = "Tensor alpha, Tensor weight, Tensor edge_attr, Tensor perm, Tensor ptr, Tensor kept"
_features_op = differentiable(
    "coarsen_features",
    patterns=3,
    inputs=INPUTS,
    outputs="(Tensor, Tensor)",
    wrt=("alpha", "weight", "edge_attr"),
    saved=f"{INPUTS}, Tensor means, Tensor weights",
    saves=lambda inputs, out: (*inputs, *out),
    forward=_forward,
    fake=lambda clusters, edges, pooled, alpha, weight, edge_attr, *rest: (
        alpha.new_empty(pooled.col.numel(), edge_attr.size(1)),
        alpha.new_empty(pooled.col.numel()),
    ),
    backward=_backward,
    backward_fake=lambda clusters, edges, pooled, g, alpha, weight, edge_attr, *rest: (
        torch.empty_like(alpha) if rest[-1][0] else empty(alpha),
        torch.empty_like(weight) if rest[-1][1] else empty(alpha),
        torch.empty_like(edge_attr) if rest[-1][2] else edge_attr.new_empty(0, edge_attr.size(1)),
    ),
)


def coarsen_features(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, weight: Tensor, edge_attr: Tensor, perm: Tensor, pooled: Pattern
) -> Tensor:
    """As reference.coarsen_features."""
    inputs = (alpha, weight, edge_attr, perm, pattern.ptr, pooled.ptr)
    means: Tensor = _features_op(clusters, pattern, pooled, *inputs)[0]
    return means
