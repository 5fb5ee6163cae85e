"""The numbers of nodes and of clusters in a drawing, by which the tables refer to them."""

from __future__ import annotations

import numpy as np

from asapool.insight import Hierarchy
from asapool.insight.drawing.canvas import Canvas
from asapool.insight.drawing.coloring import PALETTE, territory
from asapool.insight.levels import Floats

CROWDED = 60  # nodes from which on numbers are shown only when asked for
WAYS = np.arange(16) * np.pi / 8  # directions in which a number may stand, from the right and clockwise
NEAR = 1.3  # edges' lengths within which another node takes up room
SIDES = 2.0  # radians by which a written symbol keeps numbers from its sides, where hydrogens and charges stand


def node_numbers(hierarchy: Hierarchy, ground: Canvas) -> str:
    """The number of every node, beside it where there is most room."""
    far = np.where(_written(hierarchy, ground), 0.40, 0.30)[:, None] * ground.unit
    spots = ground.position + far * _arrow(_ways(hierarchy, ground)[0])
    found = "".join(f'<text x="{x:.1f}" y="{y:.1f}">{v}</text>' for v, (x, y) in enumerate(spots.tolist()))
    return f'<g class="numbers" font-size="{0.23 * ground.unit:.1f}">{found}</g>'


def cluster_numbers(hierarchy: Hierarchy, ground: Canvas, level: int) -> str:
    """The number of every cluster of a level, in a small circle on the ring around its medoid."""
    medoid, colour = hierarchy.levels[level - 1].medoid, territory(hierarchy, level).colour
    spots = ground.position[medoid] + 0.56 * ground.unit * _arrow(_ways(hierarchy, ground)[1][medoid])
    found = "".join(
        f'<g data-cluster="{k}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{0.16 * ground.unit:.1f}" '
        f'stroke="{PALETTE[colour[k]]}"/><text x="{x:.1f}" y="{y:.1f}">{k}</text></g>'
        for k, (x, y) in enumerate(spots.tolist())
    )
    return f'<g class="badges" font-size="{0.21 * ground.unit:.1f}">{found}</g>'


def _written(hierarchy: Hierarchy, ground: Canvas) -> list[bool]:
    """Which nodes are drawn as a symbol: the atoms that are no carbon."""
    return [ground.molecule and name != "C" for name in hierarchy.names or [""] * hierarchy.nodes]


def _arrow(way: Floats) -> Floats:
    return np.stack([np.cos(way), np.sin(way)], axis=-1)


def _ways(hierarchy: Hierarchy, ground: Canvas) -> tuple[Floats, Floats]:
    """Two directions for every node, (N,) each, with much room on both sides: the best, and one far from that."""
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
    """How far WAYS are from some directions, (n, 16), in radians.

    >>> _turn(np.array([0.0]))[0, [0, 4, 8, 12]].round(2).tolist()
    [0.0, 1.57, 3.14, 1.57]
    """
    found: Floats = np.abs(np.angle(np.exp(1j * (WAYS - way[:, None]))))
    return found
