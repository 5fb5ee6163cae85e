"""The lemmas on trees, checked on all non-isomorphic trees of up to a given number of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from asapool.theory.bounds import optimum_nodes, path_optimum, tree_optimum, tree_optimum_printed
from asapool.theory.graphs import Neighbours, balanced_starlike_tree, neighbours, path_graph, positive

Edges = tuple[tuple[int, int], ...]
Tick = Callable[[int, int], None]


class Tree(NamedTuple):
    """A tree, its canonical code (equal for isomorphic trees), and n*_h for h = 1 … N + 2."""

    neighbours: Neighbours
    code: str
    optimum: tuple[int, ...]

    @property
    def edges(self) -> Edges:
        return tuple((i, j) for i, around in enumerate(self.neighbours) for j in around if i < j)


@dataclass(frozen=True, kw_only=True)
class TreeRow:
    """Results over all trees of N nodes for one h; lemma2_every and lemma2_each are None if that reading holds."""

    N: int
    h: int
    trees: int  # number of trees
    best: int  # the largest n*_h among them
    optima: int  # number of trees that reach it
    formula: int  # max(1, ⌊(N − [h even]) / ⌈h/2⌉⌋)
    printed: int  # ⌊(N − 1) / (h/2)⌋, as in the appendix
    starlike: int  # n*_h of the balanced starlike tree
    step: int  # best minus the best of N − 1 nodes: Lemma 1 says 0 or 1
    lemma2_every: tuple[Edges, Edges] | None  # an optimum tree of N − 1 nodes that is not part of one of N nodes
    lemma2_each: Edges | None  # an optimum tree of N nodes without any optimum tree of N − 1 nodes in it
    lemma2_some: bool  # at least one optimum tree of N nodes contains one of N − 1 nodes


def all_trees(N: int) -> Iterator[Neighbours]:
    """Every tree of N nodes, once up to isomorphism.

    >>> [len(list(all_trees(N))) for N in (1, 2, 3, 4, 5, 6, 7)]
    [1, 1, 1, 2, 3, 6, 11]
    """
    if positive("N", N) <= 2:
        yield path_graph(N)
        return
    from networkx import nonisomorphic_trees

    yield from (neighbours(tree) for tree in nonisomorphic_trees(N))


def tree_code(tree: Neighbours) -> str:
    """A canonical string, equal exactly for isomorphic trees: nested brackets, seen from the centre of the tree.

    >>> tree_code([[1], [0, 2], [1]]) == tree_code([[1, 2], [0], [0]]) == "(()())"
    True
    """
    degree = [len(around) for around in tree]
    left, outer = len(tree), [i for i, d in enumerate(degree) if d <= 1]
    while left > 2:  # remove leaves until only the one or two centre nodes are left
        left -= len(outer)
        inner = []
        for leaf in outer:
            for i in tree[leaf]:
                degree[i] -= 1
                if degree[i] == 1:
                    inner.append(i)
        outer = inner

    def brackets(node: int, parent: int) -> str:
        return "(" + "".join(sorted(brackets(child, node) for child in tree[node] if child != parent)) + ")"

    return max(brackets(node, -1) for node in outer)


def without_leaves(tree: Neighbours) -> set[str]:
    """Codes of all trees with one leaf removed: the connected induced subgraphs with one node less.

    >>> without_leaves(path_graph(4)) == {tree_code(path_graph(3))}
    True
    """
    codes = set()
    for leaf, around in enumerate(tree):
        if len(around) == 1:
            keep = [i - (i > leaf) for i in range(len(tree))]
            codes.add(tree_code([[keep[j] for j in row if j != leaf] for i, row in enumerate(tree) if i != leaf]))
    return codes


def census(max_nodes: int, tick: Tick | None = None) -> list[TreeRow]:
    """Compare Lemmas 1 to 4 with every tree of up to max_nodes nodes, for every h from 1 to N + 2.

    >>> [(row.h, row.best, row.formula, row.optima) for row in census(5) if row.N == 5]
    [(1, 5, 5, 3), (2, 4, 4, 1), (3, 2, 2, 2), (4, 2, 2, 1), (5, 1, 1, 3), (6, 1, 1, 3), (7, 1, 1, 3)]
    """
    rows: list[TreeRow] = []
    smaller: list[Tree] = []
    for N in range(1, positive("max_nodes", max_nodes) + 1):
        trees = [Tree(nb, tree_code(nb), tuple(optimum_nodes(nb, h) for h in range(1, N + 3))) for nb in all_trees(N)]
        parts = [without_leaves(tree.neighbours) for tree in trees]
        rows += [_row(N, h, trees, parts, smaller) for h in range(1, N + 3)]
        smaller = trees
        if tick:
            tick(N, max_nodes)
    return rows


def _row(N: int, h: int, trees: list[Tree], parts: list[set[str]], smaller: list[Tree]) -> TreeRow:
    best = max(tree.optimum[h - 1] for tree in trees)
    optima = [(tree, part) for tree, part in zip(trees, parts, strict=True) if tree.optimum[h - 1] == best]
    before = [tree.optimum[h - 1] if h <= N + 1 else 1 for tree in smaller]  # no two nodes are that far apart there
    best_before = max(before, default=best)
    optima_before = {t.code: t for t, n in zip(smaller, before, strict=True) if n == best_before}
    every = each = None
    some = not smaller
    for tree, part in optima:
        missing = optima_before.keys() - part
        if missing and every is None:
            every = (optima_before[min(missing)].edges, tree.edges)
        if len(missing) == len(optima_before) > 0 and each is None:
            each = tree.edges
        some = some or len(missing) < len(optima_before)
    return TreeRow(
        N=N, h=h, trees=len(trees), best=best, optima=len(optima),
        formula=tree_optimum(N, h), printed=tree_optimum_printed(N, h),
        starlike=optimum_nodes(balanced_starlike_tree(N, h), h), step=best - best_before,
        lemma2_every=every, lemma2_each=each, lemma2_some=some,
    )  # fmt: skip


def path_exceptions(max_nodes: int) -> list[tuple[int, int]]:
    """All (N, h), h ≤ N, for which the path of N nodes does not have ⌈N/h⌉ optimum-nodes.

    >>> path_exceptions(12)
    []
    """
    sizes = range(1, positive("max_nodes", max_nodes) + 1)
    return [(N, h) for N in sizes for h in range(1, N + 1) if optimum_nodes(path_graph(N), h) != path_optimum(N, h)]
