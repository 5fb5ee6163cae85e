"""The paper's figure: accuracy against the sampling ratio k, on the page and as a figure for papers."""

from __future__ import annotations

from typing import Any

from asapool.experiments.tables import Table
from asapool.insight.drawing.figure import new_figure
from asapool.reports.charts import Chart, Line, line_chart

NAME = "figure-ratio"
COLOURS = ("#0a64a4", "#d55e00", "#009e73", "#a8568a", "#8a919e", "#b3390b")  # as the page has them by day


def ratio_lines(table: Table) -> list[Line]:
    """A line per data set with its deviation as a band, and the paper's number where it prints one."""
    lines, theirs = [], []
    for column in table.columns:
        cells = [c for c in table.cells if c.column == column and c.mean is not None and _ratio(c.settings) is not None]
        if not cells:
            continue
        seeds = all(cell.over_seeds is not None for cell in cells)
        spread = [(cell.over_seeds if seeds else cell.over_folds) or 0.0 for cell in cells]
        x, y = [_ratio(cell.settings) or 0.0 for cell in cells], [cell.mean or 0.0 for cell in cells]
        lines.append(Line(f"{column}, ± over {'seeds' if seeds else 'folds'}", x, y, dots=True, band=spread))
        for cell in cells:
            paper, k = cell.paper, _ratio(cell.settings)
            if paper is not None and not paper.other and k is not None:
                at, name = [k - 0.02, k + 0.02], f"{column}, the paper at k = {k:g}: {paper}"
                theirs.append(Line(name, at, [paper.mean] * 2, band=[paper.deviation] * 2))
    return lines + theirs


def ratio_chart(table: Table) -> Chart | None:
    """The figure for the page; None where nothing is measured."""
    lines = ratio_lines(table)
    if not lines:
        return None
    label = f"{table.metric} accuracy against the sampling ratio"
    return line_chart(lines, label, "sampling ratio k", f"{table.metric} accuracy, %", (0.05, 0.95))


def ratio_figure(table: Table) -> Any | None:
    """The figure for papers and slides, by matplotlib; None where nothing is measured."""
    lines = ratio_lines(table)
    if not lines:
        return None
    figure = new_figure(6.0, 3.8)
    axes = figure.add_subplot(xlabel="sampling ratio k", ylabel=f"{table.metric} accuracy, %", title=table.title)
    axes.spines[["top", "right"]].set_visible(False)
    for k, line in enumerate(lines):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(line.x, line.y, label=line.name, color=colour, marker="o" if line.dots else None)
        low, high = ([y + sign * b for y, b in zip(line.y, line.band, strict=True)] for sign in (-1, 1))
        axes.fill_between(line.x, low, high, color=colour, alpha=0.16, linewidth=0)
    axes.legend(frameon=False)
    return figure


def _ratio(settings: dict[str, object]) -> float | None:
    model = settings.get("model")
    ratio = model.get("ratio") if isinstance(model, dict) else None
    return float(ratio) if isinstance(ratio, float) else None
