"""Whole pictures of a hierarchy: SVG text, image files, and HTML for notebooks."""

from __future__ import annotations

from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from asapool.errors import ConfigError
from asapool.files import writing
from asapool.insight.drawing.canvas import Canvas, canvas, draw_molecule, plain
from asapool.insight.drawing.figure import FORMATS, svg_image
from asapool.insight.drawing.overlays import hulls, links, marks
from asapool.insight.molecule import parse

if TYPE_CHECKING:
    from asapool.insight.hierarchy import Hierarchy


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
    title = escape(f"{hierarchy.id}: {what}, predicted {hierarchy.verdict}")
    w, h = ground.width, ground.height
    return plain(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{width}" '
        f'height="{width * h / w:.0f}" role="img"><title>{title}</title>'
        f"{picture(hierarchy, ground, level, colour)}</svg>"
    )


def molecule_svg(smiles: str, width: int = 150) -> str:
    """A molecule without anything around it, for tables; empty where rdkit is absent or cannot read it."""
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
    """Write the picture to a file; kind is svg, png or pdf, and by default what the name ends in."""
    kind = kind or picture_kind(path)
    svg = to_svg(hierarchy, level, colour, width)
    data = svg.encode() if kind == "svg" else svg_image(svg, kind)
    with writing(path) as out:
        out.write(data)


def picture_kind(path: str | PathLike[str]) -> str:
    """The format that the ending of a name stands for; another ending is refused.

    >>> picture_kind("level1.PNG")
    'png'
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise ConfigError(f"{fspath(path)}: the name of a picture must end in one of {known}. Rename it")
    return kind


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
    sure = "" if hierarchy.confidence is None else f", p = {hierarchy.confidence:.3f}"
    prediction = f"predicted <b>{escape(hierarchy.answer)}</b>{sure}{known}"
    head = f"<b>{escape(hierarchy.id)}</b>: {prediction}"
    note = f"<p>{escape(hierarchy.note)}</p>" if hierarchy.note else ""
    return f'<div><p>{head}</p>{note}<div style="display:flex;flex-wrap:wrap;gap:12px">{cells}</div></div>'
