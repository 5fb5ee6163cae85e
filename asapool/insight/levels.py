"""The levels of a hierarchy in plain arrays, read from a model's pooling layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asapool import kernels
from asapool.data.batch import Batch
from asapool.kernels import Graph
from asapool.models import GraphModel, method
from asapool.nn.baselines import Coarse
from asapool.nn.step import PoolStep
from asapool.training.device import on_device_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Connectivity(NamedTuple):
    """Size and connectivity of a graph; self-loops do not count, and both directions of an edge count once."""

    nodes: int
    edges: int
    components: int
    density: float  # share of all pairs that are joined; 0 without pairs


@dataclass(frozen=True, eq=False, kw_only=True)
class Level:
    """The K clusters kept of N, in the order of their centres.

    `kept`, `member` and `fitness` refer to nodes of the previous level, `medoid` to those of the original graph. Node
    member[e] is in cluster[e] with attention[e]; attentions of a cluster sum to 1. Pooled edges run from
    cluster source[e] to cluster target[e].
    """

    kept: Ints  # (K,)
    medoid: Ints  # (K,)
    fitness: Floats  # (N,) of all clusters, kept or not
    cluster: Ints  # (M,)
    member: Ints  # (M,)
    attention: Floats  # (M,)
    source: Ints  # (E,)
    target: Ints  # (E,)
    weight: Floats  # (E,)

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def kept_fitness(self) -> Floats:
        """Fitness of the kept clusters, (K,)."""
        return self.fitness[self.kept]

    @property
    def connectivity(self) -> Connectivity:
        """Of the pooled graph."""
        return connectivity(len(self), self.source, self.target)

    @property
    def S(self) -> Any:  # noqa: N802  the paper's letter
        """The assignment Ŝ (N, K) from the previous level to this one, as a sparse array; columns sum to 1."""
        from scipy.sparse import csr_array

        return csr_array((self.attention, (self.member, self.cluster)), shape=(len(self.fitness), len(self)))

    def members(self, k: int) -> dict[int, float]:
        """Attention of every member of cluster k, by its number in the previous level, strongest first."""
        here = np.flatnonzero(self.cluster == k)
        here = here[np.argsort(-self.attention[here], kind="stable")]
        return dict(zip(self.member[here].tolist(), self.attention[here].tolist(), strict=True))


def connectivity(nodes: int, source: Ints, target: Ints) -> Connectivity:
    """Count edges, components and joined pairs of a graph.

    >>> connectivity(4, np.array([0, 1, 2, 2]), np.array([1, 0, 1, 2]))  # a path of three, a self-loop, a node alone
    Connectivity(nodes=4, edges=2, components=2, density=0.3333333333333333)
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    apart = source != target
    low, high = np.minimum(source, target)[apart], np.maximum(source, target)[apart]
    edges = len(np.unique(low * nodes + high))
    graph = coo_array((np.ones(len(low)), (low, high)), shape=(nodes, nodes))
    components = int(connected_components(graph, directed=False)[0]) if nodes else 0
    pairs = nodes * (nodes - 1) / 2
    return Connectivity(nodes, edges, components, edges / pairs if pairs else 0.0)


def levels_of(model: GraphModel, batch: Batch) -> tuple[tuple[Level, ...], str]:
    """The levels of one graph, and, for a method without levels, a sentence that says why."""
    why = method(model.config.method).no_levels
    steps = getattr(getattr(model, "encoder", None), "steps", None)
    if why is not None or steps is None:
        why = why or f"The method {model.config.method} does not report its levels"
        return (), f"{why}, so there are no levels to show; gradient and occlusion importance are available."
    batch = on_device_of(model, batch)
    levels: list[Level] = []
    origin: Ints = np.arange(batch.x.size(0))  # original node of every node of the previous level
    with torch.no_grad():
        for step in steps(batch.x, model.pack(*batch.inputs, batch.edge_attr)):
            level = _clusters(step, origin) if isinstance(step, PoolStep) else _selected(step, origin)
            levels.append(level)
            origin = level.medoid
    return tuple(levels), ""


def _clusters(step: PoolStep, origin: Ints) -> Level:
    """ASAP: every kept node with its cluster."""
    S = step.S.coalesce()
    (member, cluster), attention = _ints(S.indices()), _floats(S.values())
    order = np.lexsort((member, cluster))
    return _level(step.perm, step.fitness, cluster[order], member[order], attention[order], step.after, origin)


def _selected(step: Coarse, origin: Ints) -> Level:
    """TopK and SAGPool: every kept node is its own cluster, and its score is its fitness."""
    assert step.perm is not None  # for the type checker: methods without a selection have no levels
    assert step.score is not None
    kept = _ints(step.perm)
    return _level(step.perm, step.score, np.arange(len(kept)), kept, np.ones(len(kept)), step.after, origin)


def _level(
    perm: Tensor, fitness: Tensor, cluster: Ints, member: Ints, attention: Floats, after: Graph | None, origin: Ints
) -> Level:
    assert after is not None  # the edges of the last level are computed too
    (source, target), weight = kernels.list_edges(after, backend="reference")  # once per level
    present = weight != 0  # the packed form keeps edges whose weight is 0
    kept = _ints(perm)
    return Level(
        kept=kept, medoid=origin[kept], fitness=_floats(fitness), cluster=cluster, member=member, attention=attention,
        source=_ints(source[present]), target=_ints(target[present]), weight=_floats(weight[present]),
    )  # fmt: skip


def _ints(values: Tensor) -> Ints:
    array: Ints = values.cpu().numpy().astype(np.int64)
    return array


def _floats(values: Tensor) -> Floats:
    array: Floats = values.cpu().double().numpy()
    return array
