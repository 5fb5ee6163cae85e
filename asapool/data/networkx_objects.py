"""Conversion from and to NetworkX graphs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.data.assemble import Record, assemble, refuse_duplicate_ids
from asapool.data.classes import as_text
from asapool.data.csr import Floats, is_symmetric
from asapool.data.pyg_objects import span
from asapool.data.reading import ReadOptions
from asapool.errors import DataError

if TYPE_CHECKING:
    import networkx as nx

    from asapool.data.graphset import GraphSet


FEW = 100  # a text attribute with more distinct values than this is a name, not a label


def fields_from_networkx(
    graphs: Sequence[Any],
    labels: Sequence[Any] | None = None,
    *,
    name: str = "graphs",
    ids: Sequence[str] | None = None,
    node_labels: Sequence[str] | None = None,
    node_attributes: Sequence[str] | None = None,
    edge_attributes: Sequence[str] = (),
    weight: str = "weight",
    truth: str = "truth",
    options: ReadOptions | None = None,
    places: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The fields of a GraphSet from NetworkX graphs; the class is labels[k], or a graph's attribute "label" or "y".

    node_attributes (numbers, or lists of them) become columns unchanged, node_labels one-hot columns. None = those
    that every node has: numbers are attributes, text with at most 100 distinct values is a label. A node's "truth"
    and an edge's "weight" are read too; parallel edges are summed.
    """
    options = options or ReadOptions(labels="optional")
    if labels is not None and len(labels) != len(graphs):
        raise DataError(f"{len(labels)} labels for {len(graphs)} graphs. Give one label per graph")
    at = list(places) if places is not None else [f"graph {k}" for k in range(len(graphs))]
    for k, g in enumerate(graphs):
        if not hasattr(g, "adj") or not hasattr(g, "nodes"):
            raise DataError(f"{at[k]}: expected a NetworkX graph, got {type(g).__name__}")
    known = None if options.recipe is None else options.recipe.get("networkx")
    if known is not None:
        node_labels, node_attributes = known["node_labels"], known["node_attributes"]
    elif node_labels is None and node_attributes is None:
        node_labels, node_attributes = _guess(graphs, truth)
    node_labels, node_attributes = tuple(node_labels or ()), tuple(node_attributes or ())
    records = [
        _record(g, at[k], ids[k] if ids is not None else None, labels[k] if labels is not None else _own_label(g),
                node_labels, node_attributes, tuple(edge_attributes), weight, truth)
        for k, g in enumerate(graphs)
    ]  # fmt: skip
    fields = assemble(
        records, name=name, options=options, label_names=node_labels,
        attribute_names=_column_names(graphs, node_attributes),
        features="both" if node_labels and node_attributes else None,
    )  # fmt: skip
    if options.recipe is None:
        refuse_duplicate_ids(records)
    keys = {"node_labels": list(node_labels), "node_attributes": list(node_attributes)}
    return fields | {"recipe": {**fields["recipe"], "networkx": keys}}


def _own_label(graph: Any) -> Any:
    return graph.graph.get("label", graph.graph.get("y"))


def _targets(target: Any) -> dict[str, str | None] | None:
    """The graph attribute "target": a number, a list of numbers, or a dict of them."""
    if target is None:
        return None
    if isinstance(target, (list, tuple, np.ndarray)):
        target = {f"target{k}": value for k, value in enumerate(np.asarray(target).tolist())}
    elif not isinstance(target, dict):
        target = {"target": target}
    return {str(name): as_text(value) for name, value in target.items()}


def _guess(graphs: Sequence[Any], truth: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes that every node has, split into labels (text with few values) and attributes (numbers)."""
    common: set[str] | None = None
    for g in graphs:
        for _, data in g.nodes(data=True):
            common = set(data) if common is None else common & data.keys()
    labels, numbers = [], []
    for key in sorted(k for k in common or () if isinstance(k, str) and k != truth):
        values = [data[key] for g in graphs for _, data in g.nodes(data=True)]
        if all(isinstance(v, str) for v in values):
            if len(set(values)) <= FEW:
                labels.append(key)
        elif all(_is_number(v) for v in values) or all(isinstance(v, (list, tuple, np.ndarray)) for v in values):
            numbers.append(key)
    return tuple(labels), tuple(numbers)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating, np.bool_))


def _column_names(graphs: Sequence[Any], keys: tuple[str, ...]) -> tuple[str, ...]:
    names: list[str] = []
    first: dict[str, Any] = next((data for g in graphs for _, data in g.nodes(data=True)), {})
    for key in keys:
        width = np.size(first.get(key, 0))
        names += [str(key)] if _is_number(first.get(key, 0)) else [f"{key}{k}" for k in range(width)]
    return tuple(names)


def _record(
    graph: Any, at: str, id: str | None, label: Any, node_labels: tuple[str, ...], node_attributes: tuple[str, ...],
    edge_attributes: tuple[str, ...], weight: str, truth: str,
) -> Record:  # fmt: skip
    nodes = list(graph.nodes(data=True))
    number = {node: k for k, (node, _) in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    weights = [data.get(weight, 1) for *_, data in edges] if any(weight in data for *_, data in edges) else None
    marks = [data.get(truth, 0) for _, data in nodes] if any(truth in data for _, data in nodes) else None
    if marks is not None and any(mark not in (0, 1) for mark in marks):
        raise DataError(f"{at}: {truth!r} of a node must be 0 or 1")
    return Record(
        at=at,
        nodes=len(nodes),
        source=np.array([number[a] for a, *_ in edges], np.int64),
        target=np.array([number[b] for _, b, *_ in edges], np.int64),
        directed=graph.is_directed(),
        weight=None if weights is None else _numbers(weights, f"{at}: {weight!r} of an edge")[:, 0],
        edge_attr=_table([((a, b), d) for a, b, d in edges], edge_attributes, at, "edge") if edge_attributes else None,
        labels=tuple(np.array([str(v) for v in _column(nodes, key, at, "node")], dtype=object) for key in node_labels),
        attributes=_table(nodes, node_attributes, at, "node") if node_attributes else None,
        truth=None if marks is None else np.array(marks, np.int8),
        label=as_text(label),
        values=_targets(graph.graph.get("target")) if label is None else None,
        id=None if id is None else str(id),
    )


def _column(items: Sequence[tuple[Any, dict[str, Any]]], key: str, at: str, noun: str) -> list[Any]:
    for item, data in items:
        if key not in data:
            raise DataError(f"{at}: {noun} {item!r} has no attribute {key!r}. Give it to every {noun}, or leave it out")
    return [data[key] for _, data in items]


def _table(items: Sequence[tuple[Any, dict[str, Any]]], keys: tuple[str, ...], at: str, noun: str) -> Floats:
    parts = [_numbers(_column(items, key, at, noun), f"{at}: {key!r} of a {noun}") for key in keys]
    return np.concatenate(parts, axis=1)


def _numbers(values: list[Any], what: str) -> npt.NDArray[np.float32]:
    try:
        table = np.array(values)
    except ValueError:
        table = np.array(["ragged"])
    if (table.size and table.dtype.kind not in "iufb") or table.ndim > 2:
        raise DataError(f"{what} must be a number, or a list of numbers of the same length everywhere")
    with np.errstate(over="ignore"):
        return table.astype(np.float32).reshape(len(values), -1 if values else 1)


def to_networkx(graphs: GraphSet, i: int) -> nx.Graph[int] | nx.DiGraph[int]:
    """Graph i with x on its nodes (and truth, weight, features if the set has them), the class as graph["label"]."""
    import networkx as nx

    a, b, begin, end = span(graphs, i)
    rowptr, col = graphs.rowptr[a : b + 1] - begin, graphs.col[begin:end] - a
    weight = None if graphs.weight is None else graphs.weight[begin:end]
    attr = None if graphs.edge_attr is None else graphs.edge_attr[begin:end]
    graph: nx.Graph[int] = nx.Graph() if is_symmetric(rowptr, col, weight, attr) else nx.DiGraph()
    graph.graph["id"] = graphs.ids[i]
    if graphs.target.kind != "classification":
        values = [None if np.isnan(v) else v for v in graphs.y[i].tolist()]
        graph.graph["target"] = dict(zip(graphs.target.names, values, strict=True))
    elif graphs.y[i] >= 0:
        graph.graph["label"] = graphs.class_names[graphs.y[i]]
    if graphs.source_text is not None:
        graph.graph["text"] = graphs.source_text[i]
    for v in range(b - a):
        graph.add_node(v, x=graphs.x[a + v].tolist())
        if graphs.truth is not None:
            graph.nodes[v]["truth"] = int(graphs.truth[a + v])
    row = np.repeat(np.arange(b - a), np.diff(rowptr))
    for e, (source, target) in enumerate(zip(col.tolist(), row.tolist(), strict=True)):
        data: dict[str, Any] = {} if weight is None else {"weight": float(weight[e])}
        if attr is not None:
            data["features"] = attr[e].tolist()
        graph.add_edge(source, target, **data)
    return graph


def network(
    nodes: Mapping[int, Mapping[str, Any]], edges: Sequence[tuple[int, int]], weight: Sequence[float], **about: Any
) -> nx.Graph[int] | nx.DiGraph[int]:
    """A weighted graph of nodes with their attributes; a DiGraph if an edge has no reverse of the same weight.

    >>> network({0: {}, 1: {"name": "N"}}, [(0, 1), (1, 0)], [0.5, 0.5]).is_directed()
    False
    """
    import networkx as nx

    weights = dict(zip(edges, weight, strict=True))
    both = all(math.isclose(w, weights.get((b, a), math.inf), rel_tol=1e-4) for (a, b), w in weights.items())
    graph: nx.Graph[int] = nx.Graph(**about) if both else nx.DiGraph(**about)
    graph.add_nodes_from((v, dict(values)) for v, values in nodes.items())
    graph.add_weighted_edges_from((a, b, w) for (a, b), w in weights.items())
    return graph
