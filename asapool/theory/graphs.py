"""Small undirected graphs as neighbour lists, on which the theory counts hops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asapool.errors import InputError

Neighbours = list[list[int]]


def neighbours(graph: Any) -> Neighbours:
    """Neighbour lists of a networkx graph, or of neighbour lists: nodes 0…N−1, no self-loops, both directions.

    >>> neighbours([[1, 1], [0, 1], []])
    [[1], [0], []]
    """
    if hasattr(graph, "adjacency") and hasattr(graph, "nodes"):
        place = {node: i for i, node in enumerate(graph.nodes)}
        lists: Sequence[Sequence[int]] = [[place[b] for b in around] for _, around in graph.adjacency()]
    else:
        lists = graph
    N = len(lists)
    result: list[set[int]] = [set() for _ in range(N)]
    for i, around in enumerate(lists):
        for j in around:
            if not 0 <= j < N:
                raise InputError(f"node {i} names neighbour {j}, but nodes are 0 to {N - 1}. Renumber the nodes.")
            if i != j:
                result[i].add(j)
                result[j].add(i)
    return [sorted(around) for around in result]


def path_graph(N: int) -> Neighbours:
    """The path 0 − 1 − … − (N−1).

    >>> path_graph(3)
    [[1], [0, 2], [1]]
    """
    return [[j for j in (i - 1, i + 1) if 0 <= j < N] for i in range(positive("N", N))]


def starlike_tree(legs: Sequence[int]) -> Neighbours:
    """A root, node 0, with one path of the given length attached per leg.

    >>> starlike_tree([2, 1])
    [[1, 3], [0, 2], [1], [0]]
    """
    tree: Neighbours = [[]]
    for length in legs:
        below = 0
        for _ in range(positive("leg length", length)):
            tree[below].append(len(tree))
            tree.append([below])
            below = len(tree) - 1
    return tree


def balanced_starlike_tree(N: int, h: int) -> Neighbours:
    """The starlike tree of N nodes whose legs all have height ⌈h/2⌉, except one leg with the remainder.

    >>> balanced_starlike_tree(6, h=4)
    [[1, 3, 5], [0, 2], [1], [0, 4], [3], [0]]
    """
    height = -(-positive("h", h) // 2)
    full, rest = divmod(positive("N", N) - 1, height)
    return starlike_tree([height] * full + [rest] * (rest > 0))


def components(graph: Any) -> list[list[int]]:
    """The connected components, each in breadth-first order from its lowest node.

    >>> components([[2], [], [0]])
    [[0, 2], [1]]
    """
    nb = neighbours(graph)
    seen = [False] * len(nb)
    walks = []
    for start in range(len(nb)):
        if seen[start]:
            continue
        seen[start] = True
        walk = [start]
        for i in walk:
            for j in nb[i]:
                if not seen[j]:
                    seen[j] = True
                    walk.append(j)
        walks.append(walk)
    return walks


def distances(graph: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Hops between every pair of nodes, (N, N); N stands for "no path".

    >>> distances(path_graph(3)).tolist()
    [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    """
    nb = neighbours(graph)
    N = len(nb)
    D = np.full((N, N), N, dtype=np.int64)
    for start in range(N):
        D[start, start] = 0
        walk = [start]
        for i in walk:
            for j in nb[i]:
                if D[start, j] == N and j != start:
                    D[start, j] = D[start, i] + 1
                    walk.append(j)
    return D


def balls(graph: Any, radius: int) -> list[int]:
    """For every node the set of nodes at most `radius` hops away, as the bits of one integer.

    >>> [f"{ball:03b}" for ball in balls(path_graph(3), 1)]
    ['011', '111', '110']
    """
    nb = neighbours(graph)
    ball = [1 << i for i in range(len(nb))]
    for _ in range(min(radius, len(nb))):
        wider = []
        for i, around in enumerate(nb):
            mask = ball[i]
            for j in around:
                mask |= ball[j]
            wider.append(mask)
        if wider == ball:
            break
        ball = wider
    return ball


def positive(name: str, value: int) -> int:
    """Return the value if it is at least 1; otherwise raise an InputError.

    >>> positive("N", 3)
    3
    """
    if value < 1:
        raise InputError(f"{name} must be at least 1, got {value}")
    return value
