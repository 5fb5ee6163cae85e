"""A packed graph as a list of edges."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.graph import Graph


def list_edges(graph: Graph, place: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """edge_index (2, E), row 0 = source j, row 1 = target i, and the weights; absent self-loops are left out.

    place (N,): the name of every node in the list; None: its number.
    """
    row, col = graph.pattern.row, graph.pattern.col
    there = (row != col) | (graph.weight != 0)
    edge_index = torch.stack([col[there], row[there]])
    return edge_index if place is None else place[edge_index], graph.weight[there]
