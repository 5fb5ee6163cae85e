"""The page of `asapool motifs`: a sortable, searchable table with drawings, intervals and examples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from asapool.data import GraphSet
from asapool.files import write_text
from asapool.insight import explain
from asapool.insight.drawing.overlays import MINUS, PLUS
from asapool.insight.drawing.pictures import fragment_svg, graph_canvas, marked_svg
from asapool.insight.levels import Ints
from asapool.insight.substructures.naming import molecule_at
from asapool.insight.substructures.results import Example, Motif, Motifs, motifs_kind
from asapool.models.checkpoint import LoadedModel
from asapool.reports.explain_page import explain_page
from asapool.reports.page import Fact, render

ROWS = 200  # substructures on the page; the CSV has all of them
DRAWN = 60  # nodes of the largest example that is drawn


class Words(NamedTuple):
    """The texts of the page for one kind of target."""

    raises: str
    unit: str
    measured: str
    enrichment: str
    test: str


WORDS = {
    "classification": Words(
        "supporting {}", "log odds of {}", "ln p/(1 − p), the log odds of the class,", "odds ratio",
        "Odds of the class among labelled graphs with the substructure, divided by the odds without it (½ added to "
        "each count), and Fisher's exact test",
    ),
    "multilabel": Words(
        "supporting {}", "log odds of {}", "ln p/(1 − p), the log odds of yes,", "odds ratio",
        "Odds of yes among labelled graphs with the substructure, divided by the odds without it (½ added to each "
        "count), and Fisher's exact test",
    ),
    "regression": Words(
        "raising {}", "{}", "the predicted value", "difference",
        "Mean of the labels of graphs with the substructure − mean of the others, and the Mann-Whitney test",
    ),
}  # fmt: skip


class ExampleView(NamedTuple):
    """A graph that contains the substructure."""

    title: str
    svg: Markup
    about: str
    link: str


class MotifView(NamedTuple):
    """A row of the table; `sort` has the numbers behind the texts."""

    motif: Motif
    supports: str
    svg: Markup
    sort: Mapping[str, float]
    contribution: str
    interval: str
    bar: Markup
    odds: str
    p: str
    examples: list[ExampleView]


def motifs_page(motifs: Motifs, graphs: GraphSet, links: Mapping[int, str] | None = None) -> str:
    """One self-contained HTML page.

    Args:
        motifs: What `asapool.motifs` returned.
        graphs: The set it was computed on.
        links: Address of the page of a graph, by its position in the source.
    """
    index = {place: g for g, place in enumerate(graphs.places.tolist())}
    rows = motifs.rows[:ROWS]
    reach = max([abs(v) for m in rows for v in (*m.low, *m.high) if math.isfinite(v)], default=1.0) or 1.0
    views = [_row(motifs, m, graphs, index, reach, links or {}) for m in rows]
    alone = sum(m.variant_of is None for m in motifs)
    words = WORDS[motifs.kind]
    facts = [
        Fact("graphs", f"{motifs.graphs:,}"),
        Fact("substructures", f"{len(motifs):,}", f"{alone:,} without variants"),
        *(
            Fact(words.raises.format(name), f"{sum(m.strength(c) > 0 for m in motifs):,}", "95 % interval above 0")
            for c, name in enumerate(motifs.outputs[:4])
        ),
    ]
    what = {"clusters": "members of kept clusters", "BRICS": "BRICS fragments", "query": "matches of the query"}
    return render(
        "motifs.html", heading="Which substructures drive the predictions", title=f"Motifs of {motifs.data}",
        about=f"{motifs.data} · method {motifs.method} · {what[motifs.source]}", facts=facts, views=views,
        note=motifs.note, outputs=motifs.outputs, words=words, left=len(motifs) - len(rows),
        molecules=graphs.source_text is not None, query=motifs.source == "query",
        variants=any(m.variant_of for m in rows),
    )  # fmt: skip


def write_motifs(path: Path, motifs: Motifs, graphs: GraphSet, links: Mapping[int, str] | None = None) -> None:
    """Write a page, a table or JSON, depending on the suffix."""
    if motifs_kind(path) == "html":
        write_text(path, motifs_page(motifs, graphs, links))
    else:
        motifs.save(path)


def _row(
    motifs: Motifs, m: Motif, graphs: GraphSet, index: Mapping[int, int], reach: float, links: Mapping[int, str]
) -> MotifView:
    c = m.main
    examples = [_example(motifs, e, c, graphs, index[e.graph], links) for e in m.examples]
    first = m.examples[0]
    mol, _, source, target = graph_of(graphs, index[first.graph])
    drawing = fragment_svg(mol, source, target, first.nodes, m.name) if motifs.source != "query" else ""
    low, high = m.low[c], m.high[c]
    known = math.isfinite(low)
    return MotifView(
        motif=m, supports=motifs.outputs[c], svg=Markup(drawing), contribution=_signed(m.contribution[c]),
        interval=f"{_signed(low)} to {_signed(high)}" if known else "one graph only",
        bar=Markup(_bar(m.contribution[c], low, high, reach) if known else ""), odds=_odds(m.enrichment[c]),
        p=_p(m.p_value[c]), examples=examples,
        sort={
            "graphs": m.graphs, "nodes": m.nodes, "level": m.level, "strength": m.strength(c),
            "contribution": m.contribution[c], "odds": _number(m.enrichment[c]), "p": _number(m.p_value[c]),
        },
    )  # fmt: skip


def _example(motifs: Motifs, e: Example, c: int, graphs: GraphSet, g: int, links: Mapping[int, str]) -> ExampleView:
    mol, N, source, target = graph_of(graphs, g)
    title = e.id if graphs.named else f"Graph {e.graph}"
    svg = ""
    if N <= DRAWN:
        colour = PLUS if e.change[c] >= 0 else MINUS
        svg = marked_svg(graph_canvas(mol, N, source, target), source, target, e.nodes, title, colour=colour)
    label = "" if e.label is None else f", label {e.label}"
    unit = WORDS[motifs.kind].unit.format(motifs.outputs[c])
    about = f"predicted {e.predicted}{label}; {unit}: {_signed(-e.change[c])} without it"
    return ExampleView(title, Markup(svg), about, links.get(e.graph, ""))


def graph_of(graphs: GraphSet, g: int) -> tuple[Any | None, int, Ints, Ints]:
    """A graph of the set: its molecule, number of nodes, and edges as node numbers within the graph."""
    a, b = int(graphs.ptr[g]), int(graphs.ptr[g + 1])
    begin, end = graphs.rowptr[a], graphs.rowptr[b]
    target = np.repeat(np.arange(b - a), np.diff(graphs.rowptr[a : b + 1]))
    return molecule_at(graphs, g), b - a, graphs.col[begin:end] - a, target


def _bar(mean: float, low: float, high: float, reach: float) -> str:
    """The interval on a line from −reach to reach."""

    def at(v: float) -> float:
        return 60 + 56 * max(-1.0, min(1.0, v / reach))

    colour = PLUS if mean >= 0 else MINUS
    return (
        f'<svg class="interval" viewBox="0 0 120 14" width="120" height="14" role="img" aria-label="{mean:+.2f}">'
        '<line x1="4" x2="116" y1="7" y2="7" class="axis"/><line x1="60" x2="60" y1="2" y2="12" class="frame"/>'
        f'<line x1="{at(low):.1f}" x2="{at(high):.1f}" y1="7" y2="7" stroke="{colour}" stroke-width="3"/>'
        f'<circle cx="{at(mean):.1f}" cy="7" r="4" fill="{colour}"/></svg>'
    )


def _signed(v: float) -> str:
    return f"{v:+.2f}".replace("-", "−")


def _odds(v: float) -> str:
    return "–" if not math.isfinite(v) else f"{v:.2g}" if v < 100 else f"{v:,.0f}"


def _p(v: float) -> str:
    return "–" if not math.isfinite(v) else f"{v:.3f}" if v >= 0.001 else "< 0.001"


def _number(v: float) -> float:
    return v if math.isfinite(v) else -1.0


def example_pages(path: Path, motifs: Motifs, model: LoadedModel, graphs: GraphSet, count: int) -> dict[int, str]:
    """Write a page that explains example graphs, beside the page of motifs; return their addresses by position."""
    index = {place: g for g, place in enumerate(graphs.places.tolist())}
    places = dict.fromkeys(m.examples[0].graph for m in motifs.top(count=count) if m.examples)
    beside = path.with_name(f"{path.stem}-graphs.html")
    write_text(beside, explain_page([explain(model, graphs, index[place]) for place in places]))
    return {place: f"{quote(beside.name)}#g{k}" for k, place in enumerate(places)}
