"""The page of `asapool explain`: some graphs, each with its importance and its hierarchy of clusters."""

from __future__ import annotations

from collections.abc import Sequence

from asapool.insight import Hierarchy
from asapool.reports.explorer import explorer_view, title_of
from asapool.reports.page import render


def explain_page(hierarchies: Sequence[Hierarchy], title: str = "Which nodes mattered, and what was pooled") -> str:
    """One self-contained HTML page for any number of hierarchies."""
    named = [(f"g{k}", hierarchy) for k, hierarchy in enumerate(hierarchies)]
    links = [(key, title_of(h)) for key, h in named] if len(named) > 1 else []
    sets = ", ".join(sorted({h.data for h in hierarchies}))
    methods = ", ".join(sorted({h.method for h in hierarchies}))
    views = [explorer_view(h, key) for key, h in named]
    return render("explanation.html", heading=title, about=f"{sets} · method {methods}", links=links, views=views)
