"""Where the paper, the authors' code and torch_geometric differ, and their names of the parameters."""

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

    sigma: Literal["inside", "outside"]  # position of LeakyReLU in the attention
    inner_gcn: bool  # x' = GCN(x) before the attention, if no GNN is given
    weighted_fitness: bool  # the fitness uses the edge weights
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


PEERS = {  # name of a parameter elsewhere → name here; torch_geometric's first, then the authors'
    "lin.weight": "attention.W.weight",
    "lin.bias": "attention.W.bias",
    "att.weight": "attention.w",
    "att.bias": "attention.c",
    "lin_q.weight": "attention.W.weight",
    "lin_q.bias": "attention.W.bias",
    "gat_att.weight": "attention.w",
    "gat_att.bias": "attention.c",
}


def translate(state: dict[str, Any], prefix: str = "", inner: bool = False) -> str | None:
    """Rename the parameters of torch_geometric's or the authors' layer in place; others stay unchanged.

    torch_geometric's `select.weight` is dropped: its random sign decides whether the fittest or the least fit are kept.

    Args:
        state: the parameters.
        prefix: of their names.
        inner: whether the layer they are for has a convolution inside.

    Returns:
        An error message if the layer has a convolution inside, and torch_geometric's parameters are of one without.
    """
    is_other = any(prefix + name in state for name in ("select.weight", "lin.weight"))
    for old, new in PEERS.items():
        if prefix + old in state:
            value = state.pop(prefix + old)
            state[prefix + new] = value.view(-1) if new == "attention.w" else value
    for old, new in (("gnn_score.", "fitness."), ("gnn_intra_cluster.", "inner.")):
        for name in [n for n in state if n.startswith(prefix + old)]:
            state[prefix + new + name.removeprefix(prefix + old)] = state.pop(name)
    state.pop(prefix + "select.weight", None)
    if is_other and inner and not any(name.startswith(f"{prefix}inner.") for name in state):
        return (
            "these weights are of a torch_geometric layer without GNN=, which has no convolution inside; "
            'ASAPooling(..., semantics="pyg") has none either'
        )
    return None


def pyg_state_dict(layer: nn.Module) -> dict[str, Tensor]:
    """The parameters of a layer, or of a model with such layers, under torch_geometric's names.

    They are for `load_state_dict` of torch_geometric's layer, or of the same model with torch_geometric's layers.
    ASAPooling, LEConv, TopKPooling and SAGPooling are translated; everything else keeps its names. torch_geometric's
    ASAPooling gives the numbers of `semantics="pyg"`; its `select.weight` becomes 1, which keeps the fittest.

    Args:
        layer: any module. An ASAPooling in it has the default attention and fitness.

    Returns:
        Copies of the parameters and buffers.

    >>> from asapool.nn import ASAPooling
    >>> sorted(pyg_state_dict(ASAPooling(4, semantics="pyg")))[:3]
    ['att.bias', 'att.weight', 'gnn_score.lin1.bias']
    """
    state = {name: value.detach().clone() for name, value in layer.state_dict().items()}
    for path, part in layer.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        own = {name.removeprefix(prefix): state.pop(name) for name in list(state) if name.startswith(prefix)}
        state |= {prefix + name: value for name, value in _pyg_names(part, own).items()}
    return state


def _pyg_names(layer: nn.Module, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The parameters of one layer under torch_geometric's names; unchanged if it is none of those that differ."""
    kinds = {kind.__name__ for kind in type(layer).__mro__ if kind.__module__.startswith("asapool.nn.")}
    if "ASAPooling" in kinds:
        return _pyg_asap(layer, state)
    if "LEConv" in kinds and "W1" in state:
        return _pyg_leconv(state, "", "")
    if "TopKPooling" in kinds:
        return {"select.weight" if name == "p" else name: value.view(1, -1) for name, value in state.items()}
    if "SAGPooling" in kinds:
        return state | {"select.weight": state["gnn.lin.weight"].new_ones(1, 1)}
    return state


def _pyg_asap(layer: nn.Module, state: dict[str, Tensor]) -> dict[str, Tensor]:
    if [type(part).__name__ for part in layer.children()][-2:] != ["Master2Token", "LEConv"]:
        raise ConfigError('only an ASAPooling with attention="m2t" and fitness="leconv" has a torch_geometric form')
    pyg = {name: state[PEERS[name]] for name in ("lin.weight", "lin.bias", "att.weight", "att.bias")}
    pyg["att.weight"] = pyg["att.weight"].view(1, -1)
    pyg |= _pyg_leconv(state, "fitness.", "gnn_score.")
    pyg |= {"gnn_intra_cluster." + n.removeprefix("inner."): v for n, v in state.items() if n.startswith("inner.")}
    return pyg | {"select.weight": torch.ones_like(pyg["att.bias"]).view(1, 1)}


def _pyg_leconv(state: dict[str, Tensor], prefix: str, pyg_prefix: str) -> dict[str, Tensor]:
    """LEConv's weights in torch_geometric's form: Σ_j A_ij (lin1 x_j − lin2 x_i) + lin3 x_i."""
    pyg = {
        "lin1.weight": -state[f"{prefix}W3"].t(), "lin2.weight": -state[f"{prefix}W2"].t(),
        "lin3.weight": state[f"{prefix}W1"].t(),
    }  # fmt: skip
    biases = (("lin3.bias", "b1"), ("lin1.bias", "b2"))
    pyg |= {new: state[prefix + old] for new, old in biases if prefix + old in state}
    return {pyg_prefix + name: value.contiguous() for name, value in pyg.items()}
