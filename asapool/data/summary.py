"""Statistics of a data set: those of the paper's Table 3, and more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from asapool.data.csr import Ints, is_symmetric, owners

if TYPE_CHECKING:
    from asapool.data.graphset import GraphSet


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Statistics of a set; averages are over graphs unless noted."""

    name: str
    graphs: int
    classes: int
    class_counts: dict[str, int]  # graphs of each class
    task: str  # classification, regression or multilabel
    targets: dict[str, dict[str, float]]  # per measured or yes/no task: count, mean, std, min and max of its values
    unlabelled: int  # graphs without a label
    nodes_mean: float
    nodes_min: int
    nodes_max: int
    nodes_total: int
    edges_mean: float  # an undirected edge counts once, and so does a self-loop
    edges_total: int
    degree_mean: float  # over nodes: neighbours of a node, itself not counted
    degree_max: int
    density_mean: float  # edges over possible edges; 0 for a single node
    components_mean: float  # connected components per graph
    connected: int  # graphs with one component
    isolated_nodes: int
    self_loops: int
    features: int
    edge_features: int
    directed: bool
    weighted: bool
    has_truth: bool
    bytes: int  # of the packed arrays
    fingerprint: str


def summarise(graphs: GraphSet) -> Summary:
    """Compute the statistics of a set."""
    G, N = len(graphs), len(graphs.x)
    sizes = np.diff(graphs.ptr)  # (G,)
    row = owners(graphs.rowptr)
    loops = np.bincount(row[row == graphs.col], minlength=N)  # (N,)
    degree = np.diff(graphs.rowptr) - loops
    directed = not is_symmetric(graphs.rowptr, graphs.col)
    entries, looped = _per_graph(degree, graphs.ptr), _per_graph(loops, graphs.ptr)
    edges = entries + looped if directed else entries // 2 + looped  # (G,)
    possible = sizes * (sizes - 1)
    density = np.divide(entries, possible, out=np.zeros(G), where=possible > 0)
    components = _components(graphs)
    classes = graphs.y[graphs.y >= 0] if graphs.target.kind == "classification" else np.zeros(0, np.int64)
    counts = np.bincount(classes, minlength=graphs.num_classes)
    arrays = (graphs.x, graphs.ptr, graphs.rowptr, graphs.col, graphs.y, graphs.weight, graphs.truth, graphs.edge_attr)
    return Summary(
        name=graphs.name,
        graphs=G,
        classes=graphs.num_classes,
        class_counts=dict(zip(graphs.class_names, counts.tolist(), strict=True)),
        task=graphs.target.kind,
        targets=_targets(graphs),
        unlabelled=int((~graphs.labelled).sum()),
        nodes_mean=N / max(G, 1),
        nodes_min=int(sizes.min(initial=N)),
        nodes_max=int(sizes.max(initial=0)),
        nodes_total=N,
        edges_mean=float(edges.sum()) / max(G, 1),
        edges_total=int(edges.sum()),
        degree_mean=float(degree.sum()) / max(N, 1),
        degree_max=int(degree.max(initial=0)),
        density_mean=float(density.mean()) if G else 0.0,
        components_mean=float(components.mean()) if G else 0.0,
        connected=int((components == 1).sum()),
        isolated_nodes=int((degree == 0).sum()),
        self_loops=int(loops.sum()),
        features=graphs.num_features,
        edge_features=0 if graphs.edge_attr is None else int(graphs.edge_attr.shape[1]),
        directed=directed,
        weighted=graphs.weight is not None,
        has_truth=graphs.truth is not None,
        bytes=sum(a.nbytes for a in arrays if a is not None),
        fingerprint=graphs.fingerprint,
    )


def _targets(graphs: GraphSet) -> dict[str, dict[str, float]]:
    if graphs.target.kind == "classification":
        return {}
    described: dict[str, dict[str, float]] = {}
    for name, column in zip(graphs.target.names, graphs.y.T, strict=True):
        present = column[~np.isnan(column)]
        described[name] = {"count": len(present)}
        if len(present):
            described[name] |= {key: float(getattr(present, key)()) for key in ("mean", "std", "min", "max")}
    return described


def _per_graph(values: Ints, ptr: Ints) -> Ints:
    total = np.concatenate([[0], np.cumsum(values)])
    per: Ints = total[ptr[1:]] - total[ptr[:-1]]
    return per


def _components(graphs: GraphSet) -> Ints:
    """Number of connected components of every graph, directions ignored, (G,)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    N = len(graphs.x)
    if not N:
        return np.zeros(len(graphs), np.int64)
    adjacency = csr_array((np.ones(len(graphs.col), np.int8), graphs.col, graphs.rowptr), shape=(N, N))
    _, component = connected_components(adjacency, directed=True, connection="weak")
    _, first = np.unique(component, return_index=True)  # one node of every component
    return np.bincount(owners(graphs.ptr)[first], minlength=len(graphs))
