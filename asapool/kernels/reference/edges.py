"""Edges of a packed graph: as an edge_index, between kept nodes, and the strongest of every node."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, fake_structure, register
from asapool.kernels.graph import Graph, Pattern
from asapool.kernels.reference.pattern import from_keys


def list_edges(graph: Graph, place: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """edge_index (2, E), row 0 = source j, row 1 = target i, and the weights; absent self-loops are left out.

    place (N,): the number of every node in the result; None = unchanged.
    """
    row, col = graph.pattern.row, graph.pattern.col
    present = _present_op(row, col, graph.weight.detach())
    edge_index = torch.stack([col[present], row[present]])
    return edge_index if place is None else place[edge_index], graph.weight[present]


_present_op = register(
    "reference_present",
    lambda row, col, weight: ((row != col) | (weight != 0)).nonzero().view(-1),
    lambda row, col, weight: row.new_empty(torch.library.get_ctx().new_dynamic_size()),
    inputs="Tensor row, Tensor col, Tensor weight",
    outputs="Tensor",
    device=None,
)


def induce(pattern: Pattern, weight: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """Keep only the edges of the input graph between kept nodes (and every diagonal entry).

    weight (E,); perm (K,), ptr (B+1,) of the kept nodes; returns the structure and its weights.
    """
    *structure, source = _induce_op(pattern.rowptr, pattern.col, perm)
    return Pattern(ptr, *structure), weight[source]


def _induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, ...]:
    N, K = rowptr.numel() - 1, perm.numel()
    place = perm.new_full((N,), -1)
    place[perm] = torch.arange(K, device=perm.device)
    row = torch.repeat_interleave(rowptr.diff(), output_size=col.numel())
    i, j = place[row], place[col]
    kept = ((i >= 0) & (j >= 0)).nonzero().view(-1)
    key = i[kept] * K + j[kept]
    order = torch.argsort(key)
    return *from_keys(key[order], perm, K).structure, kept[order]


def _fake_induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, ...]:
    structure = fake_structure(perm.numel(), perm)
    return *structure, torch.empty_like(structure[1])


_induce_op = register(
    "reference_induce",
    _induce,
    _fake_induce,
    inputs="Tensor rowptr, Tensor col, Tensor perm",
    outputs=f"({STRUCTURE}, Tensor)",
    device=None,
)


def strongest(graph: Graph, most: int) -> Graph:
    """Keep at most the `most` strongest edges of every node, besides the diagonal.

    If A of a graph is symmetric (up to rounding), an edge is kept only if it is among the strongest of both its ends,
    so that A stays symmetric. Ties go to the lower neighbour number.
    """
    pattern = graph.pattern
    *structure, kept = _strongest_op(pattern.ptr, *pattern.structure, graph.weight.detach(), most)
    edge_attr = None if graph.edge_attr is None else graph.edge_attr[kept]
    return Graph(Pattern(pattern.ptr, *structure), graph.weight[kept], edge_attr)


def _strongest(ptr: Tensor, *inputs: Tensor | int) -> tuple[Tensor, ...]:
    *structure, strength, most = inputs
    pattern = Pattern(ptr, *structure)  # type: ignore[arg-type]
    assert isinstance(strength, Tensor)  # for the type checker
    row, col, N = pattern.row, pattern.col, pattern.diag.numel()
    # the entries of a graph occupy the same range by row and by column, so each graph is compared separately
    back, batch = strength[pattern.edge_t], pattern.batch[row]
    same = (pattern.col_t == col) & torch.isclose(strength, back, rtol=1e-3, atol=1e-6)
    same &= (pattern.rowptr.diff() == pattern.rowptr_t.diff())[row]
    mutual = (torch.zeros_like(ptr).index_add(0, batch, (~same).long()) == 0)[batch]
    strength = torch.where(mutual, strength + back, strength)  # exactly the same number from both ends
    off = row != col
    order = torch.argsort(torch.where(off, strength, torch.inf), descending=True, stable=True)
    order = order[torch.argsort(row[order], stable=True)]  # row by row: diagonal, then the strongest first
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=order.device) - pattern.rowptr[row]
    stays = rank <= most
    stays = stays & (stays[pattern.edge_t] | ~mutual)
    kept = stays.nonzero().view(-1)
    return *from_keys(row[kept] * N + col[kept], ptr, N).structure, kept


def _fake_strongest(ptr: Tensor, rowptr: Tensor, col: Tensor, diag: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
    structure = fake_structure(diag.numel(), diag)
    return *structure, torch.empty_like(structure[1])


_strongest_op = register(
    "strongest",
    _strongest,
    _fake_strongest,
    inputs="Tensor ptr, Tensor rowptr, Tensor col, Tensor diag, Tensor rowptr_t, Tensor col_t, Tensor edge_t, "
    "Tensor strength, int most",
    outputs=f"({STRUCTURE}, Tensor)",
    device=None,
)
