"""The convolution that a user puts inside a pooling layer with GNN=: how it is called, and what it must return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from asapool.errors import ConfigError, InputError


def make_gnn(GNN: Callable[..., nn.Module], channels: int, options: Mapping[str, Any]) -> nn.Module:
    """GNN(channels, channels, **options), if it can be called as gnn(x=…, edge_index=…, edge_weight=…)."""
    if isinstance(GNN, nn.Module) or not callable(GNN):
        raise ConfigError(f"GNN must be a class such as torch_geometric.nn.GraphConv, got {GNN!r}")
    gnn = GNN(channels, channels, **options)
    if not isinstance(gnn, nn.Module):
        raise ConfigError(f"GNN must be a class of modules, but {GNN!r} makes {type(gnn).__name__}")
    try:
        signature = inspect.signature(gnn.forward)
    except (TypeError, ValueError):  # a compiled or scripted module may have none
        return gnn
    try:
        signature.bind(x=None, edge_index=None, edge_weight=None)
    except TypeError as error:
        name = type(gnn).__name__
        raise ConfigError(
            f"GNN={name} cannot be called with x=, edge_index= and edge_weight=: {error}; use a convolution with edge "
            "weights, such as GraphConv, or wrap it in a module that takes all three and ignores the weights"
        ) from None
    return gnn


def check_result(y: Any, x: Tensor, gnn: nn.Module) -> Tensor:
    """The result of the user's convolution, which must have the shape of x."""
    name = type(gnn).__name__
    if not isinstance(y, Tensor):
        raise InputError(f"GNN={name} must return a tensor, got {type(y).__name__}")
    # the number of nodes may be unknown while compiling
    same = y.dim() == x.dim() and y.size(-1) == x.size(-1) and (torch.compiler.is_compiling() or y.shape == x.shape)
    if not same:
        raise InputError(f"GNN={name} must keep the shape of x, {tuple(x.shape)}, but returned {tuple(y.shape)}")
    return y
