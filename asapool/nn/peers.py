"""ASAP layers of other programs: what their parameters are called here."""

from __future__ import annotations

from typing import Any


def is_pyg_gcn(GNN: Any) -> bool:
    """Whether it is the class GCNConv, told without loading torch_geometric."""
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
