"""The page of `asapool explain --against`: one class against another, what flips the prediction, similar graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from asapool.data import GraphSet
from asapool.errors import ConfigError
from asapool.files import write_text
from asapool.insight import Contrast
from asapool.insight.contrasting import Neighbour
from asapool.insight.drawing.overlays import MINUS, PLUS
from asapool.insight.drawing.pictures import fragment_svg, graph_canvas, marked_svg
from asapool.reports.explorer import explorer_view, node_name, title_of
from asapool.reports.motifs_page import graph_of
from asapool.reports.page import render

DRAWN = 200  # nodes of the largest graph that is drawn beside another


class ContrastPanel(NamedTuple):
    """A drawing with a title and a caption."""

    title: str
    svg: Markup
    about: str


class ContrastView(NamedTuple):
    """One contrast as the template shows it."""

    view: dict[str, object]
    change: str
    before: ContrastPanel
    after: ContrastPanel
    pairs: list[tuple[str, ContrastPanel, ContrastPanel]]


def contrast_kind(path: Path) -> str:
    """The kind of file that a suffix stands for.

    >>> contrast_kind(Path("why.html"))
    'html'
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("html", "json"):
        raise ConfigError(f"{path}: a contrast ends in .html or .json, got {path.suffix or 'no ending'!r}. Rename it")
    return kind


def write_contrast(path: Path, contrasts: Sequence[Contrast], graphs: GraphSet, chosen: Sequence[int]) -> None:
    """Write a page or JSON, depending on the suffix."""
    if contrast_kind(path) == "json":
        write_text(path, "[" + ",\n".join(c.to_json() for c in contrasts) + "]\n")
    else:
        write_text(path, contrast_page(contrasts, graphs, chosen))


def contrast_page(contrasts: Sequence[Contrast], graphs: GraphSet, chosen: Sequence[int]) -> str:
    """One self-contained HTML page for some graphs of a set."""
    views = [_view(c, graphs, at, f"g{k}") for k, (c, at) in enumerate(zip(contrasts, chosen, strict=True))]
    links = [(f"g{k}", title_of(c.hierarchy)) for k, c in enumerate(contrasts)] if len(contrasts) > 1 else []
    names = sorted({c.hierarchy.about for c in contrasts})
    return render(
        "contrast.html", heading=f"Why {', '.join(names)}", links=links, contrasts=views,
        about=f"{graphs.name} · method {contrasts[0].hierarchy.method}",
    )  # fmt: skip


def _view(c: Contrast, graphs: GraphSet, at: int, key: str) -> ContrastView:
    h = c.hierarchy
    predicted, other = h.classes[h.target], c.against
    b = h.classes.index(other)
    original = f"p({predicted}) = {h.probability[h.target]:.3f}, p({other}) = {h.probability[b]:.3f}"
    p = c.flip.probability
    changed = f"p({predicted}) = {p[h.target]:.3f}, p({other}) = {p[b]:.3f}"
    mol, N, source, target = graph_of(graphs, at)
    marked = [*c.flip.nodes, *(v for edge in c.flip.edges for v in edge)]
    left = [v for v in range(N) if v not in c.flip.nodes]
    small = N <= DRAWN
    ground = graph_canvas(mol, N, source, target) if small else None
    before = "" if ground is None else marked_svg(ground, source, target, marked, "original", colour=MINUS, width=420)
    after = "" if not small else fragment_svg(mol, source, target, left, "changed", 420, c.flip.edges)
    pairs = [
        (f"Most similar graph of {name}", *_pair(c, graphs, at, n))
        for n, name in zip(c.nearest, (predicted, other), strict=False)
    ]
    if c.pair is not None and c.pair.index not in [n.index for n in c.nearest]:
        pairs.append((f"Most similar graph that the model predicts as {other}", *_pair(c, graphs, at, c.pair)))
    return ContrastView(
        explorer_view(h, key), _sentence(c, other), ContrastPanel("Original", Markup(before), original),
        ContrastPanel("Changed", Markup(after), changed), pairs,
    )  # fmt: skip


def _sentence(c: Contrast, other: str) -> str:
    """Describe the change."""
    h = c.hierarchy
    what = [node_name(h, v) for v in c.flip.nodes]
    what += [f"the edge {node_name(h, a)} – {node_name(h, b)}" for a, b in c.flip.edges]
    if not what:
        return "Nothing can be removed from this graph."
    listed = " and ".join(filter(None, [", ".join(what[:-1]), what[-1]]))
    pieces = "" if c.flip.connected else " This disconnects the graph."
    if c.flip.flipped:
        return f"Without {listed} the model predicts {other}.{pieces}"
    return f"No four removals make {other} more probable; removing {listed} comes closest.{pieces}"


def _pair(c: Contrast, graphs: GraphSet, at: int, n: Neighbour) -> tuple[ContrastPanel, ContrastPanel]:
    """This graph and a similar one, with their maximum common substructure marked if it was found."""
    panels = []
    for g, nodes, title, about in (
        (at, n.shared, title_of(c.hierarchy), f"predicted {c.hierarchy.answer}"),
        (
            n.index,
            n.matched,
            n.id if graphs.named else f"Graph {n.graph}",
            (f"predicted {n.predicted}" if n.predicted else "not predicted")
            + ("" if n.label is None else f", label {n.label}")
            + f"; similarity {n.similarity:.2f}"
            + (f", {len(n.shared)} atoms in common" if n.shared else ""),
        ),
    ):
        mol, N, source, target = graph_of(graphs, g)
        svg = ""
        if N <= DRAWN:
            svg = marked_svg(graph_canvas(mol, N, source, target), source, target, nodes, title, colour=PLUS, width=340)
        panels.append(ContrastPanel(title, Markup(svg), about))
    return panels[0], panels[1]
