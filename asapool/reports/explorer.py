"""The data that explorer.html shows for one hierarchy: layers of the drawing, controls, all numbers as tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from asapool.insight import Hierarchy
from asapool.insight.drawing.canvas import Canvas, canvas
from asapool.insight.drawing.overlays import (
    CROWDED,
    PALETTE,
    cluster_numbers,
    coloring,
    hulls,
    links,
    marks,
    node_numbers,
)
from asapool.insight.importance import KINDS
from asapool.reports.page import TableView, script_data

DIGITS = 4  # shown on the page; data is rounded here so that the script shows the same digits as the tables
LISTED = 12  # strongest memberships that are listed; the others are only counted
ROWS = 400  # rows of a table


def size_table(hierarchy: Hierarchy) -> TableView:
    """Nodes, edges, components and density of every level."""
    rows = [
        ["graph" if depth == 0 else f"level {depth}", str(c.nodes), str(c.edges), str(c.components), f"{c.density:.2f}"]
        for depth, c in enumerate(hierarchy.connectivity)
    ]
    return TableView(["", "nodes", "edges", "components", "density"], rows, "Sizes of the levels")


def all_tables(hierarchy: Hierarchy) -> list[TableView]:
    """All numbers of the drawing, for people who cannot see it or want to copy them."""
    tables = [_importance(hierarchy)]
    for depth, level in enumerate(hierarchy.levels, 1):
        shares = strongest(hierarchy.assignment(depth).tocsc())
        rows = [
            [
                str(k),
                node_name(hierarchy, int(level.medoid[k])),
                f"{level.kept_fitness[k]:.{DIGITS}f}",
                ", ".join(f"{node_name(hierarchy, p)}: {v:.{DIGITS}f}" for p, v in shares[k][1])
                + (f" and {shares[k][0] - LISTED} more" if shares[k][0] > LISTED else ""),
            ]
            for k in range(min(len(level), ROWS))
        ]
        header = ["cluster", "medoid", "fitness", "members and their shares"]
        tables.append(TableView(header, rows, f"Level {depth}" + _cut(len(level))))
    return tables


class AboutWords(NamedTuple):
    """The texts for what importance refers to; {} in `adds` is the size of an effect."""

    heading: str
    supports: str
    opposes: str
    question: str
    adds: str = ""
    subtracts: str = ""
    unsigned: str = "the same for every class"

    def effect(self, value: float) -> str:
        """What a signed importance means.

        >>> AboutWords("", "raises logS", "lowers logS", "", "adds {} log units", "subtracts {} log units").effect(0.81)
        'adds 0.81 log units'
        """
        if value == 0:
            return "neither"
        if self.adds:
            return (self.adds if value > 0 else self.subtracts).format(f"{abs(value):.3g}")
        return "for" if value > 0 else "against"


def about_words(hierarchy: Hierarchy) -> AboutWords:
    """The texts for the explained class, task or value."""
    name, about = hierarchy.classes[hierarchy.target], hierarchy.about
    if hierarchy.kind != "regression":
        opposes = f"against {name}" if hierarchy.against is None else f"for {hierarchy.classes[hierarchy.against]}"
        unsigned = f"the same for every {'task' if hierarchy.kind == 'multilabel' else 'class'}"
        return AboutWords(
            f"Importance for {about}", f"for {name}", opposes, f"for or against {about}", unsigned=unsigned
        )
    unit = f" {hierarchy.unit}" if hierarchy.unit else ""
    safe = f"{unit} to {name}".replace("{", "{{").replace("}", "}}")
    other = f"{unit} from {name}".replace("{", "{{").replace("}", "}}")
    return AboutWords(
        f"Effect on {name}", f"raises {name}", f"lowers {name}", f"effect on {name}", f"adds {{}}{safe}",
        f"subtracts {{}}{other}", "without a sign",
    )  # fmt: skip


def node_name(hierarchy: Hierarchy, v: int) -> str:
    """`C 7` for an atom, `node 7` without a name, `node 7 (name)` with a long name."""
    name = hierarchy.names[v] if hierarchy.names else ""
    if 0 < len(name) <= 3:
        return f"{name} {v}"
    return f"node {v} ({name})" if name else f"node {v}"


def rounded(values: Any) -> list[float]:
    """Round to the digits of the page, without negative zeros."""
    return [round(v, DIGITS) + 0.0 for v in np.asarray(values).tolist()]


def strongest(shares: Any) -> list[list[Any]]:
    """Per row (or column) of a sparse array: number of entries, then pairs of index and share, strongest first."""
    rows: list[list[Any]] = []
    for a, b in zip(shares.indptr[:-1], shares.indptr[1:], strict=True):
        order = np.argsort(-shares.data[a:b], kind="stable")[:LISTED]
        places, values = shares.indices[a:b][order].tolist(), rounded(shares.data[a:b][order])
        rows.append([int(b - a), [[p, v] for p, v in zip(places, values, strict=True)]])
    return rows


def _importance(hierarchy: Hierarchy) -> TableView:
    """A row per node, sorted by the absolute value of the last kind."""
    kinds, about = list(hierarchy.importance), about_words(hierarchy)
    if not kinds:
        return TableView(["node"], [[node_name(hierarchy, v)] for v in range(min(hierarchy.nodes, ROWS))], "Nodes")
    last = kinds[-1]
    strength, signed = hierarchy.importance[last], KINDS[last].signed
    order = np.argsort(-np.abs(strength), kind="stable")[:ROWS].tolist()
    rows = [
        [
            node_name(hierarchy, v),
            *(f"{hierarchy.importance[kind][v] + 0.0:.{DIGITS}f}" for kind in kinds),
            *([about.effect(float(strength[v]))] if signed else []),
        ]
        for v in order
    ]
    caption = f"{about.heading.replace(' ', ' of the nodes ', 1)}, strongest {last} first"
    if signed:
        caption += f"; the last column interprets the {last} of a node"
    header = ["node", *kinds, *([about.question] if signed else [])]
    return TableView(header, rows, caption + _cut(hierarchy.nodes))


def _cut(count: int) -> str:
    return f" (the first {ROWS} of {count})" if count > ROWS else ""


CLUSTERS = "Areas: clusters. Rings: their medoids. Arcs: pooled edges, heavier ones darker."


class Layer(NamedTuple):
    """A part of the drawing that the controls show or hide; level: that of its clusters, or 0."""

    name: str
    svg: Markup
    hidden: bool = False
    level: int = 0


class ViewChoice(NamedTuple):
    """One button of a group."""

    value: str
    words: str
    checked: bool


def explorer_view(hierarchy: Hierarchy, key: str, heading: str = "h2", name: str = "") -> dict[str, Any]:
    """All values for explorer.html; key is a prefix that makes the ids unique on the page.

    name is added to the title, for example the model of the hierarchy.

    The page opens with importance for molecules, and with the clusters of level 1 for other graphs that have them.
    """
    ground = canvas(hierarchy)
    kinds = list(hierarchy.importance)
    first = "clusters" if hierarchy.levels and not (ground.molecule and kinds) else (kinds or [""])[-1]
    views = [ViewChoice(kind, KINDS[kind].label, kind == first) for kind in kinds]
    views += [ViewChoice("clusters", "Clusters", first == "clusters")] if hierarchy.levels else []
    meaning = {kind: KINDS[kind].meaning_for(hierarchy.kind) for kind in kinds} | {"clusters": CLUSTERS}
    return {
        "key": key, "heading": heading, "title": title_of(hierarchy) + name, "text": hierarchy.text,
        "note": hierarchy.note, "descriptors": hierarchy.descriptor_note,
        "predicted": hierarchy.answer, "label": hierarchy.shown_label,
        "confidence": "" if hierarchy.confidence is None else f"{hierarchy.confidence:.3f}",
        "correct": _correct(hierarchy), "about": about_words(hierarchy), "bars": _bars(hierarchy),
        "views": views, "levels": _levels(hierarchy), "clusters_first": first == "clusters",
        "few": hierarchy.nodes <= CROWDED, "truth": hierarchy.truth is not None and bool(hierarchy.truth.any()),
        "meaning": meaning.get(first, ""), "scales": _scales(hierarchy, first), "sizes": size_table(hierarchy),
        "tables": all_tables(hierarchy), "data": script_data(page_data(hierarchy, meaning)),
        **_drawing(hierarchy, ground, first),
    }  # fmt: skip


def page_data(hierarchy: Hierarchy, meaning: dict[str, str]) -> dict[str, Any]:
    """The rounded numbers that the script needs."""
    levels = []
    for depth, level in enumerate(hierarchy.levels, 1):
        shares = hierarchy.assignment(depth)
        home, colour = coloring(hierarchy, depth)
        levels.append(
            {
                "medoid": level.medoid.tolist(), "fitness": rounded(level.kept_fitness), "home": home.tolist(),
                "colour": [PALETTE[c] for c in colour.tolist()],
                "nodes": strongest(shares.tocsr()), "clusters": strongest(shares.tocsc()),
            }
        )  # fmt: skip
    words = about_words(hierarchy)
    return {
        "names": [node_name(hierarchy, v) for v in range(hierarchy.nodes)], "levels": levels, "meaning": meaning,
        "importance": {kind: rounded(scores) for kind, scores in hierarchy.importance.items()}, "digits": DIGITS,
        "about": words.heading,
        "effects": {
            kind: [words.effect(float(v)) for v in scores]
            for kind, scores in hierarchy.importance.items()
            if words.adds and KINDS[kind].signed
        },
    }  # fmt: skip


def _correct(hierarchy: Hierarchy) -> bool | None:
    """Whether the prediction is correct; None for measured values."""
    if hierarchy.kind == "classification":
        return hierarchy.label == hierarchy.answer
    return None if hierarchy.kind == "regression" else hierarchy.answer.endswith(f": {hierarchy.label}")


def _bars(hierarchy: Hierarchy) -> list[dict[str, str]]:
    """Probabilities of the classes or tasks as bars; measured values have none."""
    if hierarchy.kind == "regression":
        return []
    p = hierarchy.probability
    order = np.argsort(-p, kind="stable")[:6].tolist()
    return [{"name": hierarchy.classes[c], "width": f"{100 * p[c]:.2f}", "number": f"{p[c]:.3f}"} for c in order]


def title_of(hierarchy: Hierarchy) -> str:
    """The id of the graph; `Graph 3` if it is a bare number."""
    return f"Graph {hierarchy.id}" if hierarchy.id.isdigit() else hierarchy.id


def _levels(hierarchy: Hierarchy) -> list[ViewChoice]:
    sizes = hierarchy.connectivity
    word = "Atoms" if hierarchy.names and hierarchy.text else "Nodes"
    names = [f"{word} · {hierarchy.nodes}", *(f"Level {d} · {sizes[d].nodes}" for d in range(1, len(sizes)))]
    return [ViewChoice(str(depth), name, depth == 1) for depth, name in enumerate(names)] if hierarchy.levels else []


def _drawing(hierarchy: Hierarchy, ground: Canvas, first: str) -> dict[str, Any]:
    """The layers below and above the graph, with those of the first view visible, and a hit circle per node."""
    depths = range(1, len(hierarchy.levels) + 1)
    few = hierarchy.nodes <= CROWDED

    def clusters(name: str, draw: Any, shown: bool = True) -> list[Layer]:
        visible = shown and first == "clusters"
        return [
            Layer(name, Markup(draw(hierarchy, ground, depth)), not (visible and depth == 1), depth) for depth in depths
        ]

    under = clusters("clusters", hulls)
    under += [Layer(kind, Markup(marks(hierarchy, ground, kind)), kind != first) for kind in hierarchy.importance]
    over = clusters("links", links)
    if hierarchy.truth is not None:
        rings = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.5 * ground.unit:.1f}"/>'
            for (x, y), t in zip(ground.position.tolist(), hierarchy.truth.tolist(), strict=True)
            if t
        )
        over.append(Layer("truth", Markup(f'<g class="truth">{rings}</g>'), True))
    top = [Layer("numbers", Markup(node_numbers(hierarchy, ground)), not few)]
    top += clusters("badges", cluster_numbers, few)
    hits = [
        {"x": f"{x:.1f}", "y": f"{y:.1f}", "name": node_name(hierarchy, v)}
        for v, (x, y) in enumerate(ground.position.tolist())
    ]
    return {
        "under": under, "over": over, "top": top, "skeleton": Markup(ground.skeleton), "hits": hits,
        "radius": f"{0.46 * ground.unit:.1f}", "width": f"{ground.width:.0f}", "height": f"{ground.height:.0f}",
        "unit": f"{ground.unit:.1f}",
        "widest": f"{max(ground.width * 1.35, 300):.0f}",  # small graphs do not fill the whole page
        "narrowest": f"{min(0.62 * ground.width, 620):.0f}",  # large graphs stay readable on a phone, and scroll
        "described": f"{hierarchy.id}: {hierarchy.nodes} nodes. Arrow keys move from node to node.",
    }  # fmt: skip


def _scales(hierarchy: Hierarchy, first: str) -> list[dict[str, Any]]:
    """The colour scale of each kind of importance."""
    scales = []
    for kind, scores in hierarchy.importance.items():
        top, signed = f"{np.abs(scores).max(initial=0.0):.3g}", KINDS[kind].signed
        low, high = (f"−{top}", f"+{top}") if signed else ("0", top)
        scales.append({"kind": kind, "signed": signed, "low": low, "high": high, "hidden": kind != first})
    return scales
