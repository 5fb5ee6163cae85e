"""A packed graph as a list of edges, without temporary arrays, which are expensive for large graphs.

The packed form keeps a place for every self-loop; where its weight is 0 there is none, and the list leaves it out.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, fresh
from asapool.kernels.graph import Array, Graph, Rows


@Loop
def _list_rows(start, stop, rowptr, col, weight, first, place, listed, edge_index):  # type: ignore[no-untyped-def]
    """Rows as edges; those of row i begin at first_i, and node j is called place_j (empty: j)."""
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
    """Where the edges of each row begin, and where they end: as in rowptr, less the absent self-loops before it."""
    first: Array = rows.rowptr.copy()
    first[1:] -= np.cumsum(weight[diag.numpy()] == 0)
    return first


def _forward(rows: Rows, weight: Tensor, diag: Tensor, place: Tensor | None) -> tuple[Tensor, Tensor]:
    w, N = array(weight), diag.numel()
    first = _first(rows, w, diag)
    listed, edge_index = fresh(first[-1], like=weight), np.empty((2, first[-1]), np.int64)
    names = np.empty(0, np.int64) if place is None else array(place)
    run_rows(_list_rows, N, 20 * w.size, rows.rowptr, rows.col, w, first, names, listed, edge_index)
    return torch.from_numpy(listed), torch.from_numpy(edge_index)


def _backward(rows: Rows, gradient: Tensor, weight: Tensor, diag: Tensor, need: list[bool]) -> Tensor:
    w = array(weight)
    dweight = np.empty_like(w)
    arrays = (rows.rowptr, rows.col, w, _first(rows, w, diag), gradient.numpy(), dweight)
    run_rows(_list_rows_backward, diag.numel(), 20 * w.size, *arrays)
    return torch.from_numpy(dweight)


def _fake(rows: Rows, weight: Tensor, diag: Tensor, place: Tensor | None) -> tuple[Tensor, Tensor]:
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
    forward=_forward,
    fake=_fake,
    backward=_backward,
    backward_fake=lambda rows, g, weight, diag, need: torch.empty_like(weight),
)


def list_edges(graph: Graph, place: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """As reference.list_edges."""
    weight, edge_index = _list_op(graph.pattern, graph.weight, graph.pattern.diag, place)
    return edge_index, weight
