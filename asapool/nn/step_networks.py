"""A graph before and after a pooling step as NetworkX graphs, with what was computed as attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from asapool import kernels
from asapool.data.networkx_objects import network
from asapool.kernels import Graph

if TYPE_CHECKING:
    import networkx as nx

    from asapool.nn.step import PoolStep

Nodes = dict[int, dict[str, Any]]


def input_network(step: PoolStep, graph: int) -> nx.Graph[int] | nx.DiGraph[int]:
    """A graph of the batch; nodes have fitness, kept, and clusters {kept cluster: membership}."""
    lo, hi = step.before.pattern.ptr[graph : graph + 2].tolist()
    numbers = range(lo, hi) if step.order is None else step.order[lo:hi].tolist()
    fitness, kept = step.fitness.tolist(), set(step.centres.tolist())
    nodes: Nodes = {v: {"fitness": fitness[v], "kept": v in kept, "clusters": {}} for v in numbers}
    for v, k, membership in _memberships(step):
        if v in nodes:
            nodes[v]["clusters"][k] = membership
    return _network(nodes, *kernels.list_edges(step.before, step.order, backend="reference"))


def pooled_network(step: PoolStep, after: Graph, graph: int) -> nx.Graph[int] | nx.DiGraph[int]:
    """The kept clusters of the same graph; they have medoid, fitness, and members {node: membership}."""
    lo, hi = step.ptr[graph : graph + 2].tolist()
    fitness, centres = step.fitness.tolist(), step.centres.tolist()
    nodes: Nodes = {k: {"medoid": centres[k], "fitness": fitness[centres[k]], "members": {}} for k in range(lo, hi)}
    for v, k, membership in _memberships(step):
        if k in nodes:
            nodes[k]["members"][v] = membership
    edge_index, weight = kernels.list_edges(after, backend="reference")
    present = weight != 0  # the packed form keeps edges whose weight is 0
    return _network(nodes, edge_index[:, present], weight[present])


def _memberships(step: PoolStep) -> list[tuple[int, int, float]]:
    """Node, kept cluster and α of every membership."""
    S = step.S.detach().coalesce()
    return list(zip(*S.indices().tolist(), S.values().tolist(), strict=True))


def _network(nodes: Nodes, edge_index: Tensor, weight: Tensor) -> nx.Graph[int] | nx.DiGraph[int]:
    """The edges between these nodes."""
    edges = [(j, i, w) for j, i, w in zip(*edge_index.tolist(), weight.tolist(), strict=True) if j in nodes]
    return network(nodes, [(j, i) for j, i, _ in edges], [w for _, _, w in edges])
