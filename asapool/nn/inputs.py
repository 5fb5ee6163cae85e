"""Turns the tensors of a user into packed graphs: checks them, sorts nodes by graph, and keeps the original order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import Tensor

from asapool import kernels
from asapool.errors import ConfigError, InputError
from asapool.kernels import DensePattern, Graph, Pattern
from asapool.nn.edge_masks import mask_of, pack_mask


class Packed(NamedTuple):
    """A checked batch: features (N, F) sorted by graph, the graph, and each node's original number (None: unchanged).

    mask: (E,) of the packed entries, if an explainer masks these edges; the weights of the graph already include it.
    """

    x: Tensor
    graph: Graph
    order: Tensor | None
    mask: Tensor | None = None


def check_features(x: Tensor, channels: int) -> Tensor:
    """x as (N, channels), or an InputError that says what is wrong with it."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise InputError(f"x must be a floating point tensor, got {_kind(x)}{_remedy(x, 'convert it with x.float()')}")
    if x.dim() == 1:
        x = x.unsqueeze(-1)
    if x.dim() != 2 or x.size(1) != channels:
        raise InputError(f"x must have the shape (nodes, {channels}), got {tuple(x.shape)}")
    # a finite sum proves that all values are finite; only otherwise are they checked one by one
    if not torch.compiler.is_compiling() and not bool(x.detach().sum().isfinite()):
        bad = (~x.detach().isfinite()).any(dim=1).nonzero().view(-1)
        if bad.numel():
            raise InputError(
                f"x must be finite, but node {int(bad[0])} has NaN or infinite features; clean the data first"
            )
    return x


def check_dtype(x: Tensor, weight: Tensor | None) -> None:
    """Check that features have the dtype of a layer's weights, unless autocast converts them."""
    if weight is None or x.dtype == weight.dtype or torch.is_autocast_enabled(x.device.type):
        return
    raise InputError(
        f"x is {x.dtype}, but the layer's weights are {weight.dtype}; convert one of them, "
        f"x.to({weight.dtype}) or layer.to({x.dtype})"
    )


def check_count(name: str, value: Any) -> int:
    """Check a number of channels, nodes or hops, and return it as an int.

    >>> check_count("hops", np.int64(2))
    2
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def check_channels(layer: str, in_channels: Any, out_channels: Any) -> None:
    """Check that there is one positive number of channels on each side."""
    if isinstance(in_channels, (tuple, list)):
        raise ConfigError(
            f"{layer} takes one number of input channels, got {in_channels}: bipartite graphs are not supported; "
            "use torch_geometric's layers for them"
        )
    check_count(f"in_channels of {layer}", in_channels)
    check_count(f"out_channels of {layer}", out_channels)


def check_dropout(p: Any) -> float:
    """Check a probability of dropout."""
    if isinstance(p, bool) or not isinstance(p, (int, float, np.integer, np.floating)) or not 0 <= p < 1:
        raise ConfigError(f"dropout must lie in [0, 1), got {p!r}")
    return float(p)


def check_switch(name: str, value: Any) -> bool:
    """Check a setting that is on or off: any text, even "no", would count as on."""
    if not isinstance(value, (bool, np.bool_)):
        raise ConfigError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_edges(
    edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None, x: Tensor, backend: str = "auto"
) -> Tensor | None:
    """Validate all edges, and return their weights as (E,) in the dtype of x."""
    N = x.size(0)
    if not isinstance(edge_index, Tensor) or edge_index.dtype != torch.int64:
        remedy = _remedy(edge_index, "convert it with edge_index.long()")
        raise InputError(f"edge_index must be an int64 tensor, got {_kind(edge_index)}{remedy}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise InputError(f"edge_index must have the shape (2, edges), got {tuple(edge_index.shape)}")
    E = edge_index.size(1)
    if batch is not None:
        if not isinstance(batch, Tensor) or batch.dtype != torch.int64:
            remedy = _remedy(batch, "convert it with batch.long()")
            raise InputError(f"batch must be an int64 tensor, got {_kind(batch)}{remedy}")
        if tuple(batch.shape) != (N,):
            raise InputError(f"batch must name one graph per node, shape ({N},), got {tuple(batch.shape)}")
    if edge_weight is not None:
        if not isinstance(edge_weight, Tensor) or not edge_weight.is_floating_point():
            remedy = _remedy(
                edge_weight, "convert it with edge_weight.float(); ASAPooling takes the batch vector as batch="
            )
            raise InputError(f"edge_weight must be a floating point tensor, got {_kind(edge_weight)}{remedy}")
        if edge_weight.numel() != E or edge_weight.dim() not in (1, 2):
            raise InputError(
                f"edge_weight must hold one number per edge, shape ({E},), got {tuple(edge_weight.shape)}"
                + ("; ASAPooling takes edge features as edge_attr=" if edge_weight.size(0) == E else "")
            )
        edge_weight = edge_weight.reshape(E).to(x.dtype)
    if not torch.compiler.is_compiling():
        _check_values(edge_index, edge_weight, batch, N, backend)
    return edge_weight


def check_edge_attr(edge_attr: Tensor, E: int) -> Tensor:
    """Edge features as (E, D), finite."""
    if not isinstance(edge_attr, Tensor) or not edge_attr.is_floating_point():
        remedy = _remedy(edge_attr, "convert it with edge_attr.float()")
        raise InputError(f"edge_attr must be a floating point tensor, got {_kind(edge_attr)}{remedy}")
    if edge_attr.dim() == 1:
        edge_attr = edge_attr.unsqueeze(-1)
    if edge_attr.dim() != 2 or edge_attr.size(0) != E or edge_attr.size(1) < 1:
        raise InputError(
            f"edge_attr must have one row of features per edge, shape ({E}, features), got {tuple(edge_attr.shape)}"
        )
    if not torch.compiler.is_compiling() and not bool(edge_attr.detach().sum().isfinite()):
        bad = (~edge_attr.detach().isfinite()).any(dim=1).nonzero().view(-1)
        if bad.numel():
            raise InputError(
                f"edge_attr must be finite, but edge {int(bad[0])} has NaN or infinite features; clean the data first"
            )
    return edge_attr


def _check_values(edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None, N: int, backend: str) -> None:
    if batch is not None and batch.numel() and int(batch.min()) < 0:
        raise InputError(f"batch must not be negative, got {int(batch.min())}")
    if not kernels.edges_valid(edge_index, batch, N, backend=backend):
        _refuse_edges(edge_index, batch, N)
    if edge_weight is not None and edge_weight.numel():
        low, high = map(float, edge_weight.detach().aminmax())  # both NaN if one weight is
        if not (low >= 0 and high < float("inf")):
            valid = (edge_weight.detach() >= 0) & edge_weight.detach().isfinite()
            e = int((~valid).nonzero()[0])
            raise InputError(f"edge_weight must be finite and not negative, got {edge_weight[e].item()} at edge {e}")


def _refuse_edges(edge_index: Tensor, batch: Tensor | None, N: int) -> NoReturn:
    """Say what is wrong with the edges."""
    low, high = map(int, edge_index.aminmax())
    if batch is None or low < 0 or high >= N:
        worst = low if low < 0 else high
        raise InputError(f"edge_index must name nodes 0 to {N - 1}, got node {worst}; x has {N} rows")
    graph_j, graph_i = batch[edge_index]
    e = int((graph_j != graph_i).nonzero()[0])
    j, i = edge_index[:, e].tolist()
    raise InputError(
        f"edge {e} ({j} → {i}) leaves its graph: node {j} is in graph {int(graph_j[e])}, "
        f"node {i} in graph {int(graph_i[e])}; edges must stay within one graph"
    )


def _kind(value: object) -> str:
    return f"{value.dtype}" if isinstance(value, Tensor) else type(value).__name__


def _remedy(value: object, conversion: str) -> str:
    """What to do about an argument of a wrong type: convert a tensor, or take the tensors out of what holds them."""
    if isinstance(value, Tensor):
        return f"; {conversion}"
    if isinstance(value, (Mapping, tuple)) or hasattr(value, "to_homogeneous"):
        return (
            "; heterogeneous and bipartite graphs are not supported; torch_geometric's data.to_homogeneous() makes one "
            "graph of all node types"
        )
    if hasattr(value, "__array__"):
        return "; convert it with torch.as_tensor"
    return "; pass data.x and data.edge_index" if hasattr(value, "edge_index") else ""


def edges_of(edges: Any, edge_weight: Tensor | None, N: int) -> tuple[Tensor, Tensor | None]:
    """edge_index (2, E) and weights of edges, in either form that torch_geometric accepts.

    A sparse adjacency (a torch tensor or torch_sparse's SparseTensor) must be transposed, adj.t(): the entry (i, j) is
    the weight of the edge j → i.
    """
    if isinstance(edges, Tensor) and edges.layout != torch.strided:
        size, coo = tuple(edges.shape), edges.to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
        (row, col), value = coo.indices(), coo.values()
    elif hasattr(edges, "sparse_sizes") and hasattr(edges, "coo"):
        size, (row, col, value) = tuple(edges.sparse_sizes()), edges.coo()
    else:
        return edges, edge_weight
    if size != (N, N):
        raise InputError(f"a sparse adjacency must have the shape ({N}, {N}), one row per node, got {size}")
    if edge_weight is not None:
        raise InputError("a sparse adjacency holds its weights itself; leave edge_weight out")
    return torch.stack([col, row]), value


def pack_batch(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None, channels: int, backend: str,
    edge_attr: Tensor | None = None,
) -> Packed:  # fmt: skip
    """Check a batch in PyG's form and pack it; repeated edges are summed, and their features averaged by weight."""
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        raise InputError("TorchScript cannot record asapool's layers; use torch.export (docs/semantics.md)")
    x = check_features(x, channels)
    edge_index, edge_weight = edges_of(edge_index, edge_weight, x.size(0))
    edge_weight = check_edges(edge_index, edge_weight, batch, x, backend)
    mask = mask_of(edge_index)
    if mask is not None:
        mask = mask.to(x.dtype)
        edge_weight = mask if edge_weight is None else mask * edge_weight
    if edge_attr is not None:
        edge_attr = check_edge_attr(edge_attr, edge_index.size(1)).to(x.dtype)
    N = x.size(0)
    order = None
    if batch is None:
        ptr = torch.tensor([0, N], device=x.device)
    else:
        order = sorting(batch)
        if order is not None:
            place = torch.empty_like(order).index_copy(0, order, torch.arange(N, device=x.device))
            x, batch, edge_index = x[order], batch[order], place[edge_index]
        ptr = torch.cat([batch.new_zeros(1), torch.bincount(batch).cumsum(0)])
    graph = pack_graph(x, edge_index, edge_weight, ptr, backend, edge_attr)
    return Packed(x, graph, order, None if mask is None else pack_mask(mask, edge_index, graph.pattern, backend))


def as_nodes(x: Tensor, nodes: Tensor | Pattern | None, channels: int) -> tuple[Tensor, Pattern]:
    """For readouts: the features sorted by graph, and the pattern of a batch given as in torch_geometric.

    A packed pattern is returned unchanged; its features were checked by the layers before.
    """
    if nodes is not None and not isinstance(nodes, Tensor):
        return x, nodes
    packed = pack_batch(x, torch.empty(2, 0, dtype=torch.int64, device=x.device), None, nodes, channels, "auto")
    return packed.x, packed.graph.pattern


def sorting(batch: Tensor) -> Tensor | None:
    """The nodes sorted by graph, None if they already are; compiled code cannot branch on data, and always sorts."""
    if torch.compiler.is_compiling() or bool((batch.diff() < 0).any()):
        return torch.argsort(batch, stable=True)
    return None


def pack_graph(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, ptr: Tensor, backend: str,
    edge_attr: Tensor | None = None,
) -> Graph:  # fmt: skip
    """The packed graph of validated edges; an edge without a weight has weight 1."""
    pattern, slot = kernels.pack(edge_index, ptr, x.size(0), backend=backend)
    given = x.new_ones(slot.numel()) if edge_weight is None else edge_weight
    wide = torch.promote_types(x.dtype, torch.float32)  # a sum of ones in bfloat16 stops at 256
    total = x.new_zeros(pattern.col.numel(), dtype=wide).index_add(0, slot, given.to(wide))
    if edge_attr is not None:
        edge_attr = _average(edge_attr, given.to(wide), total, slot)
    return Graph(pattern, total.to(x.dtype), edge_attr)


def _average(edge_attr: Tensor, given: Tensor, total: Tensor, slot: Tensor) -> Tensor:
    """Features (E, D) of the packed entries: means over repeated edges by weight, or plain means if the weight is 0."""
    count = torch.zeros_like(total).index_add(0, slot, torch.ones_like(given))[slot]
    weight = total[slot]
    share = torch.where(weight > 0, given / torch.where(weight > 0, weight, 1), 1 / count)
    e = share[:, None] * edge_attr.to(total.dtype)
    return e.new_zeros(total.numel(), e.size(1)).index_add(0, slot, e).to(edge_attr.dtype)


def check_belongs(x: Tensor, pattern: Pattern | DensePattern) -> None:
    """Check that features and a packed graph have the same nodes."""
    if isinstance(pattern, DensePattern):
        if x.shape[:2] != pattern.entries.shape[:2]:
            raise InputError(f"x must have the padded shape {tuple(pattern.entries.shape[:2])}, got {tuple(x.shape)}")
        return
    if x.size(0) != pattern.diag.numel():
        raise InputError(f"x must have one row per node, {pattern.diag.numel()}, got {x.size(0)}")


def as_graph(
    x: Tensor, edges: Tensor | Graph, edge_weight: Tensor | None, channels: int, backend: str,
    edge_attr: Tensor | None = None,
) -> tuple[Tensor, Graph]:  # fmt: skip
    """For layers that ignore graph boundaries: return a packed graph unchanged, or pack edges as one graph."""
    if isinstance(edges, Graph):
        check_belongs(x, edges.pattern)
        return x, edges
    packed = pack_batch(x, edges, edge_weight, None, channels, backend, edge_attr)
    return packed.x, packed.graph
