"""Figures of reproduced tables: accuracy against a setting or a distance, on the page and as a figure for papers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from asapool.experiments.tables import Table, TableCell
from asapool.insight.drawing.figure import new_figure
from asapool.reports.charts import Chart, Line, line_chart

COLOURS = ("#0a64a4", "#d55e00", "#009e73", "#a8568a", "#8a919e", "#b3390b")  # as the page has them by day


class PlanFigure(NamedTuple):
    """What the figure of a plan shows; alone = it shows all that charts of the means would show."""

    x: str
    lines: Callable[[Table], list[Line]]
    alone: bool


def plan_chart(table: Table) -> Chart | None:
    """The figure for the page; None where the plan has none or nothing is measured."""
    kind = FIGURES.get(table.name)
    lines = kind.lines(table) if kind else []
    if kind is None or not lines:
        return None
    ends = min(x for line in lines for x in line.x), max(x for line in lines for x in line.x)
    room = 0.05 * ((ends[1] - ends[0]) or 1)
    label = f"{table.metric} accuracy against the {kind.x}"
    return line_chart(lines, label, kind.x, f"{table.metric} accuracy, %", (ends[0] - room, ends[1] + room))


def plan_figure(table: Table) -> Any | None:
    """The figure for papers and slides, by matplotlib; None where the plan has none or nothing is measured."""
    kind = FIGURES.get(table.name)
    lines = kind.lines(table) if kind else []
    if kind is None or not lines:
        return None
    figure = new_figure(6.0, 3.8)
    axes = figure.add_subplot(xlabel=kind.x, ylabel=f"{table.metric} accuracy, %", title=table.title)
    axes.spines[["top", "right"]].set_visible(False)
    for k, line in enumerate(lines):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(line.x, line.y, label=line.name, color=colour, marker="o" if line.dots else None)
        low, high = ([y + sign * b for y, b in zip(line.y, line.band, strict=True)] for sign in (-1, 1))
        axes.fill_between(line.x, low, high, color=colour, alpha=0.16, linewidth=0)
    axes.legend(frameon=False)
    return figure


def ratio_lines(table: Table) -> list[Line]:
    """A line per data set with its deviation as a band, and the paper's number where it prints one."""
    lines, theirs = [], []
    for column in table.columns:
        cells = [c for c in table.cells if c.column == column and c.mean is not None and _ratio(c.settings) is not None]
        if not cells:
            continue
        lines.append(_line(column, [_ratio(cell.settings) or 0.0 for cell in cells], cells))
        for cell in cells:
            paper, k = cell.paper, _ratio(cell.settings)
            if paper is not None and not paper.other and k is not None:
                at, name = [k - 0.02, k + 0.02], f"{column}, the paper at k = {k:g}: {paper}"
                theirs.append(Line(name, at, [paper.mean] * 2, band=[paper.deviation] * 2))
    return lines + theirs


def distance_lines(table: Table) -> list[Line]:
    """A line per method over the data sets chains-2, chains-4, …, whose names end in the distance of the motifs."""
    distances = {c: float(m[1]) for c in table.columns if (m := re.fullmatch(r"chains-(\d+)", c))}
    lines = []
    for row in table.rows:
        cells = [c for c in table.cells if c.row == row and c.column in distances and c.mean is not None]
        if len(cells) > 1:
            lines.append(_line(row, [distances[cell.column] for cell in cells], cells))
    return lines


FIGURES = {
    "figure-ratio": PlanFigure("sampling ratio k", ratio_lines, alone=True),
    "pooling-helps": PlanFigure("distance of the motifs, edges", distance_lines, alone=False),
}


def _line(name: str, x: list[float], cells: Sequence[TableCell]) -> Line:
    seeds = all(cell.over_seeds is not None for cell in cells)
    spread = [(cell.over_seeds if seeds else cell.over_folds) or 0.0 for cell in cells]
    label = f"{name}, ± over {'seeds' if seeds else 'folds'}"
    return Line(label, x, [cell.mean or 0.0 for cell in cells], dots=True, band=spread)


def _ratio(settings: dict[str, object]) -> float | None:
    model = settings.get("model")
    ratio = model.get("ratio") if isinstance(model, dict) else None
    return float(ratio) if isinstance(ratio, float) else None
