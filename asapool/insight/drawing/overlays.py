"""Overlays of the drawn graph, as SVG: clusters (adjacent ones in different colours), pooled edges, numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from asapool.errors import choose
from asapool.insight.drawing.canvas import INK, Canvas
from asapool.insight.levels import Floats, Ints

if TYPE_CHECKING:
    from asapool.insight.hierarchy import Hierarchy


# Okabe and Ito's palette for colour-blind readers; black is left for bonds and text
PALETTE = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
TIED = 1e-5  # relative difference below which shares are equal to rounding


class Coloring(NamedTuple):
    """home (N,): the cluster with the largest share of each original node, or -1; colour (K,): indices of PALETTE."""

    home: Ints
    colour: Ints


def coloring(hierarchy: Hierarchy, level: int) -> Coloring:
    """Assign every node to the cluster with its largest share (a medoid to its own), and colour the clusters greedily.

    Small graphs soon become dense, and clusters then have the same members with the same shares: a tie goes to the
    cluster with the nearest medoid.
    """
    N = hierarchy.nodes
    if level == 0:
        return Coloring(np.full(N, -1), np.zeros(N, np.int64))
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
    if unclear:  # only for these, since shortest paths are slow in a large graph
        near = np.unique(np.concatenate(list(unclear.values())))
        far = _hops(N, hierarchy.source, hierarchy.target_node, here.medoid[near])
        for v, tied in unclear.items():
            home[v] = tied[far[np.searchsorted(near, tied), v].argmin()]
    home[here.medoid] = np.arange(len(here))
    return Coloring(home, _colours(home, len(here), hierarchy.source, hierarchy.target_node))


def _hops(N: int, source: Ints, target: Ints, medoid: Ints) -> Floats:
    """Hops from every medoid to every node, (K, N), infinite if there is no path."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    graph = coo_array((np.ones(len(source)), (source, target)), shape=(N, N)).tocsr()
    hops: Floats = dijkstra(graph, directed=False, unweighted=True, indices=medoid)
    return hops


def _colours(home: Ints, K: int, source: Ints, target: Ints) -> Ints:
    """The least used colour that no adjacent cluster has, or, if they have all seven, the least used one."""
    adjacent: list[set[int]] = [set() for _ in range(K)]
    for a, b in zip(home[source].tolist(), home[target].tolist(), strict=True):
        if a != b and a >= 0 and b >= 0:
            adjacent[a].add(b)
            adjacent[b].add(a)
    colour, used = np.full(K, -1), np.zeros(len(PALETTE), np.int64)
    sizes = np.bincount(home[home >= 0], minlength=K)
    for k in np.argsort(-sizes, kind="stable").tolist():
        taken = {int(colour[j]) for j in adjacent[k]}
        free = [c for c in range(len(PALETTE)) if c not in taken] or list(range(len(PALETTE)))
        colour[k] = min(free, key=lambda c: (used[c], c))
        used[colour[k]] += 1
    return colour


PLUS, MINUS = "var(--plus,#D55E00)", "var(--minus,#0072B2)"
BLOB = 0.40  # radius of a node's area, in edge lengths
ARCS = 1200  # maximum number of pooled edges drawn; in a dense graph, lighter ones would be invisible


def hulls(hierarchy: Hierarchy, ground: Canvas, level: int) -> str:
    """Every cluster as a coloured area around its nodes and along the edges between them; rings mark medoids."""
    home, colour = coloring(hierarchy, level)
    at, r = ground.position, BLOB * ground.unit
    source, target = hierarchy.source, hierarchy.target_node
    segments: list[list[tuple[Floats, Floats]]] = [[] for _ in range(len(colour))]
    for a, b in zip(source.tolist(), target.tolist(), strict=True):
        if a < b and home[a] == home[b] >= 0:
            segments[home[a]].append((at[a], at[b]))
    for v in np.flatnonzero(home >= 0).tolist():  # a line of zero length with round ends is a disc
        segments[home[v]].append((at[v], at[v]))
    parts, rings, ties = [], [], []
    for k, medoid in enumerate(hierarchy.levels[level - 1].medoid.tolist()):
        tint = PALETTE[int(colour[k])]
        d = "".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b in segments[k])
        parts.append(f'<path data-cluster="{k}" d="{d}" stroke="{tint}" opacity="0.45"/>')
        x, y = at[medoid]
        ties += [(at[v], at[medoid], tint, k) for v in _islands(hierarchy, home, k, medoid)]
        rings.append(f'<circle data-cluster="{k}" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" stroke="{tint}"/>')
    tethers = "".join(
        f'<path data-cluster="{k}" d="M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" stroke="{tint}"/>'
        for a, b, tint, k in ties
    )
    tethers = f'<g fill="none" stroke-width="2" stroke-dasharray="2 4" stroke-linecap="round">{tethers}</g>'
    areas = (
        f'<g fill="none" stroke-width="{2 * r:.1f}" stroke-linecap="round" stroke-linejoin="round">{"".join(parts)}</g>'
    )
    return f'{areas}{tethers}<g fill="none" stroke-width="{max(2.0, 0.07 * ground.unit):.1f}">{"".join(rings)}</g>'


def _islands(hierarchy: Hierarchy, home: Ints, k: int, medoid: int) -> list[int]:
    """One node of every part of a cluster that is not connected to its medoid, to be tied to it by a dotted line."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    here = np.flatnonzero(home == k)
    place = np.full(hierarchy.nodes, -1)
    place[here] = np.arange(len(here))
    a, b = place[hierarchy.source], place[hierarchy.target_node]
    both = (a >= 0) & (b >= 0)
    graph = coo_array((np.ones(int(both.sum())), (a[both], b[both])), shape=(len(here), len(here)))
    part = connected_components(graph, directed=False)[1]
    _, first = np.unique(part, return_index=True)
    return [int(here[i]) for i in first.tolist() if part[i] != part[place[medoid]]]


def links(hierarchy: Hierarchy, ground: Canvas, level: int) -> str:
    """Pooled edges as arcs between medoids, wider and darker with weight; only the ARCS heaviest are drawn."""
    here = hierarchy.levels[level - 1]
    low, high = np.minimum(here.source, here.target), np.maximum(here.source, here.target)
    apart = low != high
    pair, place = np.unique(low[apart] * len(here) + high[apart], return_inverse=True)
    weight = np.zeros(len(pair))
    np.maximum.at(weight, place, here.weight[apart])  # the heavier of two directions
    top = float(weight.max(initial=0.0)) or 1.0
    drawn = []
    for e in np.argsort(weight, kind="stable")[-ARCS:].tolist():
        a, b, w = int(pair[e]) // len(here), int(pair[e]) % len(here), float(weight[e])
        p, q = ground.position[here.medoid[a]], ground.position[here.medoid[b]]
        bend = (p + q) / 2 + 0.24 * np.array([q[1] - p[1], p[0] - q[0]])  # bent, so that bonds stay visible
        p, q = _towards(p, bend, BLOB * ground.unit), _towards(q, bend, BLOB * ground.unit)  # from ring to ring
        share = w / top
        drawn.append(
            f'<path d="M{p[0]:.1f} {p[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {q[0]:.1f} {q[1]:.1f}" '
            f'stroke-width="{0.6 + 2.6 * share:.2f}" stroke-opacity="{0.06 + 0.5 * share**2:.2f}"/>'
        )
    return f'<g fill="none" stroke="{INK}" stroke-linecap="round">{"".join(drawn)}</g>'


def _towards(start: Floats, end: Floats, far: float) -> Floats:
    """The point at distance `far` from start towards end, but not beyond it."""
    way = end - start
    moved: Floats = start + way * min(1.0, far / max(float(np.hypot(*way)), 1e-9))
    return moved


def marks(hierarchy: Hierarchy, ground: Canvas, kind: str) -> str:
    """Importance as discs, more opaque if stronger, one colour for the class and one against it."""
    scores = hierarchy.importance[choose("colour", kind, tuple(hierarchy.importance))]
    top, r = max(float(np.abs(scores).max(initial=0.0)), 1e-12), 0.46 * ground.unit
    discs = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="{PLUS if v > 0 else MINUS}" '
        f'fill-opacity="{0.85 * abs(v) / top:.3f}"/>'
        for (x, y), v in zip(ground.position.tolist(), scores.tolist(), strict=True)
    )
    return f"<g>{discs}</g>"


CROWDED = 60  # nodes above which numbers are shown only on request
WAYS = np.arange(16) * np.pi / 8  # possible directions of a number, clockwise from the right
NEAR = 1.3  # edge lengths within which another node takes up space
SIDES = 2.0  # penalty in radians for numbers beside an atom symbol, where hydrogens and charges are written


def node_numbers(hierarchy: Hierarchy, ground: Canvas) -> str:
    """The number of every node, beside it where there is the most space."""
    far = np.where(_written(hierarchy, ground), 0.40, 0.30)[:, None] * ground.unit
    spots = ground.position + far * _arrow(_ways(hierarchy, ground)[0])
    labels = "".join(f'<text x="{x:.1f}" y="{y:.1f}">{v}</text>' for v, (x, y) in enumerate(spots.tolist()))
    return f'<g class="numbers" font-size="{0.23 * ground.unit:.1f}">{labels}</g>'


def cluster_numbers(hierarchy: Hierarchy, ground: Canvas, level: int) -> str:
    """The number of every cluster of a level, in a small circle on the ring around its medoid."""
    medoid, colour = hierarchy.levels[level - 1].medoid, coloring(hierarchy, level).colour
    spots = ground.position[medoid] + 0.56 * ground.unit * _arrow(_ways(hierarchy, ground)[1][medoid])
    labels = "".join(
        f'<g data-cluster="{k}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{0.16 * ground.unit:.1f}" '
        f'stroke="{PALETTE[colour[k]]}"/><text x="{x:.1f}" y="{y:.1f}">{k}</text></g>'
        for k, (x, y) in enumerate(spots.tolist())
    )
    return f'<g class="badges" font-size="{0.21 * ground.unit:.1f}">{labels}</g>'


def _written(hierarchy: Hierarchy, ground: Canvas) -> list[bool]:
    """Which nodes are drawn as a symbol: all atoms except carbon."""
    return [ground.molecule and name != "C" for name in hierarchy.names or [""] * hierarchy.nodes]


def _arrow(way: Floats) -> Floats:
    return np.stack([np.cos(way), np.sin(way)], axis=-1)


def _ways(hierarchy: Hierarchy, ground: Canvas) -> tuple[Floats, Floats]:
    """Two directions for every node, (N,) each: the one with the most space, and another one away from it."""
    from scipy.spatial import cKDTree

    near = cKDTree(ground.position).query_pairs(NEAR * ground.unit, output_type="ndarray")
    a, b = np.concatenate([hierarchy.source, *near.T]), np.concatenate([hierarchy.target_node, *near.T[::-1]])
    a, b = a[a != b], b[a != b]
    room = np.full((hierarchy.nodes, len(WAYS)), np.pi)
    apart = ground.position[a] - ground.position[b]
    np.minimum.at(room, b, _turn(np.arctan2(apart[:, 1], apart[:, 0])))
    room -= SIDES * np.abs(np.cos(WAYS)) * np.array(_written(hierarchy, ground))[:, None]
    first = WAYS[room.argmax(axis=1)]
    second = WAYS[np.minimum(room, _turn(first)).argmax(axis=1)]
    return first, second


def _turn(way: Floats) -> Floats:
    """Angles between given directions and WAYS, (n, 16), in radians.

    >>> _turn(np.array([0.0]))[0, [0, 4, 8, 12]].round(2).tolist()
    [0.0, 1.57, 3.14, 1.57]
    """
    angles: Floats = np.abs(np.angle(np.exp(1j * (WAYS - way[:, None]))))
    return angles
