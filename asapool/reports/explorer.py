"""The part of a page that shows one hierarchy: the drawing with its layers, the controls, and all numbers as tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from asapool.insight import Hierarchy
from asapool.insight.drawing.canvas import Canvas, canvas
from asapool.insight.drawing.coloring import PALETTE, territory
from asapool.insight.drawing.numbers import CROWDED, cluster_numbers, node_numbers
from asapool.insight.drawing.overlays import ARCS, hulls, links, marks
from asapool.reports.explorer_tables import DIGITS, SIGNED, node_name, rounded, sizes, strongest, tables
from asapool.reports.page import data_block, text

KINDS = {
    "attention": "Attention", "gradient": "Gradient", "occlusion": "Occlusion",
}  # fmt: skip
MEANING = {
    "clusters": "Clusters that touch differ in colour as far as seven colours go; others may share one. Each has its "
    "number in the small circle on the ring around its medoid. Nodes without colour are in no kept cluster. Arcs are "
    f"pooled edges, heavier ones darker; of more than {ARCS:,} the heaviest are drawn.",
    "attention": "How much of each node reaches the readouts: attention × fitness, composed over the levels.",
    "gradient": "Gradient × input, in log odds: orange speaks for the explained class, blue against it.",
    "occlusion": "What the log odds lose when the node is removed: orange speaks for the class, blue against it.",
}
WORDS = (
    "<b>Medoid</b>: the node that a cluster was formed around. "
    "<b>Fitness</b>: the score by which a cluster was kept, and others were not."
)


def explorer(hierarchy: Hierarchy, key: str, heading: str = "h2") -> str:
    """One hierarchy as HTML; key makes its ids differ from those of others on the page."""
    ground = canvas(hierarchy)
    head = f'<{heading} id="{key}-title">{text(title_of(hierarchy))}</{heading}>'
    source = f'<p class="source"><code>{text(hierarchy.text)}</code></p>' if hierarchy.text else ""
    note = f'<p class="note">{text(hierarchy.note)}</p>' if hierarchy.note else ""
    meaning, words = (MEANING["clusters"], f'<p class="words">{WORDS}</p>') if hierarchy.levels else ("", "")
    return (
        f'<article class="card explorer" id="{key}" aria-labelledby="{key}-title">'
        f"<header>{head}{source}{_verdict(hierarchy)}</header>{note}"
        f'<div class="stage"><div class="drawing">{_controls(hierarchy, key)}{_drawing(hierarchy, ground, key)}'
        f'{_scales(hierarchy)}<p class="meaning" data-meaning>{text(meaning)}</p>{words}</div>'
        f'<aside class="panel"><div class="told" data-told aria-live="polite"></div>{sizes(hierarchy)}</aside></div>'
        f"{tables(hierarchy)}{data_block(page_data(hierarchy))}</article>"
    )


def page_data(hierarchy: Hierarchy) -> dict[str, Any]:
    """What the script needs, in the library's own numbers, rounded."""
    levels = []
    for depth, level in enumerate(hierarchy.levels, 1):
        shares = hierarchy.assignment(depth)
        home, colour = territory(hierarchy, depth)
        levels.append(
            {
                "medoid": level.medoid.tolist(), "fitness": rounded(level.kept_fitness), "home": home.tolist(),
                "colour": [PALETTE[c] for c in colour.tolist()],
                "nodes": strongest(shares.tocsr()), "clusters": strongest(shares.tocsc()),
            }
        )  # fmt: skip
    return {
        "names": [node_name(hierarchy, v) for v in range(hierarchy.nodes)], "levels": levels, "meaning": MEANING,
        "importance": {kind: rounded(scores) for kind, scores in hierarchy.importance.items()}, "digits": DIGITS,
        "about": hierarchy.classes[hierarchy.target],
    }  # fmt: skip


def title_of(hierarchy: Hierarchy) -> str:
    """Its id; a bare number says what it is a number of."""
    return f"Graph {hierarchy.id}" if hierarchy.id.isdigit() else hierarchy.id


def _verdict(hierarchy: Hierarchy) -> str:
    """The answer in words and as bars."""
    wrong = hierarchy.label is not None and hierarchy.label != hierarchy.answer
    known = ""
    if hierarchy.label is not None:
        kind, sign = ("wrong", "✗") if wrong else ("right", "✓")
        known = f' <span class="{kind}">label: {text(hierarchy.label)} {sign}</span>'
    order = np.argsort(-hierarchy.probability, kind="stable")[:6].tolist()
    bars = "".join(
        f'<div class="bar"><span>{text(hierarchy.classes[c])}</span><div class="track">'
        f'<i style="width:{100 * hierarchy.probability[c]:.2f}%"></i></div><b>{hierarchy.probability[c]:.3f}</b></div>'
        for c in order
    )
    said = f"predicted <strong>{text(hierarchy.answer)}</strong> with probability "
    said += f"<strong>{hierarchy.confidence:.3f}</strong>"
    return f'<p class="verdict">{said}{known}</p><div class="bars">{bars}</div>'


def _controls(hierarchy: Hierarchy, key: str) -> str:
    sizes = hierarchy.connectivity
    word = "Atoms" if hierarchy.names and hierarchy.text else "Nodes"
    levels = [
        (0, f"{word} · {hierarchy.nodes}"),
        *((depth, f"Level {depth} · {sizes[depth].nodes}") for depth in range(1, len(sizes))),
    ]
    start = 1 if hierarchy.levels else 0
    choices = [("clusters", "Clusters")] if hierarchy.levels else []
    choices += [(kind, KINDS[kind]) for kind in hierarchy.importance]
    first = choices[0][0] if choices else ""
    on = " checked" if hierarchy.nodes <= CROWDED else ""
    boxes = f'<label class="tick"><input type="checkbox" data-numbers{on}> numbers</label>'
    if hierarchy.levels:
        boxes += '<label class="tick"><input type="checkbox" data-links checked> pooled edges</label>'
    if hierarchy.truth is not None and hierarchy.truth.any():
        boxes += '<label class="tick"><input type="checkbox" data-truth> mark the true reason</label>'
    level = _radios(
        f"{key}-level", "Level", "data-level", [(str(depth), words, depth == start) for depth, words in levels]
    )
    view = _radios(f"{key}-view", "Colour", "data-view", [(v, words, v == first) for v, words in choices])
    return f'<div class="controls">{level if hierarchy.levels else ""}{view}<div class="ticks">{boxes}</div></div>'


def _radios(name: str, legend: str, mark: str, choices: list[tuple[str, str, bool]]) -> str:
    options = "".join(
        f'<label><input type="radio" name="{name}" {mark} value="{value}"{" checked" if on else ""}>'
        f"<span>{text(words)}</span></label>"
        for value, words, on in choices
    )
    return f'<fieldset class="choice"><legend>{legend}</legend><div>{options}</div></fieldset>'


def _drawing(hierarchy: Hierarchy, ground: Canvas, key: str) -> str:
    """All layers lie in one SVG; the script shows those that the controls ask for."""
    depths = range(1, len(hierarchy.levels) + 1)
    later = {depth: "" if depth == 1 else " hidden" for depth in depths}
    under = "".join(
        f'<g data-layer="clusters" data-at="{depth}"{later[depth]}>{hulls(hierarchy, ground, depth)}</g>'
        for depth in depths
    )
    first = not hierarchy.levels
    for kind in hierarchy.importance:
        under += f'<g data-layer="{kind}"{"" if first else " hidden"}>{marks(hierarchy, ground, kind)}</g>'
        first = False
    over = "".join(
        f'<g data-layer="links" data-at="{depth}"{later[depth]}>{links(hierarchy, ground, depth)}</g>'
        for depth in depths
    )
    r = 0.46 * ground.unit
    if hierarchy.truth is not None:
        rings = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.5 * ground.unit:.1f}"/>'
            for (x, y), t in zip(ground.position.tolist(), hierarchy.truth.tolist(), strict=True)
            if t
        )
        over += f'<g class="truth" data-layer="truth" hidden>{rings}</g>'
    few = hierarchy.nodes <= CROWDED
    top = f'<g data-layer="numbers"{"" if few else " hidden"}>{node_numbers(hierarchy, ground)}</g>' + "".join(
        f'<g data-layer="badges" data-at="{depth}"{later[depth] if few else " hidden"}>'
        f"{cluster_numbers(hierarchy, ground, depth)}</g>"
        for depth in depths
    )
    hits = "".join(
        f'<circle data-node="{v}" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" tabindex="{-1 if v else 0}" role="img" '
        f'aria-label="{text(node_name(hierarchy, v))}"/>'
        for v, (x, y) in enumerate(ground.position.tolist())
    )
    said = text(f"{hierarchy.id}: {hierarchy.nodes} nodes. Arrow keys walk from node to node.")
    # small graphs are not blown up to the whole width of the page
    style = f"max-width:{max(ground.width * 1.35, 300):.0f}px"
    return (
        f'<svg class="graph" id="{key}-svg" viewBox="0 0 {ground.width:.0f} {ground.height:.0f}" style="{style}" '
        f'role="group" aria-label="{said}">{under}<g data-spot></g>{over}{ground.skeleton}{top}'
        f'<g class="hits">{hits}</g></svg>'
    )


def _scales(hierarchy: Hierarchy) -> str:
    """What the colours of each kind of importance stand for: from the strongest against the class to that for it."""
    about, found = text(hierarchy.classes[hierarchy.target]), ""
    for place, (kind, scores) in enumerate(hierarchy.importance.items()):
        top = f"{np.abs(scores).max(initial=0.0):.{DIGITS}f}"
        low, left, right = "0", "", "the same for every class"
        if kind in SIGNED:
            low, left, right = f"−{top}", f"against {about}", f"for {about}"
            top = f"0</small><small>+{top}"
        hidden = " hidden" if hierarchy.levels or place else ""
        found += (
            f'<div class="scale" data-scale="{kind}"{hidden}><span>{left}</span>'
            f'<div><i class="{"both" if left else "one"}"></i><small>{low}</small><small>{top}</small></div>'
            f"<span>{right}</span></div>"
        )
    return found
