"""Clusters, pooled edges and importance as SVG over the drawn graph; whole pictures as SVG, PNG, and for notebooks."""

from __future__ import annotations

import base64
from html import escape
from os import PathLike, fspath
from typing import TYPE_CHECKING

import numpy as np

from asapool.errors import AsapoolError, choose
from asapool.insight.canvas import INK, Canvas, canvas, plain
from asapool.insight.coloring import PALETTE, territory
from asapool.insight.level import Floats, Ints

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
    ways: list[list[tuple[Floats, Floats]]] = [[] for _ in range(len(colour))]
    for a, b in zip(source.tolist(), target.tolist(), strict=True):
        if a < b and home[a] == home[b] >= 0:
            ways[home[a]].append((at[a], at[b]))
    for v in np.flatnonzero(home >= 0).tolist():  # a line of no length with round ends is a disc
        ways[home[v]].append((at[v], at[v]))
    parts, rings, ties = [], [], []
    for k, medoid in enumerate(hierarchy.levels[level - 1].medoid.tolist()):
        tint = PALETTE[int(colour[k])]
        d = "".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b in ways[k])
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
        bend = (p + q) / 2 + 0.14 * np.array([q[1] - p[1], p[0] - q[0]])  # aside, so that bonds stay visible
        share = w / top
        drawn.append(
            f'<path d="M{p[0]:.1f} {p[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {q[0]:.1f} {q[1]:.1f}" '
            f'stroke-width="{0.6 + 2.6 * share:.2f}" stroke-opacity="{0.06 + 0.5 * share**2:.2f}"/>'
        )
    return f'<g fill="none" stroke="{INK}" stroke-linecap="round">{"".join(drawn)}</g>'


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


def picture(hierarchy: Hierarchy, ground: Canvas, level: int, colour: str | None) -> str:
    """What lies under the graph, the graph, and what lies over it."""
    under = over = ""
    if colour is not None:
        under = marks(hierarchy, ground, colour)
    elif level:
        under, over = hulls(hierarchy, ground, level), links(hierarchy, ground, level)
    return under + over + ground.skeleton


def to_svg(hierarchy: Hierarchy, level: int = 0, colour: str | None = None, width: int = 480) -> str:
    """One picture, complete in itself."""
    hierarchy.assignment(level)  # refuses a level that is not there
    ground = canvas(hierarchy)
    what = f"level {level}" if colour is None else f"importance by {colour}"
    title = escape(f"{hierarchy.id}: {what}, predicted {hierarchy.answer} (p = {hierarchy.confidence:.3f})")
    w, h = ground.width, ground.height
    return plain(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{width}" '
        f'height="{width * h / w:.0f}" role="img"><title>{title}</title>'
        f"{picture(hierarchy, ground, level, colour)}</svg>"
    )


def to_png(
    hierarchy: Hierarchy, path: str | PathLike[str], level: int = 0, colour: str | None = None, width: int = 960
) -> None:
    """The picture as pixels on white, drawn by the Chromium that kaleido finds."""
    from plotly.graph_objects import Figure

    svg = to_svg(hierarchy, level, colour, width)
    ground = canvas(hierarchy)
    height = max(round(width * ground.height / ground.width), 10)
    data = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")
    frame = {"x": 0, "y": 1, "sizex": 1, "sizey": 1, "xref": "paper", "yref": "paper", "sizing": "contain"}
    figure = Figure()
    figure.update_layout(
        images=[{"source": data, **frame}], margin=dict.fromkeys("lrtb", 0), xaxis_visible=False, yaxis_visible=False,
        plot_bgcolor="white",
    )  # fmt: skip
    try:
        figure.write_image(fspath(path), format="png", width=width, height=height)
    except Exception as error:  # no kaleido, no Chromium, or one that does not start: each has an error of its own
        raise AsapoolError(
            f"{fspath(path)}: a PNG takes kaleido and a Chromium ({type(error).__name__}). Install them, or use to_svg"
        ) from None


def to_html(hierarchy: Hierarchy) -> str:
    """For notebooks: the answer, every level side by side, and the importance of the nodes."""
    views: list[tuple[str, int, str | None]] = [
        (f"level {depth}: {len(level)} clusters", depth, None) for depth, level in enumerate(hierarchy.levels, 1)
    ]
    views += [(f"importance: {kind}", 0, kind) for kind in hierarchy.importance]
    cells = "".join(
        f'<figure style="margin:0;flex:1 1 220px;max-width:340px">{to_svg(hierarchy, depth, c, 320)}'
        f'<figcaption style="font-size:85%">{escape(words)}</figcaption></figure>'
        for words, depth, c in views
    ).replace("<svg ", '<svg style="max-width:100%;height:auto;background:#fff" ')
    known = "" if hierarchy.label is None else f", labelled <b>{escape(hierarchy.label)}</b>"
    said = f"predicted <b>{escape(hierarchy.answer)}</b>, p = {hierarchy.confidence:.3f}{known}"
    head = f"<b>{escape(hierarchy.id)}</b>: {said}"
    note = f"<p>{escape(hierarchy.note)}</p>" if hierarchy.note else ""
    return f'<div><p>{head}</p>{note}<div style="display:flex;flex-wrap:wrap;gap:12px">{cells}</div></div>'
