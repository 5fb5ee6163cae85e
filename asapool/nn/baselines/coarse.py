"""What a baseline's pooling did, in the form that all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from asapool import kernels
from asapool.kernels import Graph
from asapool.nn.inputs import check_belongs, pack_batch
from asapool.nn.step import Pooled, PooledWithFeatures


@dataclass(frozen=True, eq=False)
class Coarse:
    """A pooled batch on the packed graph, as far as a model reads it: the same names as in PoolStep.

    x (K, F); ptr (B+1,) of the pooled nodes; after: their graph, None when it was not asked for.
    Methods that select: perm (K,) the kept nodes, best first, graph by graph, and score (N,) of all nodes.
    Methods that assign: S (N, K) of every node to the clusters of its graph, and penalty, what S adds to the loss.
    """

    x: Tensor
    ptr: Tensor
    after: Graph | None
    perm: Tensor | None = None
    score: Tensor | None = None
    S: Tensor | None = None
    penalty: Tensor | None = None


class ScoringLayer(Protocol):
    """A layer that gives every node a score, (N,), before any activation."""

    backend: str
    in_channels: int
    ratio: float | int

    def scores(self, x: Tensor, graph: Graph) -> Tensor: ...


def keep_highest(layer: ScoringLayer, x: Tensor, graph: Graph, edges: bool) -> Coarse:
    """Keep the ⌈kN⌉ nodes of highest score, scaled by it, and the edges between them: x'_i = tanh(s_i) x_i.

    Nodes are ranked by s and not by tanh(s), which is 1 for every large s and would leave the choice to node numbers.
    """
    check_belongs(x, graph.pattern)
    s = layer.scores(x, graph)
    score = s.tanh()
    pattern, backend = graph.pattern, layer.backend
    perm, ptr = kernels.select(s, pattern.ptr, kernels.kept(pattern.ptr, layer.ratio), backend=backend)
    after = kernels.induce_graph(graph, perm, ptr, backend=backend) if edges else None
    return Coarse(kernels.gate(x, score, perm, backend=backend), ptr, after, perm=perm, score=score)


def pool_edges(
    layer: ScoringLayer, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None,
    edge_attr: Tensor | None = None,
) -> Pooled | PooledWithFeatures:  # fmt: skip
    """The same for a batch in torch_geometric's form; with edge_attr, the result has the features of the edges too."""
    packed = pack_batch(x, edge_index, edge_weight, batch, layer.in_channels, layer.backend, edge_attr)
    step = keep_highest(layer, packed.x, packed.graph, edges=True)
    assert step.after is not None  # noted for the type checker: edges were asked for, and selection has a perm
    assert step.perm is not None
    centres = step.perm if packed.order is None else packed.order[step.perm]
    edges = kernels.list_edges(step.after, backend=layer.backend)
    pooled = Pooled(step.x, *edges, step.after.pattern.batch, centres)
    features = kernels.list_features(step.after)
    return pooled if features is None else PooledWithFeatures(*pooled, features)
