"""One level of a hierarchy in plain arrays: which clusters were kept, who is in them, and how they are joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Connectivity(NamedTuple):
    """How well a graph hangs together; self-loops do not count, and two directions of an edge are one."""

    nodes: int
    edges: int
    components: int
    density: float  # share of all pairs that are joined; 0 where there are no pairs


@dataclass(frozen=True, eq=False, kw_only=True)
class Level:
    """K clusters that were kept of N, in the order of their centres.

    `kept`, `member` and `fitness` count nodes of the level before, `medoid` those of the original graph. Entry e says
    that node member[e] is in cluster[e] with attention[e]; attentions of a cluster sum to 1. Pooled edges run from
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
        """The assignment Ŝ (N, K) of the level before to this one, as a sparse array; columns sum to 1."""
        from scipy.sparse import csr_array

        return csr_array((self.attention, (self.member, self.cluster)), shape=(len(self.fitness), len(self)))

    def members(self, k: int) -> dict[int, float]:
        """Attention of every member of cluster k, by its number in the level before, strongest first."""
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
