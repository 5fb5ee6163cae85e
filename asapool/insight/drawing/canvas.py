"""Draw the graph itself: molecules with RDKit, other graphs with a deterministic layout, components side by side.

Colours are written var(--name, #value): a page sets the variable for light and dark mode, `plain` inserts the value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from asapool.data.molecules import molecule
from asapool.insight.levels import Floats, Ints

if TYPE_CHECKING:
    from asapool.insight.hierarchy import Hierarchy


SMALL = 160  # nodes up to which distances between all pairs are fitted
ROUNDS = 60_000_000  # budget of the force-directed layout of larger graphs, N² per round
GAP = 1.5  # between components, in edge lengths


def spread(N: int, source: Ints, target: Ints) -> Floats:
    """Positions (N, 2) in units of a typical edge; deterministic, so a graph is always drawn the same way.

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
    """The layout of one component: median edge length 1, wider than high, with the corner at the origin."""
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
    else:  # fitting all pairs would take seconds: refine a spectral layout by forces
        noise = np.random.default_rng(0).normal(scale=0.02, size=(N, 2))
        start = np.array([place for _, place in sorted(nx.spectral_layout(ordered).items())]) + noise
        p = spring(start, ends, rounds=min(80, max(8, ROUNDS // N**2)))
    lengths = np.linalg.norm(p[ends[:, 0]] - p[ends[:, 1]], axis=1)
    p = (p - p.mean(axis=0)) / max(float(np.median(lengths)), 1e-9)
    axes = np.linalg.svd(p, full_matrices=False)[2]
    p = p @ (axes * np.where(axes.sum(axis=1, keepdims=True) < 0, -1, 1)).T  # the longest axis is horizontal
    corner: Floats = p - p.min(axis=0)
    return corner


def spring(start: Floats, ends: Ints, rounds: int) -> Floats:
    """The force-directed layout of Fruchterman and Reingold: nodes repel each other by k²/d, edges attract by d²/k.

    start (N, 2); ends (E, 2), the edges; a round takes N² steps and moves no node further than a decreasing limit.
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


UNIT = 44.0  # pixels of a typical edge
INK, PALE = "var(--ink,#1f2430)", "var(--pale,#8a919e)"
HALO = 'stroke="var(--card,#ffffff)" stroke-width="3.4" stroke-linejoin="round" paint-order="stroke"'
ATOMS = {  # RDKit's colours → ours, which are legible on white and on black
    "#000000": INK, "#0000FF": "var(--atom-n,#2450c8)", "#4284F4": "var(--atom-n,#2450c8)",
    "#FF0000": "var(--atom-o,#c22a1c)", "#33CCCC": "var(--atom-f,#0b7f86)", "#CCCC00": "var(--atom-s,#857000)",
    "#00CC00": "var(--atom-cl,#1a7f37)", "#7F4C19": "var(--atom-br,#8a4b14)", "#FF7F00": "var(--atom-p,#b85a00)",
    "#A01EEF": "var(--atom-i,#8220c4)", "#7F7F7F": PALE,
}  # fmt: skip


class Canvas(NamedTuple):
    """Width, height and the length of a typical edge in pixels; position (N, 2); the drawn graph."""

    width: float
    height: float
    unit: float
    position: Floats
    skeleton: str
    molecule: bool


def canvas(hierarchy: Hierarchy) -> Canvas:
    """Draw the graph without any clusters."""
    mol = None
    if hierarchy.text is not None:
        mol = molecule(hierarchy.text, hierarchy.nodes, hierarchy.source, hierarchy.target_node)
    if mol is None:
        return draw_network(hierarchy.nodes, hierarchy.source, hierarchy.target_node)
    return draw_molecule(mol)


def plain(svg: str) -> str:
    """The same picture with colour values instead of variables, for programs that do not support them.

    >>> plain('<circle fill="var(--ink,#1f2430)"/>')
    '<circle fill="#1f2430"/>'
    """
    return re.sub(r"var\(--[a-z-]+,\s*(#[0-9a-fA-F]{3,8})\)", r"\1", svg)


def draw_molecule(mol: Any, *, prepared: bool = False) -> Canvas:
    """A molecule drawn by RDKit; its letters have a halo, to stay legible on coloured areas.

    prepared: it has coordinates and is drawn as it is, such as a fragment without a Kekulé form.
    """
    from rdkit.Chem.Draw import rdMolDraw2D

    pen = rdMolDraw2D.MolDraw2DSVG(-1, -1)  # as large as the molecule needs
    options: Any = pen.drawOptions()
    options.scalingFactor = UNIT / 1.5  # RDKit's bonds are 1.5 long
    options.clearBackground, options.padding = False, 0.0
    options.fixedFontSize, options.bondLineWidth, options.additionalAtomLabelPadding = 15, 1.6, 0.08
    if prepared:
        options.prepareMolsBeforeDrawing = False
        pen.DrawMolecule(mol)
    else:
        rdMolDraw2D.PrepareAndDrawMolecule(pen, mol)
    pen.FinishDrawing()
    spots = [pen.GetDrawCoords(v) for v in range(mol.GetNumAtoms())]
    body = re.sub(r"^.*?<!-- END OF HEADER -->|</svg>\s*$", "", pen.GetDrawingText(), flags=re.S)
    body = re.sub(r"\sclass='[^']*'", "", body)
    body = re.sub(r"(<path [^>]*?) (fill='#\w+')", rf"\1 {HALO} \2", body)  # letters are the filled paths
    for original, replacement in ATOMS.items():
        body = body.replace(original, replacement)
    position, margin = np.array([[p.x, p.y] for p in spots]), 0.62 * UNIT
    low, high = position.min(axis=0) - margin, position.max(axis=0) + margin
    low, high = np.minimum(low, 0), np.maximum(high, [pen.Width(), pen.Height()])  # labels may reach further than atoms
    moved = f'<g transform="translate({-low[0]:.1f} {-low[1]:.1f})">{body.strip()}</g>'
    width, height = (high - low).tolist()
    return Canvas(width, height, UNIT, position - low, moved, True)


def draw_network(N: int, source: Ints, target: Ints) -> Canvas:
    """A graph as lines and dots; both directions of an edge are one line, and long graphs have a smaller scale."""
    where = spread(N, source, target)
    extent = float(where.max(initial=0.0))
    unit = float(np.clip(1000.0 / max(extent, 1.0), 13.0, UNIT))
    position = where * unit + 0.75 * UNIT
    width, height = (position.max(axis=0) + 0.75 * UNIT).tolist()
    pairs = np.unique(np.sort(np.stack([source, target], axis=1), axis=1), axis=0)
    lines = "".join(
        f"M{position[a][0]:.1f} {position[a][1]:.1f}L{position[b][0]:.1f} {position[b][1]:.1f}"
        for a, b in pairs.tolist()
        if a != b
    )
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.13 * unit:.1f}"/>' for x, y in position.tolist())
    crowded = len(pairs) > 4 * N
    stroke = f'stroke="{PALE}" stroke-width="{1 if unit < 30 else 1.6}" stroke-opacity="{0.35 if crowded else 0.9}"'
    return Canvas(
        width, height, unit, position, f'<path d="{lines}" {stroke} fill="none"/><g fill="{INK}">{dots}</g>', False
    )
