"""Clusters overlap; for a picture every node gets one home, and clusters that touch differ in colour if they can."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from asapool.insight.levels import Floats, Ints

if TYPE_CHECKING:
    from asapool.insight.hierarchy import Hierarchy

# Okabe and Ito: can be distinguished by the colour-blind too; black is left for bonds and text
PALETTE = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
TIED = 1e-5  # shares that differ by less than this part are rounding


class Territory(NamedTuple):
    """home (N,): the cluster in which each original node counts most, -1 for none; colour (K,): places in PALETTE."""

    home: Ints
    colour: Ints


def territory(hierarchy: Hierarchy, level: int) -> Territory:
    """Give every node the cluster with its largest share (a medoid its own), and colour greedily, big clusters first.

    Small graphs fill up soon, and then clusters have the same members with the same shares: of those the one whose
    medoid is nearest gets the node.
    """
    N = hierarchy.nodes
    if level == 0:
        return Territory(np.full(N, -1), np.zeros(N, np.int64))
    shares, here = hierarchy.assignment(level).tocsr(), hierarchy.levels[level - 1]
    home = np.full(N, -1)
    unclear: dict[int, Ints] = {}  # nodes whose largest share is in several clusters
    for v in range(N):
        span = slice(shares.indptr[v], shares.indptr[v + 1])
        share, cluster = shares.data[span], shares.indices[span]
        if len(share) and share.max() > 0:
            tied = np.sort(cluster[share >= share.max() * (1 - TIED)])
            home[v] = tied[0]
            if len(tied) > 1:
                unclear[v] = tied
    if unclear:  # shortest paths are slow in a large graph, and only these clusters need them
        near = np.unique(np.concatenate(list(unclear.values())))
        far = _hops(N, hierarchy.source, hierarchy.target_node, here.medoid[near])
        for v, tied in unclear.items():
            home[v] = tied[far[np.searchsorted(near, tied), v].argmin()]
    home[here.medoid] = np.arange(len(here))
    return Territory(home, _colours(home, len(here), hierarchy.source, hierarchy.target_node))


def _hops(N: int, source: Ints, target: Ints, medoid: Ints) -> Floats:
    """Hops from every medoid to every node, (K, N), infinite where there is no way."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    graph = coo_array((np.ones(len(source)), (source, target)), shape=(N, N)).tocsr()
    found: Floats = dijkstra(graph, directed=False, unweighted=True, indices=medoid)
    return found


def _colours(home: Ints, K: int, source: Ints, target: Ints) -> Ints:
    """The least used colour that no touching cluster has, or, where they have all seven, the least used one."""
    touching: list[set[int]] = [set() for _ in range(K)]
    for a, b in zip(home[source].tolist(), home[target].tolist(), strict=True):
        if a != b and a >= 0 and b >= 0:
            touching[a].add(b)
            touching[b].add(a)
    colour, used = np.full(K, -1), np.zeros(len(PALETTE), np.int64)
    sizes = np.bincount(home[home >= 0], minlength=K)
    for k in np.argsort(-sizes, kind="stable").tolist():
        taken = {int(colour[j]) for j in touching[k]}
        free = [c for c in range(len(PALETTE)) if c not in taken] or list(range(len(PALETTE)))
        colour[k] = min(free, key=lambda c: (used[c], c))
        used[colour[k]] += 1
    return colour
