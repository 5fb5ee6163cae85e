"""Weisfeiler-Lehman labels and counts, row by row and graph by graph, in 64-bit integers: equal to the reference."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.checks import check_edges, check_pointer
from asapool.kernels.fused.compiled import Loop, inline, run_rows
from asapool.kernels.fused.dropout import FIRST_, SECOND_, STEP_
from asapool.kernels.fused.operation import array, fresh
from asapool.kernels.graph import Array
from asapool.kernels.reference import subtrees as reference

GRID, FARTHEST = reference.GRID, reference.FARTHEST


@inline
def _mix(z):  # type: ignore[no-untyped-def]
    """As reference.mix, of an unsigned number."""
    z += STEP_
    z = (z ^ (z >> np.uint64(30))) * FIRST_
    z = (z ^ (z >> np.uint64(27))) * SECOND_
    return z ^ (z >> np.uint64(31))


@Loop
def _hash_rows(start, stop, x, weights, salt, label):  # type: ignore[no-untyped-def]
    """h(x_i): two weighted sums of the rounded features, mixed."""
    grid, most = x.dtype.type(GRID), x.dtype.type(FARTHEST)
    for i in range(start, stop):
        first, second = np.int64(0), np.int64(0)
        for f in range(x.shape[1]):
            v = x[i, f]
            if v != 0:
                whole = np.int64(min(max(np.rint(v * grid), -most), most))
                first += whole * weights[f, 0]
                second += whole * weights[f, 1]
        label[i] = _mix(_mix(np.uint64(first) + salt) + np.uint64(second))


@Loop
def _refine_rows(start, stop, rowptr, col, edge, step, before, label):  # type: ignore[no-untyped-def]
    """h(c_i, Σ_j h(c_j, e_ij)); `edge` has the hashes of the edges, or is empty."""
    for i in range(start, stop):
        total = np.uint64(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            token = before[col[e]]
            total += _mix(token ^ edge[e] if edge.size else token)
        label[i] = _mix(_mix(before[i] + step) + total)


@Loop
def _count_graphs(start, stop, ptr, labels, counts):  # type: ignore[no-untyped-def]
    """Every label of every depth adds one to its bucket."""
    buckets, one = counts.shape[1], counts.dtype.type(1)
    for b in range(start, stop):
        for d in range(labels.shape[0]):
            for i in range(ptr[b], ptr[b + 1]):
                counts[b, labels[d, i] % buckets] += one


@cache
def _weights(F: int, salt: int) -> Array:
    weights: Array = reference.row_weights(F, salt).numpy()
    return weights


def _hashed(x: Tensor, salt: int, out: Array) -> None:
    rows, F = x.shape
    run_rows(_hash_rows, rows, 20 * x.numel(), array(x), _weights(F, salt), np.uint64(salt), out)


def subtree_labels(x: Tensor, rowptr: Tensor, col: Tensor, depth: int, edge_attr: Tensor | None = None) -> Tensor:
    """As reference.subtree_labels."""
    if torch.compiler.is_compiling():
        return reference.subtree_labels(x, rowptr, col, depth, edge_attr)
    N, E = x.size(0), col.numel()
    check_pointer("rowptr", rowptr.numpy(), E)
    check_edges(col.numpy(), col.numpy(), N)
    labels, edge = np.empty((depth + 1, N), np.uint64), np.empty(0 if edge_attr is None else E, np.uint64)
    _hashed(x, reference.NODES, labels[0])
    if edge_attr is not None:
        _hashed(edge_attr, reference.EDGES, edge)
    for d in range(1, depth + 1):
        arrays = (rowptr.numpy(), col.numpy(), edge, np.uint64(d), labels[d - 1], labels[d])
        run_rows(_refine_rows, N, 60 * (N + E), *arrays)
    return torch.from_numpy(labels.view(np.int64))


def subtree_counts(
    x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, depth: int, buckets: int, edge_attr: Tensor | None = None
) -> Tensor:
    """As reference.subtree_counts."""
    if torch.compiler.is_compiling():
        return reference.subtree_counts(x, ptr, rowptr, col, depth, buckets, edge_attr)
    check_pointer("ptr", ptr.numpy(), x.size(0))
    labels = subtree_labels(x, rowptr, col, depth, edge_attr).numpy()
    counts = fresh(ptr.numel() - 1, buckets, like=x)
    counts.fill(0)
    run_rows(_count_graphs, counts.shape[0], 60 * labels.size, ptr.numpy(), labels, counts)
    return torch.from_numpy(counts)
