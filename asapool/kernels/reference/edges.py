"""A packed graph as a list of edges."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.custom_op import register
from asapool.kernels.graph import Graph


def list_edges(graph: Graph, place: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """edge_index (2, E), row 0 = source j, row 1 = target i, and the weights; absent self-loops are left out.

    place (N,): the name of every node in the list; None: its number.
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
