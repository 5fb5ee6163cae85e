"""The pages of `asapool explain`: graphs with importance and clusters; with --check, how faithful the importance is."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from asapool.errors import ConfigError
from asapool.files import csv_writer, write_text
from asapool.insight import Hierarchy
from asapool.insight.drawing.figure import FORMATS
from asapool.insight.faithfulness import RANDOM, Faithfulness
from asapool.insight.importance import KINDS
from asapool.reports.charts import Chart, Line, line_chart
from asapool.reports.explorer import explorer_view, title_of
from asapool.reports.page import TableView, render


def explain_page(
    hierarchies: Sequence[Hierarchy], title: str = "Which nodes mattered, and what was pooled", *,
    names: Sequence[str] = (), columns: int = 1,
) -> str:  # fmt: skip
    """One self-contained HTML page for any number of hierarchies.

    Args:
        hierarchies: In the order of the page.
        title: The heading.
        names: One per hierarchy, such as its model, shown beside its title.
        columns: 2 shows them in pairs, side by side.
    """
    named = [(f"g{k}", hierarchy) for k, hierarchy in enumerate(hierarchies)]
    suffixes = [f" · {name}" for name in names] or [""] * len(named)
    links = [(key, title_of(h) + suffix) for (key, h), suffix in zip(named, suffixes, strict=True)]
    links = links if len(named) > 1 else []
    sets = ", ".join(sorted({h.data for h in hierarchies}))
    methods = ", ".join(sorted({h.method for h in hierarchies}))
    views = [explorer_view(h, key, name=suffix) for (key, h), suffix in zip(named, suffixes, strict=True)]
    rows = [views[k : k + columns] for k in range(0, len(views), columns)]
    return render(
        "explanation.html", heading=title, about=f"{sets} · method {methods}", links=links, rows=rows,
        target=hierarchies[0].kind if hierarchies else "classification",
    )  # fmt: skip


def explanation_kind(path: Path, graphs: int = 1) -> str:
    """The kind of file that a suffix stands for: html, json, or a picture, which shows one graph.

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
        raise ConfigError(f"{path}: a picture shows one graph, got {graphs}. Write .html, or one picture for each")
    return kind


def write_explanation(
    path: Path, hierarchies: Sequence[Hierarchy], kind: str, level: int | None = None, *, names: Sequence[str] = (),
    columns: int = 1,
) -> None:  # fmt: skip
    """Write a page, JSON, or a picture of the only hierarchy: its clusters at a level, or importance."""
    if kind == "html":
        write_text(path, explain_page(hierarchies, names=names, columns=columns))
    elif kind == "json":
        write_text(path, "[" + ",\n".join(h.to_json() for h in hierarchies) + "]\n")
    else:
        (one,) = hierarchies
        colour = None if level is not None or not one.importance else list(one.importance)[-1]
        one.save_picture(path, level or 0, colour)


MEASURES = {
    "deletion": ("deletion ↓", "Mean probability of the predicted class without the most important 10%, …, 90%."),
    "insertion": ("insertion ↑", "Mean probability with only the most important 10%, …, 90% of the nodes."),
    "fidelity_plus": ("fidelity+ ↑", "Probability − probability without the most important 20% of the nodes."),
    "fidelity_minus": ("fidelity− ↓", "Probability − probability of the most important 20% alone."),
    "sparsity": ("sparsity ↑", "1 − the smallest share of the nodes that alone yield the same class."),
    "precision": ("precision ↑", "Share of true motif nodes among the most important nodes, if the truth is known."),
    "stability": ("stability ↑", "Rank correlation with the importance from the other models."),
}  # fmt: skip
# for a measured value ŷ, where the most important nodes are those with the largest importance of either sign
MEASURES_OF_VALUES = MEASURES | {
    "deletion": ("deletion ↑", "Mean of |ŷ − ŷ without the most important 10%, …, 90% of the nodes|."),
    "insertion": ("insertion ↓", "Mean of |ŷ − ŷ of the most important 10%, …, 90% of the nodes alone|."),
    "fidelity_plus": ("fidelity+ ↑", "|ŷ − ŷ without the most important 20% of the nodes|."),
    "fidelity_minus": ("fidelity− ↓", "|ŷ − ŷ of the most important 20% alone|."),
}


def check_texts(checked: Faithfulness) -> dict[str, str]:
    """The measures of each kind of importance as one line of text, for the terminal."""
    return {
        row.kind: ", ".join(
            f"{heading.split()[0]} {_number(getattr(row, name), checked)}"
            for name, (heading, _) in MEASURES.items()
            if getattr(row, name) is not None
        )
        for row in checked.rows
    }


def check_kind(path: Path) -> str:
    """The kind of file that a suffix stands for.

    >>> check_kind(Path("check.csv"))
    'csv'
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("html", "csv", "json"):
        raise ConfigError(
            f"{path}: a check ends in one of .html, .csv, .json, got {path.suffix or 'no ending'!r}. Rename it"
        )
    return kind


def write_check(path: Path, checked: Faithfulness) -> None:
    """Write a page, a table or JSON, depending on the suffix."""
    kind = check_kind(path)
    if kind == "html":
        write_text(path, check_page(checked))
    else:
        write_text(path, checked.to_json() + "\n" if kind == "json" else check_csv(checked))


def check_csv(checked: Faithfulness) -> str:
    """One line per kind of importance, each measure with its standard error."""
    out = io.StringIO()
    writer = csv_writer(out)
    writer.writerow(["kind", "graphs", *(cell for name in MEASURES for cell in (name, f"{name}_error"))])
    for row in checked.rows:
        values = [(getattr(row, name), row.errors.get(name)) for name in MEASURES]
        writer.writerow([row.kind, checked.graphs, *("" if v is None else f"{v:.6g}" for pair in values for v in pair)])
    return out.getvalue()


def check_page(checked: Faithfulness) -> str:
    """One self-contained HTML page."""
    values = checked.target_kind == "regression"
    measures = MEASURES_OF_VALUES if values else MEASURES
    present = {
        name: texts for name, texts in measures.items() if any(getattr(r, name) is not None for r in checked.rows)
    }
    rows = [
        [label(row.kind), *(_cell(getattr(row, name), row.errors.get(name), checked) for name in present)]
        for row in checked.rows
    ]
    caption = f"Means over {checked.graphs:,} graphs ± standard error; arrows show which way is better"
    table = TableView(
        ["importance", *(heading for heading, _ in present.values())], rows, caption, notes=list(present.values())
    )
    lead = CURVES_OF_VALUES if values else CURVES
    return render(
        "check.html", heading="Is the importance faithful to the model?", title=f"Check of {checked.data}",
        about=f"{checked.data} · method {checked.method} · {quantity_of(checked)}", table=table,
        charts=_curves(checked), lead=f"{lead} The dashed line is a random order.",
    )  # fmt: skip


CURVES = "If an importance is faithful, the first curve falls early and the second rises early."
CURVES_OF_VALUES = "If an importance is faithful, the first curve rises early and the second falls early."


def _curves(checked: Faithfulness) -> list[Chart]:
    """The deletion and the insertion curve of every kind; probabilities on the same axes from 0 to 1."""
    values, charts = checked.target_kind == "regression", []
    # the page begins with the whole name of the quantity, which may be longer than the axis
    y_label = {
        "classification": "p of the predicted class" if checked.target is None else "p of the class",
        "multilabel": "p of the prediction",
        "regression": f"change, {checked.unit}" if checked.unit else "change",
    }[checked.target_kind]
    span = None if values else (0, 1)
    for name, what in (("deletion_curve", "removed"), ("insertion_curve", "kept")):
        lines = [
            Line(label(row.kind), checked.steps, getattr(row, name), aside=row.kind == RANDOM) for row in checked.rows
        ]
        title = f"most important nodes {what}"
        charts.append(line_chart(lines, title, f"share of the nodes {what}", y_label, (0, 1), span))
    return charts


def quantity_of(checked: Faithfulness) -> str:
    """The quantity that removals change, with its unit.

    >>> quantity_of(Faithfulness(data="", method="", graphs=1, steps=(), rows=(), target_kind="regression",
    ...                          target="logS", unit="mol/l"))
    'change of logS, mol/l'
    """
    if checked.target_kind == "regression":
        unit = checked.unit if f"[{checked.unit}]" not in str(checked.target) else ""
        return f"change of {checked.target}" + (f", {unit}" if unit else "")
    if checked.target_kind == "multilabel":
        return f"p of the predicted yes or no of {checked.target}"
    return "p of the predicted class" if checked.target is None else f"p of {checked.target}"


def label(kind: str) -> str:
    """The name of a kind of importance."""
    return KINDS[kind].label if kind in KINDS else "Random order"


def _cell(value: float | None, error: float | None, checked: Faithfulness) -> str:
    return "–" if value is None else f"{_number(value, checked)} ± {_number(error or 0.0, checked)}"


def _number(value: float, checked: Faithfulness) -> str:
    """Three decimals; measured values may be of any size, so very large and small ones have three digits."""
    usual = checked.target_kind != "regression" or value == 0 or 0.01 <= abs(value) < 1e4
    return f"{value:.3f}" if usual else f"{value:.3g}"
