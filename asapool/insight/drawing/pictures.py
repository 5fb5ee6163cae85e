"""Complete pictures: hierarchies as SVG, image files or HTML for notebooks; substructures, alone or in a graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asapool.data.molecules import parse
from asapool.errors import ConfigError
from asapool.files import writing
from asapool.insight.drawing.canvas import HALO, INK, Canvas, canvas, draw_molecule, draw_network, plain
from asapool.insight.drawing.figure import FORMATS, svg_image
from asapool.insight.drawing.overlays import PLUS, hulls, links, marks
from asapool.insight.levels import Ints

if TYPE_CHECKING:
    from asapool.insight.hierarchy import Hierarchy


def picture(hierarchy: Hierarchy, ground: Canvas, level: int, colour: str | None) -> str:
    """The overlays below the graph, the graph, and the overlays above it."""
    under = over = ""
    if colour is not None:
        under = marks(hierarchy, ground, colour)
    elif level:
        under, over = hulls(hierarchy, ground, level), links(hierarchy, ground, level)
    return under + over + ground.skeleton


def to_svg(hierarchy: Hierarchy, level: int = 0, colour: str | None = None, width: int = 480) -> str:
    """A standalone picture."""
    hierarchy.assignment(level)  # refuses a level that does not exist
    ground = canvas(hierarchy)
    what = f"level {level}" if colour is None else f"importance by {colour}"
    title = escape(f"{hierarchy.id}: {what}, predicted {hierarchy.verdict}")
    w, h = ground.width, ground.height
    return plain(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{width}" '
        f'height="{width * h / w:.0f}" role="img"><title>{title}</title>'
        f"{picture(hierarchy, ground, level, colour)}</svg>"
    )


def molecule_svg(smiles: str, width: int = 150) -> str:
    """A molecule for tables; empty if rdkit is missing or cannot read it."""
    mol = parse(smiles)
    if mol is None:
        return ""
    ground = draw_molecule(mol)
    return (
        f'<svg class="structure" viewBox="0 0 {ground.width:.0f} {ground.height:.0f}" width="{width}" role="img" '
        f'aria-label="{escape(smiles)}">{ground.skeleton}</svg>'
    )


def save_picture(
    hierarchy: Hierarchy, path: str | PathLike[str], level: int = 0, colour: str | None = None, width: int = 960,
    kind: str | None = None,
) -> None:  # fmt: skip
    """Write the picture to a file; kind is svg, png or pdf, by default from the suffix."""
    kind = kind or picture_kind(path)
    svg = to_svg(hierarchy, level, colour, width)
    data = svg.encode() if kind == "svg" else svg_image(svg, kind)
    with writing(path) as out:
        out.write(data)


def picture_kind(path: str | PathLike[str]) -> str:
    """The format that a suffix stands for; unknown ones are refused.

    >>> picture_kind("level1.PNG")
    'png'
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise ConfigError(f"{fspath(path)}: the name of a picture must end in one of {known}. Rename it")
    return kind


def to_html(hierarchy: Hierarchy) -> str:
    """For notebooks: the prediction, all levels side by side, and the importance of the nodes."""
    views: list[tuple[str, int, str | None]] = [
        (f"level {depth}: {len(level)} clusters", depth, None) for depth, level in enumerate(hierarchy.levels, 1)
    ]
    views += [(f"importance: {kind}", 0, kind) for kind in hierarchy.importance]
    cells = "".join(
        f'<figure style="margin:0;flex:1 1 220px;max-width:340px">{to_svg(hierarchy, depth, c, 320)}'
        f'<figcaption style="font-size:85%">{escape(words)}</figcaption></figure>'
        for words, depth, c in views
    ).replace("<svg ", '<svg style="max-width:100%;height:auto;background:#fff" ')
    known = "" if hierarchy.shown_label is None else f", labelled <b>{escape(hierarchy.shown_label)}</b>"
    sure = "" if hierarchy.confidence is None else f", p = {hierarchy.confidence:.3f}"
    prediction = f"predicted <b>{escape(hierarchy.answer)}</b>{sure}{known}"
    head = f"<b>{escape(hierarchy.id)}</b>: {prediction}"
    note = "".join(f"<p>{escape(text)}</p>" for text in (hierarchy.note, hierarchy.descriptor_note) if text)
    return f'<div><p>{head}</p>{note}<div style="display:flex;flex-wrap:wrap;gap:12px">{cells}</div></div>'


# repeated styles of bonds and letters become CSS classes, because a page has hundreds of these drawings
SHORT = (
    (r" style='fill:none;[^']*stroke:(var\(--[a-z-]+,#\w+\));[^']*'", r' class="bond" style="stroke:\1"'),
    (re.escape(f' style="stroke:{INK}"'), ""),
    (re.escape(HALO), 'class="letter"'),
    (r"var\((--[a-z-]+),#\w+\)", r"var(\1)"),
)


def graph_canvas(mol: Any | None, N: int, source: Ints, target: Ints) -> Canvas:
    """The drawn graph: a molecule by RDKit, another graph as dots and lines."""
    return draw_network(N, source, target) if mol is None else draw_molecule(mol)


def marked_svg(
    ground: Canvas,
    source: Ints,
    target: Ints,
    nodes: Sequence[int],
    label: str,
    *,
    colour: str = PLUS,
    width: int = 220,
) -> str:
    """A graph with some nodes, and the edges between them, marked by a coloured area."""
    r, inside = 0.42 * ground.unit, set(nodes)
    at = ground.position
    spots = "".join(f"M{at[v][0]:.1f} {at[v][1]:.1f}h0" for v in sorted(inside))
    spots += "".join(
        f"M{at[a][0]:.1f} {at[a][1]:.1f}L{at[b][0]:.1f} {at[b][1]:.1f}"
        for a, b in zip(source.tolist(), target.tolist(), strict=True)
        if a < b and a in inside and b in inside
    )
    marks = (
        f'<path d="{spots}" fill="none" stroke="{colour}" stroke-opacity="0.4" stroke-width="{2 * r:.1f}" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
    )
    return _svg(ground, marks + ground.skeleton, label, width)


BOND = 26  # pixels of an edge of a small drawing


def fragment_svg(
    mol: Any | None, source: Ints, target: Ints, nodes: Sequence[int], label: str, width: int | None = None,
    cut: Sequence[tuple[int, int]] = (),
) -> str:  # fmt: skip
    """A substructure alone, cut out of a graph that contains it.

    width: by default small, with bonds of the same length in all drawings. cut: edges that are left out.
    """
    if mol is not None:
        ground = draw_molecule(_cut_out(mol, nodes, cut), prepared=True)
    else:
        place = {v: k for k, v in enumerate(sorted(nodes))}
        pairs = [
            (place[a], place[b])
            for a, b in zip(source.tolist(), target.tolist(), strict=True)
            if a in place and b in place and (min(a, b), max(a, b)) not in cut
        ]
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        ground = draw_network(len(place), ends[:, 0], ends[:, 1])
    return _svg(ground, ground.skeleton, label, width or min(130, round(ground.width * BOND / ground.unit)))


def _cut_out(mol: Any, nodes: Sequence[int], cut: Sequence[tuple[int, int]] = ()) -> Any:
    """Some atoms of a molecule with the bonds between them; hydrogens are written if no neighbour is missing."""
    from rdkit import Chem
    from rdkit.Chem import rdDepictor

    inside = set(nodes)
    whole = Chem.RWMol(mol)
    for v in nodes:
        atom = whole.GetAtomWithIdx(v)
        closed = all(other.GetIdx() in inside for other in atom.GetNeighbors())
        hydrogens = atom.GetTotalNumHs() if closed else 0
        atom.SetNumExplicitHs(hydrogens)
        atom.SetNoImplicit(True)
    for a, b in cut:
        whole.RemoveBond(a, b)
    whole.BeginBatchEdit()
    for v in range(mol.GetNumAtoms()):
        if v not in inside:
            whole.RemoveAtom(v)
    whole.CommitBatchEdit()
    part = whole.GetMol()
    part.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(part)
    rdDepictor.Compute2DCoords(part)
    return part


def _svg(ground: Canvas, body: str, label: str, width: int) -> str:
    w, h = ground.width, ground.height
    shown = min(float(width), w)
    for long, short in SHORT:
        body = re.sub(long, short, body)
    return (
        f'<svg class="structure" viewBox="0 0 {w:.0f} {h:.0f}" width="{shown:.0f}" role="img" '
        f'aria-label="{escape(label)}">{body}</svg>'
    )
