"""The page of `asapool explain --check`: a table of measures and the curves behind it."""

from __future__ import annotations

import io
from pathlib import Path

from asapool.errors import ConfigError
from asapool.files import csv_writer, write_text
from asapool.insight.faithfulness import RANDOM, Faithfulness
from asapool.insight.importance import KINDS
from asapool.reports.charts import Line, line_chart
from asapool.reports.page import TableView, render

MEASURES = {
    "deletion": ("deletion ↓", "Mean probability of the predicted class while the most important 10%, …, 90% are cut."),
    "insertion": ("insertion ↑", "The same while only the most important 10%, …, 90% of the nodes are kept."),
    "fidelity_plus": ("fidelity+ ↑", "Probability − probability without the most important 20% of the nodes."),
    "fidelity_minus": ("fidelity− ↓", "Probability − probability of the most important 20% alone."),
    "sparsity": ("sparsity ↑", "1 − the smallest share of the nodes that alone give the same class."),
    "precision": ("precision ↑", "Share of true nodes among as many most important ones, where the reason is known."),
    "stability": ("stability ↑", "Rank correlation with the importance from the other models."),
}  # fmt: skip


def check_kind(path: Path) -> str:
    """What the ending of a file's name stands for.

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
    """Write a page, a table or JSON, as the name ends."""
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
    present = {
        name: words for name, words in MEASURES.items() if any(getattr(r, name) is not None for r in checked.rows)
    }
    rows = [
        [label(row.kind), *(_cell(getattr(row, name), row.errors.get(name)) for name in present)]
        for row in checked.rows
    ]
    caption = f"Means over {checked.graphs:,} graphs ± standard error; arrows show which way is better"
    table = TableView(
        ["importance", *(words for words, _ in present.values())], rows, caption, notes=list(present.values())
    )
    charts = []
    for name, what in (("deletion_curve", "removed"), ("insertion_curve", "kept")):
        lines = [
            Line(label(row.kind), checked.steps, getattr(row, name), aside=row.kind == RANDOM) for row in checked.rows
        ]
        title = f"most important nodes {what}"
        charts.append(
            line_chart(lines, title, f"share of the nodes {what}", "p of the predicted class", (0, 1), (0, 1))
        )
    return render(
        "check.html", heading="Is the importance faithful to the model?", title=f"Check of {checked.data}",
        about=f"{checked.data} · method {checked.method}", table=table, charts=charts,
    )  # fmt: skip


def label(kind: str) -> str:
    """The name of a kind of importance."""
    return KINDS[kind].label if kind in KINDS else "Random order"


def _cell(value: float | None, error: float | None) -> str:
    return "–" if value is None else f"{value:.3f} ± {error or 0:.3f}"
