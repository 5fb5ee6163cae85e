"""The page of `asapool explain`: some graphs, each with its importance and its hierarchy of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asapool.errors import ConfigError
from asapool.files import write_text
from asapool.insight import Hierarchy
from asapool.insight.drawing.figure import FORMATS
from asapool.reports.explorer import explorer_view, title_of
from asapool.reports.page import render


def explain_page(
    hierarchies: Sequence[Hierarchy], title: str = "Which nodes mattered, and what was pooled", *,
    names: Sequence[str] = (), columns: int = 1,
) -> str:  # fmt: skip
    """One self-contained HTML page for any number of hierarchies.

    Args:
        hierarchies: In the order of the page.
        title: The heading.
        names: One per hierarchy, such as the model it is from, written beside its title.
        columns: 2 puts every two of them side by side.
    """
    named = [(f"g{k}", hierarchy) for k, hierarchy in enumerate(hierarchies)]
    words = [f" · {name}" for name in names] or [""] * len(named)
    links = [(key, title_of(h) + more) for (key, h), more in zip(named, words, strict=True)] if len(named) > 1 else []
    sets = ", ".join(sorted({h.data for h in hierarchies}))
    methods = ", ".join(sorted({h.method for h in hierarchies}))
    views = [explorer_view(h, key, name=more) for (key, h), more in zip(named, words, strict=True)]
    rows = [views[k : k + columns] for k in range(0, len(views), columns)]
    return render("explanation.html", heading=title, about=f"{sets} · method {methods}", links=links, rows=rows)


def explanation_kind(path: Path, graphs: int = 1) -> str:
    """What the ending of a file's name stands for: html, json, or a picture, which is of one graph.

    >>> explanation_kind(Path("caffeine.png"))
    'png'
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("html", "json", *FORMATS):
        known = ", ".join(f".{name}" for name in ("html", "json", *FORMATS))
        raise ConfigError(
            f"{path}: an explanation ends in one of {known}, got {path.suffix or 'no ending'!r}. Rename it"
        )
    if kind in FORMATS and graphs > 1:
        raise ConfigError(f"{path}: a picture is of one graph, got {graphs}. Write .html, or one picture for each")
    return kind


def write_explanation(
    path: Path, hierarchies: Sequence[Hierarchy], kind: str, level: int | None = None, *, names: Sequence[str] = (),
    columns: int = 1,
) -> None:  # fmt: skip
    """Write a page, the numbers, or the picture of the first hierarchy: its clusters at a level, else importance."""
    if kind == "html":
        write_text(path, explain_page(hierarchies, names=names, columns=columns))
    elif kind == "json":
        write_text(path, "[" + ",\n".join(h.to_json() for h in hierarchies) + "]\n")
    else:
        (one,) = hierarchies
        colour = None if level is not None or not one.importance else list(one.importance)[-1]
        one.save_picture(path, level or 0, colour)
