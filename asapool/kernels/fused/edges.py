"""Edges of a packed graph, as an edge_index and between kept nodes, without temporary arrays, which cost time.

The packed form has an entry for every self-loop; one with weight 0 is absent from the graph and not listed.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, Structure, fake_structure, register
from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, fresh
from asapool.kernels.fused.pattern import complete, rows_from
from asapool.kernels.graph import Array, Graph, Pattern, Rows


@Loop
def _list_rows(start, stop, rowptr, col, weight, first, place, listed, edge_index):  # type: ignore[no-untyped-def]
    """Rows as edges; those of row i begin at first_i, and node j is numbered place_j (empty: j)."""
    for i in range(start, stop):
        n = first[i]
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            if i != j or weight[e] != 0:
                listed[n] = weight[e]
                edge_index[0, n], edge_index[1, n] = (place[j], place[i]) if place.size else (j, i)
                n += 1


@Loop
def _list_rows_backward(start, stop, rowptr, col, weight, first, g, dweight):  # type: ignore[no-untyped-def]
    """∂weight from that of the list; an absent self-loop has none."""
    zero = g.dtype.type(0)
    for i in range(start, stop):
        n = first[i]
        for e in range(rowptr[i], rowptr[i + 1]):
            present = i != col[e] or weight[e] != 0
            dweight[e] = g[n] if present else zero
            n += present


def _first(rows: Rows, weight: Array, diag: Tensor) -> Array:
    """Where the edges of each row begin and end: rowptr, minus the absent self-loops before each row."""
    first: Array = rows.rowptr.copy()
    first[1:] -= np.cumsum(weight[diag.numpy()] == 0)
    return first


def _list(rows: Rows, weight: Tensor, diag: Tensor, place: Tensor | None) -> tuple[Tensor, Tensor]:
    w, N = array(weight), diag.numel()
    first = _first(rows, w, diag)
    listed, edge_index = fresh(first[-1], like=weight), np.empty((2, first[-1]), np.int64)
    names = np.empty(0, np.int64) if place is None else array(place)
    run_rows(_list_rows, N, 20 * w.size, rows.rowptr, rows.col, w, first, names, listed, edge_index)
    return torch.from_numpy(listed), torch.from_numpy(edge_index)


def _list_backward(rows: Rows, gradient: Tensor, weight: Tensor, diag: Tensor, need: list[bool]) -> Tensor:
    w = array(weight)
    dweight = np.empty_like(w)
    arrays = (rows.rowptr, rows.col, w, _first(rows, w, diag), gradient.numpy(), dweight)
    run_rows(_list_rows_backward, diag.numel(), 20 * w.size, *arrays)
    return torch.from_numpy(dweight)


def _fake_list(rows: Rows, weight: Tensor, diag: Tensor, place: Tensor | None) -> tuple[Tensor, Tensor]:
    E = torch.library.get_ctx().new_dynamic_size()
    return weight.new_empty(E), diag.new_empty(2, E)


_list_op = differentiable(
    "list_edges",
    patterns=1,
    inputs="Tensor weight, Tensor diag, Tensor? place",
    outputs="(Tensor, Tensor)",
    wrt=("weight",),
    saved="Tensor weight, Tensor diag",
    saves=lambda inputs, out: (inputs[0], inputs[1]),
    forward=_list,
    fake=_fake_list,
    backward=_list_backward,
    backward_fake=lambda rows, g, weight, diag, need: torch.empty_like(weight),
)


def list_edges(graph: Graph, place: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """As reference.list_edges."""
    weight, edge_index = _list_op(graph.pattern, graph.weight, graph.pattern.diag, place)
    return edge_index, weight


@Loop
def _induce_rows(start, stop, rowptr, col, perm, place, counts):  # type: ignore[no-untyped-def]
    """Entries of the kept rows and columns, ascending by their new column numbers, and the source of each."""
    cols, source = np.empty(rowptr.size + col.size, np.int64), np.empty(rowptr.size + col.size, np.int64)
    size = 0
    for p in range(start, stop):
        begin = size
        for e in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            q = place[col[e]]
            if q >= 0:
                cols[size], source[size] = q, e
                size += 1
        order = np.argsort(cols[begin:size])
        cols[begin:size], source[begin:size] = cols[begin:size][order], source[begin:size][order]
        counts[p] = size - begin
    return cols[:size], source[:size]


def _induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    place = rowptr.new_full((rowptr.numel() - 1,), -1)
    place[perm] = torch.arange(perm.numel())
    counts = torch.empty_like(perm)
    arrays = (t.numpy() for t in (rowptr, col, perm, place, counts))
    pieces = run_rows(_induce_rows, perm.numel(), 50 * col.numel(), *arrays)
    source = torch.from_numpy(np.concatenate([s for _, s in pieces])) if pieces else counts
    return (*complete(*rows_from(counts, [c for c, _ in pieces])), source)


def _fake_induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, ...]:
    six: Structure = fake_structure(perm.numel(), perm)
    return (*six, torch.empty_like(six[1]))


_induce_op = register(
    "induce",
    _induce,
    _fake_induce,
    inputs="Tensor rowptr, Tensor col, Tensor perm",
    outputs=f"({STRUCTURE}, Tensor)",
)


def induce(pattern: Pattern, weight: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """As reference.induce."""
    *six, source = _induce_op(pattern.rowptr, pattern.col, perm)
    return Pattern(ptr, *six), weight[source]
