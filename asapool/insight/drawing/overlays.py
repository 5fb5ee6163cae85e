"""Clusters, pooled edges and importance as SVG, to be laid over the drawn graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asapool.errors import choose
from asapool.insight.drawing.canvas import INK, Canvas
from asapool.insight.drawing.coloring import PALETTE, territory
from asapool.insight.levels import Floats, Ints

if TYPE_CHECKING:
    from asapool.insight.hierarchy import Hierarchy

PLUS, MINUS = "var(--plus,#D55E00)", "var(--minus,#0072B2)"
BLOB = 0.40  # radius of a node's ground, in edges
ARCS = 1200  # most pooled edges that are drawn; a pooled graph fills up, and lighter ones could not be seen anyway


def hulls(hierarchy: Hierarchy, ground: Canvas, level: int) -> str:
    """Every cluster as an area of colour around its nodes and along the edges between them; rings are medoids."""
    home, colour = territory(hierarchy, level)
    at, r = ground.position, BLOB * ground.unit
    source, target = hierarchy.source, hierarchy.target_node
    segments: list[list[tuple[Floats, Floats]]] = [[] for _ in range(len(colour))]
    for a, b in zip(source.tolist(), target.tolist(), strict=True):
        if a < b and home[a] == home[b] >= 0:
            segments[home[a]].append((at[a], at[b]))
    for v in np.flatnonzero(home >= 0).tolist():  # a line of no length with round ends is a disc
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
    """One node of every part of a cluster that no edge joins to its medoid: a tether will show where it belongs."""
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
    """Pooled edges as arcs between medoids, the wider and darker the heavier; of very many the heaviest are drawn."""
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
        bend = (p + q) / 2 + 0.24 * np.array([q[1] - p[1], p[0] - q[0]])  # aside, so that bonds stay visible
        p, q = _towards(p, bend, BLOB * ground.unit), _towards(q, bend, BLOB * ground.unit)  # from ring to ring
        share = w / top
        drawn.append(
            f'<path d="M{p[0]:.1f} {p[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {q[0]:.1f} {q[1]:.1f}" '
            f'stroke-width="{0.6 + 2.6 * share:.2f}" stroke-opacity="{0.06 + 0.5 * share**2:.2f}"/>'
        )
    return f'<g fill="none" stroke="{INK}" stroke-linecap="round">{"".join(drawn)}</g>'


def _towards(start: Floats, end: Floats, far: float) -> Floats:
    """The place that lies so far from start on the way to end, at most there."""
    way = end - start
    moved: Floats = start + way * min(1.0, far / max(float(np.hypot(*way)), 1e-9))
    return moved


def marks(hierarchy: Hierarchy, ground: Canvas, kind: str) -> str:
    """Importance as discs: the stronger the more solid, one colour for the class and one against it."""
    scores = hierarchy.importance[choose("colour", kind, tuple(hierarchy.importance))]
    top, r = max(float(np.abs(scores).max(initial=0.0)), 1e-12), 0.46 * ground.unit
    discs = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="{PLUS if v > 0 else MINUS}" '
        f'fill-opacity="{0.85 * abs(v) / top:.3f}"/>'
        for (x, y), v in zip(ground.position.tolist(), scores.tolist(), strict=True)
    )
    return f"<g>{discs}</g>"
