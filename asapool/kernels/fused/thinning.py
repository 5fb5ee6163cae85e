"""Pooled graphs with many edges, of which max_neighbours keeps the strongest: row by row, or pair by pair at hubs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.coarsen_dense import is_dense
from asapool.kernels.fused.compiled import Loop
from asapool.kernels.graph import Array, Rows
from asapool.kernels.limits import FULL, MANY, max_pooled_edges
from asapool.kernels.reference.coarsen import choose_thinned
from asapool.kernels.reference.hubs import strongest_pairs
from asapool.kernels.reference.pairs import OneGraph, pair_weights

SHORT = 1024  # up to this many walks per cluster, rows are formed walk by walk


@Loop
def _pooled_edges(b, ptr, kept, clusters, edges, perm):  # type: ignore[no-untyped-def]
    """Upper bound on the entries of A^p of graph b, the number of walks to them, and whether dense rows are used."""
    rowptr, col = clusters
    a_rowptr, a_col = edges
    lo, n, k = ptr[b], ptr[b + 1] - ptr[b], kept[b + 1] - kept[b]
    holders, ways, total, every = np.zeros(n, np.int64), np.zeros(n, np.int64), 0, 0
    for p in range(kept[b], kept[b + 1]):
        for e in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            holders[col[e] - lo] += 1
    for j in range(n):
        for e in range(a_rowptr[lo + j], a_rowptr[lo + j + 1]):
            ways[j] += holders[a_col[e] - lo]
    for p in range(kept[b], kept[b + 1]):
        walks = 0
        for e in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            walks += ways[col[e] - lo]
        total += min(k, walks)
        every += walks
    return total, every, is_dense(n, k, a_rowptr[lo + n] - a_rowptr[lo])


def thinned_graphs(
    clusters: Rows, edges: Rows, perm: Array, ptr: Array, kept: Array, most: int
) -> tuple[Array, list[int]]:
    """Which graphs are thinned row by row, and of which only the strongest edges are formed.

    Forming rows with few walks, or dense rows, is faster than searching for their strongest entries.
    """
    limit, size = max_pooled_edges(), np.diff(kept)
    row_by_row, squares = np.zeros(size.size, np.bool_), size * size
    if squares.sum() <= min(limit, MANY if most else FULL):
        return row_by_row, []
    counts, walks, dense = squares.tolist(), [0] * size.size, [0] * size.size
    for b in np.flatnonzero(squares > min(limit, MANY) // size.size).tolist():
        counts[b], walks[b], dense[b] = map(int, _pooled_edges(b, ptr, kept, clusters[:2], edges[:2], perm))
    thinned = choose_thinned(counts, np.diff(ptr).tolist(), size.tolist(), most, limit)
    thinned = [b for b in thinned if counts[b] > limit or not dense[b]]
    by_pairs = [b for b in thinned if walks[b] > SHORT * int(size[b]) and not dense[b]]
    row_by_row[sorted(set(thinned) - set(by_pairs))] = True
    return row_by_row, by_pairs


def mutual(
    pieces: tuple[Array, Array, Array], edges: Rows, hat: Array, ptr: Array, kept: Array, large: Array
) -> tuple[Array, Array, Array]:
    """Row lengths, columns and values after dropping entries of thinned graphs whose mirror image was dropped.

    This applies to graphs with a symmetric Â, so that A^p stays symmetric; see reference.strongest.
    """
    counts, cols, values = pieces
    K, end = int(kept[-1]), np.concatenate([[0], np.cumsum(counts)])
    stays = np.ones(cols.size, bool)
    for b in np.flatnonzero(large):
        rows, entries = slice(ptr[b], ptr[b + 1]), slice(edges.rowptr[ptr[b]], edges.rowptr[ptr[b + 1]])
        if not np.array_equal(edges.rowptr[rows], edges.rowptr_t[rows]):
            continue
        if not np.array_equal(edges.col[entries], edges.col_t[entries]):
            continue
        if not np.allclose(hat[entries], hat[edges.edge_t[entries]], rtol=1e-3, atol=1e-6):
            continue
        here = slice(end[kept[b]], end[kept[b + 1]])
        p, q = np.repeat(np.arange(kept[b], kept[b + 1]), counts[kept[b] : kept[b + 1]]), cols[here]
        stays[here] = np.isin(q * K + p, p * K + q)
    row = np.repeat(np.arange(K), counts)
    return np.bincount(row[stays], minlength=K), cols[stays], values[stays]


def one_graph(clusters: Rows, edges: Rows, perm: Tensor, ptr: Array, kept: Array, b: int) -> OneGraph:
    rows = [(torch.from_numpy(P.rowptr), torch.from_numpy(P.col)) for P in (clusters, edges)]
    return OneGraph.cut(rows[0], rows[1], perm[kept[b] : kept[b + 1]], int(ptr[b]), int(ptr[b + 1]))


def with_pairs(
    clusters: Rows, edges: Rows, alpha: Tensor, hat: Tensor, perm: Tensor, ptr: Array, kept: Array, by_pairs: list[int],
    most: int, counts: Tensor, cols: list[Array], values: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Columns and values with those of the graphs of which only the strongest edges are formed; updates counts."""
    more_cols, more_values, here = [], [], np.zeros(counts.numel(), np.bool_)
    for b in by_pairs:
        graph = one_graph(clusters, edges, perm, ptr, kept, b)
        p, q = strongest_pairs(graph, alpha, hat, most)
        counts[kept[b] : kept[b + 1]] = torch.bincount(p, minlength=int(kept[b + 1] - kept[b]))
        here[kept[b] : kept[b + 1]] = True
        more_cols.append(q.numpy() + kept[b])
        more_values.append(pair_weights(graph, alpha, hat, p, q).numpy())
    by_pair = np.repeat(here, counts.numpy())
    all_cols, all_values = np.empty(by_pair.size, np.int64), np.empty(by_pair.size, values.dtype)
    all_cols[~by_pair], all_values[~by_pair] = np.concatenate([np.empty(0, np.int64), *cols]), values
    all_cols[by_pair], all_values[by_pair] = np.concatenate(more_cols), np.concatenate(more_values)
    return all_cols, all_values
