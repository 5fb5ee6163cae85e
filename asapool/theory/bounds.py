"""Optimum-nodes n*_h, computed and in closed form, and the ratio k* above which a pooled graph must have an edge.

Two kept nodes are connected if they are at most RF hops apart (RF = h for TopK and SAGPool, 2h + 1 for ASAP). A
selection without edges is therefore a set of nodes pairwise at least RF + 1 hops apart, and ⌈kN⌉ > n*_{RF+1} forces an
edge (pigeonhole principle); since n* is a whole number, this is equivalent to k > k* = n*_{RF+1} / N.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from asapool.errors import choose
from asapool.theory.graphs import Neighbours, balls, components, neighbours, positive


def largest_independent(conflict: list[int]) -> list[int]:
    """A largest set of nodes without conflicts; bit j of conflict[i] is set if i and j are in conflict.

    max |S| subject to conflict[i] ∩ S ⊆ {i} for every i ∈ S

    >>> largest_independent([0b0010, 0b0101, 0b1010, 0b0100])        # the path 0 − 1 − 2 − 3
    [0, 2]
    """
    foes = [mask & ~(1 << i) for i, mask in enumerate(conflict)]
    best = _solve((1 << len(foes)) - 1, foes, -1)
    return [i for i in range(len(foes)) if best >> i & 1]


def _solve(open_nodes: int, foes: list[int], floor: int) -> int:
    """A largest independent subset of the open nodes, or any one of at most `floor` nodes if none is larger."""
    taken, open_nodes = _take_simplicial(open_nodes, foes)
    if not open_nodes:
        return taken
    part = _component(open_nodes, foes)
    if part != open_nodes:  # components are solved one by one
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


def _take_simplicial(open_nodes: int, foes: list[int]) -> tuple[int, int]:
    """Take every simplicial node, whose open foes all conflict with each other: some largest set contains it."""
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
    """The number of cliques in a greedy cover of the open nodes; an independent set has at most one node of each."""
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
    """The largest number of nodes that are pairwise at least h hops apart; nodes without a path are infinitely far.

    n*_h(G) = max |S| subject to d(u, v) ≥ h for all u ≠ v in S

    graph: a networkx graph or neighbour lists. Forests take linear time, other graphs use branch and bound.

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
    """The same for one tree, given in breadth-first order and processed from the leaves to the root.

    Seen from a node v, the nodes chosen below it are near (2·distance < h) or far. Two near ones are too close to each
    other, so at most one can be kept, and dropping one costs as much as one node can ever gain: each subtree therefore
    keeps as many nodes as it can and, among equal choices, the farthest near node. A node is added if it fits.
    """
    none = 2 * len(nb) + h  # larger than any distance
    place = {v: p for p, v in enumerate(walk)}
    near = [none] * len(walk)  # distance from v to the near chosen node below it
    near_node = [-1] * len(walk)  # that node
    far = [none] * len(walk)  # distance from v to the closest far chosen node below it
    chosen = []
    for p in range(len(walk) - 1, -1, -1):
        v = walk[p]
        kept_near, kept_node, closest_far = -1, -1, far[p]
        for child in nb[v]:
            c = place[child]
            if c < p:
                continue  # the parent, which comes first in breadth-first order
            closest_far = min(closest_far, far[c] + 1)
            if near[c] == none:
                continue
            if 2 * (near[c] + 1) >= h:  # seen from v it is far
                closest_far = min(closest_far, near[c] + 1)
                chosen.append(near_node[c])
            elif near[c] + 1 > kept_near:  # of several near nodes only the farthest may be kept
                kept_near, kept_node = near[c] + 1, near_node[c]
        far[p] = closest_far
        if kept_near > 0 and kept_near + closest_far >= h:
            near[p], near_node[p] = kept_near, kept_node
        elif kept_near < 0 and closest_far >= h:
            near[p], near_node[p] = 0, v
    return chosen + [near_node[0]] * (near[0] < none)


Family = Literal["tree", "path"]
Method = Literal["topk", "sagpool", "asap"]


def edge_reach(method: Method, h: int = 1) -> int:
    """The largest distance in hops at which kept nodes are still connected: h for TopK and SAGPool, 2h + 1 for ASAP.

    >>> edge_reach("topk"), edge_reach("asap"), edge_reach("asap", h=2)
    (1, 3, 5)
    """
    choose("method", method, ("topk", "sagpool", "asap"))
    return 2 * positive("h", h) + 1 if method == "asap" else positive("h", h)


def path_optimum(N: int, h: int) -> int:
    """Optimum-nodes of the path of N nodes: n*_h = ⌈N / h⌉.

    >>> path_optimum(7, h=3)
    3
    """
    return -(-positive("N", N) // positive("h", h))


def starlike_optimum(legs: Sequence[int], h: int) -> int:
    """Optimum-nodes of the starlike tree with legs of the given lengths.

    With t_l = ((l − 1) mod h) + 1, the height of the lowest node if every h-th node of leg l is taken, from its leaf:
    n*_h = Σ_l ⌈l/h⌉ − #{t_l < h/2} + [one more fits: the highest t_l < h/2, or else the root]

    >>> starlike_optimum([2, 2, 2, 1], h=4), starlike_optimum([2, 2, 2, 1], h=3)
    (3, 4)
    """
    lowest = [(positive("leg length", length) - 1) % positive("h", h) + 1 for length in legs]
    near = max((t for t in lowest if 2 * t < h), default=0)
    far = min((t for t in lowest if 2 * t >= h), default=h)
    crowded = sum(2 * t < h for t in lowest)
    return sum(-(-length // h) for length in legs) - crowded + (near + far >= h)


def tree_optimum(N: int, h: int) -> int:
    """The largest n*_h of all connected graphs of N nodes, which the balanced starlike tree of height ⌈h/2⌉ reaches.

    max n*_h = max(1, ⌊(N − [h even]) / ⌈h/2⌉⌋)

    >>> tree_optimum(9, h=4), tree_optimum(7, h=3), tree_optimum(2, h=6)
    (4, 3, 1)
    """
    return max(1, (positive("N", N) - (h % 2 == 0)) // -(-positive("h", h) // 2))


def tree_optimum_printed(N: int, h: int) -> int:
    """The same as printed in the appendix, ⌊(N − 1) / (h/2)⌋: right only for even h and N > h/2.

    >>> tree_optimum_printed(9, h=4), tree_optimum_printed(7, h=3), tree_optimum_printed(2, h=6)
    (4, 4, 0)
    """
    return 2 * (positive("N", N) - 1) // positive("h", h)


def k_star(N: int, family: Family, method: Method, h: int = 1) -> Fraction:
    """The sampling ratio above which every selection on every graph of the family leaves an edge: k* = n*_{RF+1} / N.

    Ratios k > k* force an edge, k = k* does not. For N = 1, where no edge is possible, k* = 1.

    >>> k_star(9, "tree", "topk"), k_star(9, "tree", "asap"), k_star(9, "path", "asap")
    (Fraction(8, 9), Fraction(4, 9), Fraction(1, 3))
    """
    apart = edge_reach(method, h) + 1
    choose("family", family, ("tree", "path"))
    return Fraction(tree_optimum(N, apart) if family == "tree" else path_optimum(N, apart), N)


def k_star_limit(family: Family, method: Method, h: int = 1) -> Fraction:
    """The limit of k* as N → ∞: 1 / ⌈(RF+1)/2⌉ on trees, 1 / (RF+1) on paths.

    >>> [str(k_star_limit(f, m)) for f in ("tree", "path") for m in ("topk", "asap")]
    ['1', '1/2', '1/2', '1/4']
    """
    apart = edge_reach(method, h) + 1
    choose("family", family, ("tree", "path"))
    return Fraction(1, -(-apart // 2) if family == "tree" else apart)


def k_star_printed(N: int, family: Family, method: Method, h: int = 1) -> Fraction:
    """The bound as printed in the appendix.

    trees: k > ((N − 1) / ((RF+1)/2) − 1) / N · paths: k ≥ 1/(RF+1) + 1/N

    >>> k_star_printed(9, "tree", "topk"), k_star_printed(9, "tree", "asap"), k_star_printed(8, "path", "asap")
    (Fraction(7, 9), Fraction(1, 3), Fraction(3, 8))
    """
    apart = edge_reach(method, h) + 1
    choose("family", family, ("tree", "path"))
    if family == "path":
        return Fraction(1, apart) + Fraction(1, positive("N", N))
    return (Fraction(2 * (positive("N", N) - 1), apart) - 1) / N


def forced(k: Fraction, N: int, family: Family, method: Method, h: int = 1) -> bool:
    """Whether keeping any ⌈kN⌉ nodes leaves an edge on every graph of the family.

    >>> forced(Fraction(1, 2), 9, "tree", "asap"), forced(Fraction(1, 2), 9, "tree", "topk")
    (True, False)
    """
    return k > k_star(N, family, method, h)


def largest_disconnected(N: int, method: Method, h: int = 1) -> int:
    """The largest number of nodes of a connected graph that can be kept such that the pooled graph is disconnected.

    Two components are at least RF + 1 hops apart, so RF nodes between them are missing: N − RF, if that leaves two.

    >>> largest_disconnected(9, "topk"), largest_disconnected(9, "asap"), largest_disconnected(4, "asap")
    (8, 6, 0)
    """
    left = positive("N", N) - edge_reach(method, h)
    return left if left >= 2 else 0
