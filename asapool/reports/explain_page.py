"""The page of `asapool explain`: some graphs, each with its hierarchy to walk through."""

from __future__ import annotations

from collections.abc import Sequence

from asapool.insight import Hierarchy
from asapool.reports.explorer import explorer, title_of
from asapool.reports.page import document, text


def explain_page(hierarchies: Sequence[Hierarchy], title: str = "What was pooled, and why") -> str:
    """One self-contained HTML page for any number of hierarchies."""
    named = [(f"g{k}", hierarchy) for k, hierarchy in enumerate(hierarchies)]
    nav = ""
    if len(named) > 1:
        links = "".join(f'<li><a href="#{key}">{text(title_of(h))}</a></li>' for key, h in named)
        nav = f'<nav aria-label="graphs"><ul class="jump">{links}</ul></nav>'
    sets = sorted({h.data for h in hierarchies})
    methods = sorted({h.method for h in hierarchies})
    about = f"{', '.join(sets)} · method {', '.join(methods)}"
    body = "".join(explorer(h, key) for key, h in named)
    head = f'<header class="top"><h1>{text(title)}</h1><p class="lead">{text(about)}</p>{nav}</header>'
    return document(title, f"{head}<main>{body}</main>{FOOT}")


FOOT = (
    "<footer><p>Hover over a node, or focus the drawing and walk with the arrow keys, to see attention and fitness. "
    "Areas show each node in the cluster where its share is largest; clusters overlap, "
    "and the panel tells all shares.</p>"
    "</footer>"
)
