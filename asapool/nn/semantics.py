"""What paper, authors' program and torch_geometric disagree on, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from asapool.errors import choose
from asapool.kernels import Loops


@dataclass(frozen=True)
class Semantics:
    """One column of the table in docs/semantics.md."""

    sigma: Literal["inside", "outside"]  # where LeakyReLU stands in the attention
    inner_gcn: bool  # x' = GCN(x) before the attention, when no GNN is named
    weighted_fitness: bool  # the fitness sees the edge weights
    fitness_loops: bool  # LEConv counts a node as its own neighbour
    through_s: bool  # gradients flow through S into the pooled edges
    diagonal: Literal["keep", "one", "drop"]  # of the pooled adjacency
    loops: Loops  # what Â means


TABLE = {
    "paper": Semantics("inside", True, True, False, True, "keep", "add"),
    "authors": Semantics("outside", True, False, False, False, "one", "fill"),
    "pyg": Semantics("outside", False, False, True, True, "drop", "fill"),
}


def semantics_named(name: str) -> Semantics:
    """The column of that name.

    >>> semantics_named("authors").diagonal
    'one'
    """
    return TABLE[choose("semantics", name, tuple(TABLE))]
