"""Optimum-nodes n*_h: how many nodes can be chosen so that every two are at least h hops apart."""

from __future__ import annotations

from typing import Any

from asapool.theory.graphs import Neighbours, balls, components, neighbours, positive
from asapool.theory.independent import largest_independent


def optimum_nodes(graph: Any, h: int) -> int:
    """The largest number of nodes that lie pairwise at least h hops apart; no path counts as infinitely far.

    n*_h(G) = max |S| subject to d(u, v) ≥ h for all u ≠ v in S

    graph: a networkx graph or neighbour lists. Forests take linear time, other graphs branch and bound.

    >>> optimum_nodes([[1], [0, 2], [1, 3], [2]], h=3)                # the ends of a path of four
    2
    """
    return len(scatter(graph, h))


def scatter(graph: Any, h: int) -> list[int]:
    """One largest set of nodes pairwise at least h hops apart, ascending.

    >>> scatter([[1], [0, 2], [1, 3], [2]], h=3)
    [0, 3]
    """
    positive("h", h)
    nb = neighbours(graph)
    parts = components(nb)
    if h == 1:
        return list(range(len(nb)))
    if sum(map(len, nb)) == 2 * (len(nb) - len(parts)):
        return sorted(node for walk in parts for node in _scatter_tree(nb, walk, h))
    chosen = []
    for walk in parts:
        place = {node: i for i, node in enumerate(walk)}
        within = balls([[place[j] for j in nb[i]] for i in walk], h - 1)
        chosen += [walk[i] for i in largest_independent(within)]
    return sorted(chosen)


def _scatter_tree(nb: Neighbours, walk: list[int], h: int) -> list[int]:
    """The same for one tree, whose nodes come in breadth-first order, from the leaves to the root.

    Seen from a node v, the nodes chosen below it are near (2·distance < h) or far. Two near ones are too close to each
    other, so at most one can stay, and giving one up costs as much as one node can ever gain: each subtree therefore
    keeps as many nodes as it can and, among equals, the near node that is farthest. A node is added when it fits.
    """
    none = 2 * len(nb) + h  # farther than any two nodes can be
    place = {v: p for p, v in enumerate(walk)}
    near = [none] * len(walk)  # distance from v to the near chosen node below it
    who = [-1] * len(walk)  # that node
    far = [none] * len(walk)  # distance from v to the closest far chosen node below it
    chosen = []
    for p in range(len(walk) - 1, -1, -1):
        v = walk[p]
        stays, name, rest = -1, -1, far[p]
        for child in nb[v]:
            c = place[child]
            if c < p:
                continue  # the parent: a breadth-first walk meets it first
            rest = min(rest, far[c] + 1)
            if near[c] == none:
                continue
            if 2 * (near[c] + 1) >= h:  # one step up made it far
                rest = min(rest, near[c] + 1)
                chosen.append(who[c])
            elif near[c] + 1 > stays:  # of several near nodes the farthest may stay, the others are given up
                stays, name = near[c] + 1, who[c]
        far[p] = rest
        if stays > 0 and stays + rest >= h:
            near[p], who[p] = stays, name
        elif stays < 0 and rest >= h:
            near[p], who[p] = 0, v
    return chosen + [who[0]] * (near[0] < none)
