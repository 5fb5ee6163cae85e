"""What paper, authors' program and torch_geometric disagree on, and what they call the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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


def is_pyg_gcn(GNN: Any) -> bool:
    """Whether it is the class GCNConv, without loading torch_geometric."""
    return getattr(GNN, "__name__", "") == "GCNConv" and getattr(GNN, "__module__", "").startswith("torch_geometric.")


PEERS = {  # their name of a parameter → ours; torch_geometric's first, then the authors'
    "lin.weight": "attention.W.weight",
    "lin.bias": "attention.W.bias",
    "att.weight": "attention.w",
    "att.bias": "attention.c",
    "lin_q.weight": "attention.W.weight",
    "lin_q.bias": "attention.W.bias",
    "gat_att.weight": "attention.w",
    "gat_att.bias": "attention.c",
}


def translate(state: dict[str, Any], prefix: str = "") -> None:
    """Rename the parameters of a peer's ASAP layer in place; a state dict of ours stays as it is.

    torch_geometric's `select.weight` is left out: its sign decides at random whether the fittest or the least fit stay.
    """
    for theirs, ours in PEERS.items():
        if prefix + theirs in state:
            value = state.pop(prefix + theirs)
            state[prefix + ours] = value.view(-1) if ours == "attention.w" else value
    for theirs, ours in (("gnn_score.", "fitness."), ("gnn_intra_cluster.", "inner.")):
        for name in [n for n in state if n.startswith(prefix + theirs)]:
            state[prefix + ours + name.removeprefix(prefix + theirs)] = state.pop(name)
    state.pop(prefix + "select.weight", None)
