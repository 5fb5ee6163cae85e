"""Optimum-nodes n*_h: how many nodes can be chosen so that every two are at least h hops apart."""

from __future__ import annotations

from typing import Any

from asapool.theory.graphs import Neighbours, balls, components, neighbours, positive


def largest_independent(conflict: list[int]) -> list[int]:
    """A largest set of nodes of which no two are in conflict; bit j of conflict[i] says that i and j are.

    max |S| subject to conflict[i] ∩ S ⊆ {i} for every i ∈ S

    >>> largest_independent([0b0010, 0b0101, 0b1010, 0b0100])        # the path 0 − 1 − 2 − 3
    [0, 2]
    """
    foes = [mask & ~(1 << i) for i, mask in enumerate(conflict)]
    best = _solve((1 << len(foes)) - 1, foes, -1)
    return [i for i in range(len(foes)) if best >> i & 1]


def _solve(open_nodes: int, foes: list[int], floor: int) -> int:
    """A largest independent subset of the open nodes, or any subset of at most `floor` nodes when none is larger."""
    taken, open_nodes = _take_the_obvious(open_nodes, foes)
    if not open_nodes:
        return taken
    part = _component(open_nodes, foes)
    if part != open_nodes:  # pieces without conflicts between them are solved one by one
        while open_nodes:
            part = _component(open_nodes, foes)
            taken |= _solve(part, foes, -1)
            open_nodes &= ~part
        return taken
    room = floor - taken.bit_count()
    if _cliques(open_nodes, foes) <= room:
        return taken
    pivot = max(_bits(open_nodes), key=lambda i: (foes[i] & open_nodes).bit_count())
    bit = 1 << pivot
    best = bit | _solve(open_nodes & ~foes[pivot] & ~bit, foes, room - 1)
    other = _solve(open_nodes & ~bit, foes, max(room, best.bit_count()))
    return taken | (other if other.bit_count() > best.bit_count() else best)


def _take_the_obvious(open_nodes: int, foes: list[int]) -> tuple[int, int]:
    """Take every node whose open foes conflict among each other: some largest set contains it (it is simplicial)."""
    taken, changed = 0, True
    while changed:
        changed = False
        for i in _bits(open_nodes):
            if not open_nodes >> i & 1:
                continue
            around = foes[i] & open_nodes
            if all(not around & ~foes[j] & ~(1 << j) for j in _bits(around)):
                taken |= 1 << i
                open_nodes &= ~(around | 1 << i)
                changed = True
    return taken, open_nodes


def _cliques(open_nodes: int, foes: list[int]) -> int:
    """How many cliques a greedy cover of the open nodes takes; an independent set has at most one node of each."""
    count = 0
    while open_nodes:
        count += 1
        bit = open_nodes & -open_nodes
        open_nodes ^= bit
        around = open_nodes & foes[bit.bit_length() - 1]
        while around:
            bit = around & -around
            open_nodes ^= bit
            around &= foes[bit.bit_length() - 1]
    return count


def _component(open_nodes: int, foes: list[int]) -> int:
    """The open nodes that are connected to the lowest one."""
    part, fresh = 0, open_nodes & -open_nodes
    while fresh:
        part |= fresh
        around = 0
        for i in _bits(fresh):
            around |= foes[i]
        fresh = around & open_nodes & ~part
    return part


def _bits(mask: int) -> list[int]:
    """Positions of the ones, ascending."""
    positions = []
    while mask:
        bit = mask & -mask
        positions.append(bit.bit_length() - 1)
        mask ^= bit
    return positions


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
