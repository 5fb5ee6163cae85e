"""Where to draw the nodes of a graph that is no molecule: neighbours together, components side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from asapool.insight.levels import Floats, Ints

SMALL = 160  # nodes up to which distances between all pairs are fitted
GAP = 1.5  # between components, in edges


def spread(N: int, source: Ints, target: Ints) -> Floats:
    """Positions (N, 2) in units of a typical edge; they depend on the graph alone, so it is always drawn the same way.

    >>> spread(3, np.array([0, 1]), np.array([1, 0])).shape  # an edge, and a node alone
    (3, 2)
    """
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(N))
    graph.add_edges_from((a, b) for a, b in zip(source.tolist(), target.tolist(), strict=True) if a != b)
    parts = sorted((sorted(part) for part in nx.connected_components(graph)), key=lambda part: (-len(part), part[0]))
    placed = [_component(graph, part) for part in parts]
    sizes = [p.max(axis=0) + GAP for p in placed]
    width = max([1.5 * np.sqrt(sum(float(size.prod()) for size in sizes)), *(float(size[0]) for size in sizes)])
    position = np.zeros((N, 2))
    x = y = row = 0.0
    for part, p, (w, h) in zip(parts, placed, sizes, strict=True):
        if x and x + w > width:
            x, y, row = 0.0, y + row, 0.0
        position[part] = p + np.array([x, y])
        x, row = x + w, max(row, h)
    return position


def _component(graph: Any, part: list[int]) -> Floats:
    """One connected part, its median edge 1 long, wider than high, with the corner at the origin."""
    import networkx as nx

    N = len(part)
    if N == 1:
        return np.zeros((1, 2))
    place = {v: k for k, v in enumerate(part)}
    ordered: nx.Graph[int] = nx.Graph()
    ordered.add_nodes_from(range(N))
    ordered.add_edges_from(sorted((place[a], place[b]) for a, b in graph.subgraph(part).edges))
    if N <= SMALL:
        found = nx.kamada_kawai_layout(ordered, pos=nx.circular_layout(ordered))
    else:  # fitting all pairs would take seconds: start from the coarse shape, then let neighbours pull
        noise = np.random.default_rng(0).normal(scale=0.02, size=(N, 2))
        start = {v: np.asarray(p) + noise[v] for v, p in nx.spectral_layout(ordered).items()}
        rounds = min(80, max(4, 20_000_000 // N**2))  # one takes N² steps
        found = nx.spring_layout(ordered, pos=start, k=1.6 / np.sqrt(N), iterations=rounds, seed=0)
    p: Floats = np.array([found[v] for v in range(N)], dtype=np.float64)
    ends = np.array(ordered.edges)
    lengths = np.linalg.norm(p[ends[:, 0]] - p[ends[:, 1]], axis=1)
    p = (p - p.mean(axis=0)) / max(float(np.median(lengths)), 1e-9)
    axes = np.linalg.svd(p, full_matrices=False)[2]
    p = p @ (axes * np.where(axes.sum(axis=1, keepdims=True) < 0, -1, 1)).T  # the longest way lies across
    corner: Floats = p - p.min(axis=0)
    return corner
