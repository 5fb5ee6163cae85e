"""What paper, authors' program and torch_geometric disagree on, and what they call the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from asapool.errors import ConfigError, choose
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


def pyg_state_dict(layer: nn.Module) -> dict[str, Tensor]:
    """The parameters of an ASAPooling or LEConv under torch_geometric's names, for `load_state_dict` of its layer.

    torch_geometric's numbers are those of `semantics="pyg"`; its `select.weight` becomes 1, which keeps the fittest.

    Args:
        layer: An ASAPooling with its default attention and fitness, or an LEConv.

    Returns:
        Copies of the parameters.

    >>> from asapool.nn import ASAPooling
    >>> sorted(pyg_state_dict(ASAPooling(4, semantics="pyg")))[:3]
    ['att.bias', 'att.weight', 'gnn_score.lin1.bias']
    """
    state = {name: value.detach().clone() for name, value in layer.state_dict().items()}
    parts = [type(part).__name__ for part in (layer, *layer.children())]
    if parts == ["LEConv"]:
        return _pyg_leconv(state, "", "")
    if parts[0] != "ASAPooling" or parts[-2:] != ["Master2Token", "LEConv"]:
        raise ConfigError(
            'only an LEConv, or an ASAPooling with attention="m2t" and fitness="leconv", has a torch_geometric form'
        )
    found = {theirs: state[PEERS[theirs]] for theirs in ("lin.weight", "lin.bias", "att.weight", "att.bias")}
    found["att.weight"] = found["att.weight"].view(1, -1)
    found |= _pyg_leconv(state, "fitness.", "gnn_score.")
    found |= {"gnn_intra_cluster." + n.removeprefix("inner."): v for n, v in state.items() if n.startswith("inner.")}
    return found | {"select.weight": torch.ones_like(found["att.bias"]).view(1, 1)}


def _pyg_leconv(state: dict[str, Tensor], ours: str, theirs: str) -> dict[str, Tensor]:
    """LEConv's weights as torch_geometric has them: Σ_j A_ij (lin1 x_j − lin2 x_i) + lin3 x_i."""
    found = {
        "lin1.weight": -state[f"{ours}W3"].t(), "lin2.weight": -state[f"{ours}W2"].t(),
        "lin3.weight": state[f"{ours}W1"].t(),
    }  # fmt: skip
    found |= {new: state[ours + old] for new, old in (("lin3.bias", "b1"), ("lin1.bias", "b2")) if ours + old in state}
    return {theirs + name: value.contiguous() for name, value in found.items()}
