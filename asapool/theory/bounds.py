"""Closed forms of optimum-nodes, and the sampling ratio k* above which a pooled graph must have an edge.

Two kept nodes are connected when they lie at most RF hops apart (RF = h for TopK and SAGPool, 2h + 1 for ASAP). A
selection without edges is therefore a set of nodes pairwise at least RF + 1 hops apart, and ⌈kN⌉ > n*_{RF+1} is what
forces an edge (pigeon-hole); as n* is a whole number this says exactly k > k* = n*_{RF+1} / N.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from asapool.errors import choose
from asapool.theory.graphs import positive

Family = Literal["tree", "path"]
Method = Literal["topk", "sagpool", "asap"]


def edge_reach(method: Method, h: int = 1) -> int:
    """How far apart, in hops, two kept nodes can be and still be connected: h for TopK and SAGPool, 2h + 1 for ASAP.

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

    With t_l = ((l − 1) mod h) + 1, the height of the lowest node taken when leg l is filled from its leaf every h:
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
    """The most optimum-nodes any connected graph of N nodes has; the balanced starlike tree of height ⌈h/2⌉ has them.

    max n*_h = max(1, ⌊(N − [h even]) / ⌈h/2⌉⌋)

    >>> tree_optimum(9, h=4), tree_optimum(7, h=3), tree_optimum(2, h=6)
    (4, 3, 1)
    """
    return max(1, (positive("N", N) - (h % 2 == 0)) // -(-positive("h", h) // 2))


def tree_optimum_printed(N: int, h: int) -> int:
    """The same as the appendix prints it, ⌊(N − 1) / (h/2)⌋: right for even h and N > h/2, not otherwise.

    >>> tree_optimum_printed(9, h=4), tree_optimum_printed(7, h=3), tree_optimum_printed(2, h=6)
    (4, 4, 0)
    """
    return 2 * (positive("N", N) - 1) // positive("h", h)


def k_star(N: int, family: Family, method: Method, h: int = 1) -> Fraction:
    """The sampling ratio above which every selection on every graph of the family leaves an edge: k* = n*_{RF+1} / N.

    Ratios k > k* force an edge, k = k* does not. On the single node N = 1, where no edge can be, k* = 1.

    >>> k_star(9, "tree", "topk"), k_star(9, "tree", "asap"), k_star(9, "path", "asap")
    (Fraction(8, 9), Fraction(4, 9), Fraction(1, 3))
    """
    apart = edge_reach(method, h) + 1
    choose("family", family, ("tree", "path"))
    return Fraction(tree_optimum(N, apart) if family == "tree" else path_optimum(N, apart), N)


def k_star_limit(family: Family, method: Method, h: int = 1) -> Fraction:
    """What k* tends to as N → ∞: 1 / ⌈(RF+1)/2⌉ on trees, 1 / (RF+1) on paths.

    >>> [str(k_star_limit(f, m)) for f in ("tree", "path") for m in ("topk", "asap")]
    ['1', '1/2', '1/2', '1/4']
    """
    apart = edge_reach(method, h) + 1
    choose("family", family, ("tree", "path"))
    return Fraction(1, -(-apart // 2) if family == "tree" else apart)


def k_star_printed(N: int, family: Family, method: Method, h: int = 1) -> Fraction:
    """The bound as the appendix prints it.

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
    """Whether keeping ⌈kN⌉ nodes leaves an edge on every graph of the family, whichever nodes are kept.

    >>> forced(Fraction(1, 2), 9, "tree", "asap"), forced(Fraction(1, 2), 9, "tree", "topk")
    (True, False)
    """
    return k > k_star(N, family, method, h)


def largest_disconnected(N: int, method: Method, h: int = 1) -> int:
    """How many nodes of a connected graph can be kept, at most, with the pooled graph still in several pieces.

    Two pieces lie at least RF + 1 hops apart, so RF nodes between them are missing: N − RF, if that leaves two.

    >>> largest_disconnected(9, "topk"), largest_disconnected(9, "asap"), largest_disconnected(4, "asap")
    (8, 6, 0)
    """
    left = positive("N", N) - edge_reach(method, h)
    return left if left >= 2 else 0
