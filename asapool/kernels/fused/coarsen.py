"""Edges of the pooled graph, graph by graph: in dense rows if a graph is small or dense, else along its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, fake_structure
from asapool.kernels.fused.coarsen_dense import LANE, coarsen_dense, coarsen_dense_backward, is_dense, width
from asapool.kernels.fused.coarsen_sparse import alpha_backward, by_node, coarsen_sparse, grow, hat_backward
from asapool.kernels.fused.compiled import Loop, helper, run_rows
from asapool.kernels.fused.operation import PATTERN_FIELDS, array, differentiable, empty
from asapool.kernels.fused.pattern import complete, rows_from
from asapool.kernels.fused.thinning import mutual, one_graph, thinned_graphs, with_pairs
from asapool.kernels.fused.vectors import scratch_rows
from asapool.kernels.graph import Array, Pattern, Rows
from asapool.kernels.reference.pairs import add_pair_gradients

STRETCH = 256  # kept clusters of a large graph that form one unit of work


@Loop
def _units(ptr, kept, rowptr, row_by_row, left_out):  # type: ignore[no-untyped-def]
    """The units of work, and their estimated total time: a graph in dense rows, or a range of rows of a sparse one.

    Each row is: first node, nodes, first kept cluster, kept clusters, whether dense, for a sparse graph the first and
    last row of A^p and of Â that belong to the unit, and whether its rows are thinned (never if dense).
    """
    count, work = 0, 0
    for b in range(ptr.size - 1):
        if left_out[b]:
            continue
        n, k, E = ptr[b + 1] - ptr[b], kept[b + 1] - kept[b], rowptr[ptr[b + 1]] - rowptr[ptr[b]]
        dense = is_dense(n, k, E) and not row_by_row[b]
        count += 1 if dense else (k + STRETCH - 1) // STRETCH
        work += 3 * E * width(k) if dense else 200 * E
    units, u = np.empty((count, 10), np.int64), 0
    for b in range(ptr.size - 1):
        if left_out[b]:
            continue
        n, k, E = ptr[b + 1] - ptr[b], kept[b + 1] - kept[b], rowptr[ptr[b + 1]] - rowptr[ptr[b]]
        dense = is_dense(n, k, E) and not row_by_row[b]
        pieces = 1 if dense else (k + STRETCH - 1) // STRETCH
        for piece in range(pieces):
            units[u, 0], units[u, 1], units[u, 2], units[u, 3], units[u, 4] = ptr[b], n, kept[b], k, dense
            units[u, 5], units[u, 6] = kept[b] + piece * k // pieces, kept[b] + (piece + 1) * k // pieces
            units[u, 7], units[u, 8] = ptr[b] + piece * n // pieces, ptr[b] + (piece + 1) * n // pieces
            units[u, 9] = row_by_row[b]
            u += 1
    return units, work


@helper
def _largest(start, stop, units):  # type: ignore[no-untyped-def]
    """Largest numbers in a graph's dense rows and words in its bits, and nodes and clusters of a sparse graph."""
    numbers, words, nodes, clusters = LANE, 1, 0, 0
    for u in range(start, stop):
        n, k = units[u, 1], units[u, 3]
        if units[u, 4]:
            numbers, words = max(numbers, max(n, k) * width(k)), max(words, n * (k // 64 + 1))
        else:
            nodes, clusters = max(nodes, n), max(clusters, k)
    return numbers, words, nodes, clusters


@Loop
def _dense_units(start, stop, units, S, A, counts):  # type: ignore[no-untyped-def]
    """Rows of Ŝᵀ Â Ŝ if all graphs are dense: the same as `_coarsen_units`, but compiled in half the time."""
    kind = S[2].dtype
    numbers, words, _, _ = _largest(start, stop, units)
    scratch, bit_scratch = scratch_rows(3, numbers, S[2]), np.empty((3, words), np.uint64)
    room = 64 + 32 * (units[stop - 1, 6] - units[start, 5])
    cols, values, size = np.empty(room, np.int64), np.empty(room, kind), np.int64(0)  # 0 alone is another numba type
    for u in range(start, stop):
        block = (units[u, 0], units[u, 1], units[u, 2], units[u, 3])
        if size + block[3] * block[3] > cols.size:
            cols, values = grow(cols, values, size, block[3] * block[3])
        size = coarsen_dense(block, S, A, scratch, bit_scratch, cols, values, size, counts)
    return cols[:size], values[:size]


@Loop
def _coarsen_units(start, stop, units, S, A, T, most, counts):  # type: ignore[no-untyped-def]
    """Rows of Ŝᵀ Â Ŝ, unit by unit; most: entries that a row of a thinned graph keeps, None if no graph is thinned."""
    kind = S[2].dtype
    numbers, words, n, k = _largest(start, stop, units)
    scratch, bit_scratch = scratch_rows(3, numbers, S[2]), np.empty((3, words), np.uint64)
    lists, bits = (np.empty(n + 1, np.int64), np.empty(k + 1, np.int64)), np.zeros(k // 64 + 1, np.uint64)
    sparse_scratch = (np.zeros(n, kind), np.zeros(k, kind), *lists, np.ones(n, np.uint8), np.ones(k, np.uint8), bits)
    room = 64 + 32 * (units[stop - 1, 6] - units[start, 5])
    cols, values, size = np.empty(room, np.int64), np.empty(room, kind), np.int64(0)
    for u in range(start, stop):
        block = (units[u, 0], units[u, 1], units[u, 2], units[u, 3])
        if units[u, 4]:
            if size + block[3] * block[3] > cols.size:
                cols, values = grow(cols, values, size, block[3] * block[3])
            size = coarsen_dense(block, S, A, scratch, bit_scratch, cols, values, size, counts)
        elif most is None:
            cols, values, size = coarsen_sparse(
                units[u, 5], units[u, 6], block, S, A, T, None, sparse_scratch, cols, values, size, counts
            )
        else:
            cols, values, size = coarsen_sparse(
                units[u, 5], units[u, 6], block, S, A, T, most if units[u, 9] else 0, sparse_scratch, cols, values,
                size, counts,
            )  # fmt: skip
    return cols[:size], values[:size]


@Loop
def _dense_units_backward(start, stop, units, S, S_t, A, A_t, G, need, dalpha, dhat):  # type: ignore[no-untyped-def]
    """Gradients of the graphs in dense rows."""
    numbers, _, _, _ = _largest(start, stop, units)
    scratch = scratch_rows(5, numbers, S[2])
    for u in range(start, stop):
        block = (units[u, 0], units[u, 1], units[u, 2], units[u, 3])
        coarsen_dense_backward(block, S, S_t, A, A_t, G, scratch, need, dalpha, dhat)


@Loop
def _alpha_units_backward(start, stop, units, S, A, G, dalpha):  # type: ignore[no-untyped-def]
    """∂α of the sparse graphs; A and G with their mirrored values."""
    _, _, n, _ = _largest(start, stop, units)
    d = np.zeros((n, 2), S[2].dtype)
    for u in range(start, stop):
        block = (units[u, 0], units[u, 1], units[u, 2], units[u, 3])
        alpha_backward(units[u, 5], units[u, 6], block, S, A, G, d, dalpha)


@Loop
def _hat_units_backward(start, stop, units, A, T, G, dhat):  # type: ignore[no-untyped-def]
    """∂Â of the sparse graphs."""
    _, _, _, k = _largest(start, stop, units)
    r = np.zeros(k, dhat.dtype)
    for u in range(start, stop):
        block = (units[u, 0], units[u, 1], units[u, 2], units[u, 3])
        hat_backward(units[u, 7], units[u, 8], block, A, T, G, r, dhat)


@Loop
def kept_by_node(rowptr, col, value, perm, wanted):  # type: ignore[no-untyped-def]
    """Ŝ by node; empty unless wanted."""
    return by_node((rowptr, col, value, perm if wanted else perm[:0]), rowptr.size - 1 if wanted else 0)


def _forward(
    clusters: Rows, edges: Rows, alpha: Tensor, hat: Tensor, perm: Tensor, ptr: Tensor, kept: Tensor, most: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    perm_, ptr_, kept_ = perm.numpy(), ptr.numpy(), kept.numpy()
    S = (clusters.rowptr, clusters.col, array(alpha), perm_)
    A = (edges.rowptr, edges.col, array(hat))
    row_by_row, by_pairs = thinned_graphs(clusters, edges, perm_, ptr_, kept_, most)
    left_out = np.zeros_like(row_by_row)
    left_out[by_pairs] = True
    units, work = _units(ptr_, kept_, edges.rowptr, row_by_row, left_out)
    counts = torch.zeros_like(perm) if by_pairs else torch.empty_like(perm)
    if units[:, 4].all():
        pieces = run_rows(_dense_units, len(units), work, units, S, A, counts.numpy())
    else:
        T, keep = kept_by_node(*S, True), most if row_by_row.any() else None
        pieces = run_rows(_coarsen_units, len(units), work, units, S, A, T, keep, counts.numpy())
    values = np.concatenate([v for _, v in pieces]) if pieces else S[2][:0].copy()
    cols = [c for c, _ in pieces]
    if row_by_row.any():
        formed = counts.numpy(), np.concatenate(cols), values
        thinned, col, values = mutual(formed, edges, A[2], ptr_, kept_, row_by_row)
        counts, cols = torch.from_numpy(thinned), [col]
    if by_pairs:
        col, values = with_pairs(clusters, edges, alpha, hat, perm, ptr_, kept_, by_pairs, most, counts, cols, values)
        cols = [col]
    return torch.from_numpy(values), *complete(*rows_from(counts, cols))


def _backward(
    clusters: Rows, edges: Rows, gradient: Tensor, alpha: Tensor, hat: Tensor, perm: Tensor, ptr: Tensor, kept: Tensor,
    rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, edge_t: Tensor, most: int, need: list[bool],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    S = (clusters.rowptr, clusters.col, array(alpha), perm.numpy())
    A, G = (edges.rowptr, edges.col, array(hat)), (rowptr.numpy(), col.numpy(), gradient.numpy())
    ptr_, kept_, left_out = ptr.numpy(), kept.numpy(), np.zeros(ptr.numel() - 1, np.bool_)
    by_pairs = thinned_graphs(clusters, edges, S[3], ptr_, kept_, most)[1] if most else []
    left_out[by_pairs] = True
    units, work = _units(ptr_, kept_, edges.rowptr, np.zeros_like(left_out), left_out)
    dalpha = np.zeros_like(S[2]) if need[0] else S[2][:0]
    dhat = (np.zeros_like(A[2]) if by_pairs else np.empty_like(A[2])) if need[1] else A[2][:0]
    dense = units[:, 4] == 1
    asked = (need[0], need[1])
    T = kept_by_node(*S, need[1])
    run_rows(_dense_units_backward, int(dense.sum()), work, units[dense], S, T, A, edges[2:], G, asked, dalpha, dhat)
    if not dense.all():
        sparse = units[~dense]
        pooled = Rows(*(t.numpy() for t in (rowptr, col, rowptr_t, col_t, edge_t)))
        if need[0]:
            for A_both, G_both in _mirrored(edges, A[2], pooled, G[2]):
                run_rows(_alpha_units_backward, len(sparse), work, sparse, S, A_both, G_both, dalpha)
        if need[1]:
            run_rows(_hat_units_backward, len(sparse), work, sparse, A, T, G, dhat)
    results = torch.from_numpy(dalpha), torch.from_numpy(dhat)
    for b in by_pairs:
        here = slice(int(rowptr[kept_[b]]), int(rowptr[kept_[b + 1]]))
        p = torch.repeat_interleave(rowptr[kept_[b] : kept_[b + 1] + 1].diff())
        graph = one_graph(clusters, edges, perm, ptr_, kept_, b)
        da, dh = (t if t.numel() else torch.zeros_like(like) for t, like in zip(results, (alpha, hat), strict=True))
        add_pair_gradients(graph, alpha, hat, p, col[here] - int(kept_[b]), gradient[here], da, dh)
    return results


def _mirrored(edges: Rows, hat: Array, pooled: Rows, g: Array) -> list[tuple[Any, Any]]:
    """Â and G with their mirrored values: in one pass if the structures are symmetric, else in two."""
    hat_t, g_t = hat[edges.edge_t], g[pooled.edge_t]
    if all(np.array_equal(P.rowptr, P.rowptr_t) and np.array_equal(P.col, P.col_t) for P in (edges, pooled)):
        return [((edges.rowptr, edges.col, hat, hat_t), (pooled.rowptr, pooled.col, g, g_t))]
    no_hat, no_g = np.zeros_like(hat), np.zeros_like(g)
    return [
        ((edges.rowptr, edges.col, hat, no_hat), (pooled.rowptr, pooled.col, g, no_g)),
        ((edges.rowptr_t, edges.col_t, hat_t, no_hat), (pooled.rowptr_t, pooled.col_t, g_t, no_g)),
    ]


def _fake(perm: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    six = fake_structure(perm.numel(), perm)
    return torch.empty_like(six[1], dtype=alpha.dtype), *six


TENSORS = "Tensor alpha, Tensor hat, Tensor perm, Tensor ptr, Tensor kept"
_coarsen_op = differentiable(
    "coarsen",
    patterns=2,
    inputs=f"{TENSORS}, int most",
    outputs=f"(Tensor, {STRUCTURE})",
    wrt=("alpha", "hat"),
    saved=f"{TENSORS}, " + ", ".join(f"Tensor {name}" for name in PATTERN_FIELDS) + ", int most",
    saves=lambda inputs, out: (*inputs[:5], out[1], out[2], out[4], out[5], out[6], inputs[5]),
    forward=_forward,
    fake=lambda clusters, edges, alpha, hat, perm, *rest: _fake(perm, alpha),
    backward=_backward,
    backward_fake=lambda clusters, edges, g, alpha, hat, *rest: (
        torch.empty_like(alpha) if rest[-1][0] else empty(alpha),
        torch.empty_like(hat) if rest[-1][1] else empty(hat),
    ),
)


def coarsen(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, hat: Tensor, perm: Tensor, ptr: Tensor,
    max_neighbours: int | None = None,
) -> tuple[Pattern, Tensor]:  # fmt: skip
    """As reference.coarsen."""
    weight, *six = _coarsen_op(clusters, pattern, alpha, hat, perm, pattern.ptr, ptr, max_neighbours or 0)
    return Pattern(ptr, *six), weight
