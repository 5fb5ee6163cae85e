"""Where to draw the nodes of a graph that is no molecule: neighbours together, components side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from asapool.insight.levels import Floats, Ints

SMALL = 160  # nodes up to which distances between all pairs are fitted
ROUNDS = 60_000_000  # steps of the forces in larger graphs, N² a round
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
    ends = np.array(ordered.edges)
    if N <= SMALL:
        fitted = nx.kamada_kawai_layout(ordered, pos=nx.circular_layout(ordered))
        p: Floats = np.array([fitted[v] for v in range(N)], dtype=np.float64)
    else:  # fitting all pairs would take seconds: start from the coarse shape, then let neighbours pull
        noise = np.random.default_rng(0).normal(scale=0.02, size=(N, 2))
        start = np.array([place for _, place in sorted(nx.spectral_layout(ordered).items())]) + noise
        p = spring(start, ends, rounds=min(80, max(8, ROUNDS // N**2)))
    lengths = np.linalg.norm(p[ends[:, 0]] - p[ends[:, 1]], axis=1)
    p = (p - p.mean(axis=0)) / max(float(np.median(lengths)), 1e-9)
    axes = np.linalg.svd(p, full_matrices=False)[2]
    p = p @ (axes * np.where(axes.sum(axis=1, keepdims=True) < 0, -1, 1)).T  # the longest way lies across
    corner: Floats = p - p.min(axis=0)
    return corner


def spring(start: Floats, ends: Ints, rounds: int) -> Floats:
    """Forces of Fruchterman and Reingold: all nodes push each other away by k²/d, edges pull their ends by d²/k.

    start (N, 2); ends (E, 2), the edges; a round takes N² steps and moves no node further than a falling limit.
    """
    N = len(start)
    p = start.astype(np.float32)
    k = np.float32(1.6 / np.sqrt(N))
    limit = 0.1 * float(np.ptp(p, axis=0).max())
    a, b = ends.T
    for step in range(rounds):
        apart = [p[:, None, axis] - p[None, :, axis] for axis in (0, 1)]
        squared = np.maximum(apart[0] ** 2 + apart[1] ** 2, 1e-6)
        force = np.stack([(d / squared).sum(axis=1) for d in apart], axis=1) * k * k
        edge = p[a] - p[b]
        pull = edge * np.linalg.norm(edge, axis=1, keepdims=True) / k
        np.subtract.at(force, a, pull)
        np.add.at(force, b, pull)
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        p += force / length * np.minimum(length, limit * (1 - step / rounds))
    return p.astype(np.float64)
