"""Figures of reproduced tables: accuracies as a forest plot, and accuracy against a setting or a distance."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from asapool.experiments.cells import TableCell
from asapool.experiments.tables import Table
from asapool.insight.drawing.figure import new_figure
from asapool.reports.charts import COLOURS, Chart, LegendKey, Line, line_chart, ticks
from asapool.reports.page import text

PRINTED = ("#0a64a4", "#d55e00", "#009e73", "#a8568a", "#8a919e", "#b3390b")  # the colours of the light page


class PlanFigure(NamedTuple):
    """The figure of a plan; alone: charts of the means would show nothing new."""

    x: str
    lines: Callable[[Table], list[Line]]
    alone: bool


def plan_chart(table: Table) -> Chart | None:
    """The figure for the page; None if the plan has none or nothing was measured."""
    kind = FIGURES.get(table.name)
    lines = kind.lines(table) if kind else []
    if kind is None or not lines:
        return None
    ends = min(x for line in lines for x in line.x), max(x for line in lines for x in line.x)
    room = 0.05 * ((ends[1] - ends[0]) or 1)
    label = f"{table.metric} accuracy against the {kind.x}"
    return line_chart(lines, label, kind.x, f"{table.metric} accuracy, %", (ends[0] - room, ends[1] + room))


def plan_figure(table: Table) -> Any | None:
    """The figure for papers and slides, by matplotlib; None if the plan has none or nothing was measured."""
    kind = FIGURES.get(table.name)
    lines = kind.lines(table) if kind else []
    if kind is None or not lines:
        return None
    figure = new_figure(6.0, 3.6 + 0.2 * len(lines))
    axes = figure.add_subplot(xlabel=kind.x, ylabel=f"{table.metric} accuracy, %", title=table.title)
    axes.spines[["top", "right"]].set_visible(False)
    for k, line in enumerate(lines):
        colour = PRINTED[k % len(PRINTED)]
        axes.plot(line.x, line.y, label=line.name, color=colour, marker="o" if line.dots else None)
        low = [max(y - b, 0.0) for y, b in zip(line.y, line.band, strict=True)]
        high = [min(y + b, 100.0) for y, b in zip(line.y, line.band, strict=True)]
        axes.fill_between(line.x, low, high, color=colour, alpha=0.16, linewidth=0)
    measured = sorted({x for line in lines if line.dots for x in line.x})
    axes.set_xticks(measured, [f"{x:g}" for x in measured])
    figure.legend(loc="outside lower center", frameon=False)  # a legend inside would cover lines and bands
    return figure


def ratio_lines(table: Table) -> list[Line]:
    """A line per data set with its deviation as a band, and the paper's number if it reports one."""
    lines, reported = [], []
    for column in table.columns:
        cells = [c for c in table.cells if c.column == column and c.mean is not None and _ratio(c.settings) is not None]
        if not cells:
            continue
        lines.append(_line(column, [_ratio(cell.settings) or 0.0 for cell in cells], cells))
        for cell in cells:
            paper, k = cell.paper, _ratio(cell.settings)
            if paper is not None and not paper.other and k is not None:
                at, name = [k - 0.02, k + 0.02], f"{column}, the paper at k = {k:g}: {paper}"
                reported.append(Line(name, at, [paper.mean] * 2, band=[paper.deviation] * 2))
    return lines + reported


def distance_lines(table: Table) -> list[Line]:
    """A line per method over the data sets chains-4, chains-5, …, named by the distance between the motifs."""
    distances = {c: float(m[1]) for c in table.columns if (m := re.fullmatch(r"chains-(\d+)", c))}
    lines = []
    for row in table.rows:
        cells = [c for c in table.cells if c.row == row and c.column in distances and c.mean is not None]
        if len(cells) > 1:
            lines.append(_line(row, [distances[cell.column] for cell in cells], cells))
    return lines


FIGURES = {
    "figure-ratio": PlanFigure("sampling ratio k", ratio_lines, alone=True),
    "pooling-range": PlanFigure("distance between the motifs, edges", distance_lines, alone=False),
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


WIDTH, LEFT, RIGHT, TOP, BOTTOM, LINE = 380, 128, 14, 8, 38, 30
LETTERS = 19  # shown of a row's name; the whole name is in the tooltip and in the table


class Mark(NamedTuple):
    """One row: our mean and deviation, the paper's, and the values of single folds by seed."""

    name: str
    mean: float | None
    deviation: float | None = None
    paper: tuple[float, float] | None = None
    seeds: tuple[tuple[str, tuple[float, ...]], ...] = ()


def forest_chart(marks: Sequence[Mark], label: str, x_label: str) -> Chart:
    """One line per row. A shaded bar is the paper's mean ± deviation, a dot our mean, its whiskers the deviation."""
    low, high = _span(marks)
    height = TOP + BOTTOM + LINE * max(len(marks), 1)

    def at(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    body = ""
    for value in ticks(low, high, 4):
        x = at(value)
        body += f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - BOTTOM}" class="axis"/>'
        body += f'<text x="{x:.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{value:g}</text>'
    for k, mark in enumerate(marks):
        body += _row(mark, TOP + LINE * (k + 0.5), at)
    middle = (LEFT + WIDTH - RIGHT) / 2
    body += f'<text x="{middle}" y="{height - 5}" text-anchor="middle">{text(x_label)}</text>'
    description = text(f"{label}. {'; '.join(map(_describe, marks))}")
    drawn = f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{description}">{body}</svg>'
    return Chart(Markup(drawn), label, tuple(_legend(marks)))


def _row(mark: Mark, y: float, at: Callable[[float], float]) -> str:
    short = mark.name if len(mark.name) <= LETTERS else f"{mark.name[: LETTERS - 1]}…"
    body = f"<g><title>{text(_describe(mark))}</title>"
    body += f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text(short)}</text>'
    if mark.paper is not None:
        mean, deviation = mark.paper
        a, x, b = at(mean - deviation), at(mean), at(mean + deviation)
        body += f'<rect x="{a:.1f}" y="{y - 10:.1f}" width="{max(b - a, 2):.1f}" height="20" rx="3" class="theirs"/>'
        body += f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 10:.1f}" y2="{y + 10:.1f}" class="their-mean"/>'
    for k, (_, values) in enumerate(mark.seeds):
        for i, value in enumerate(values):  # deterministic jitter
            lift = 16 * ((i * 0.618 + k * 0.37) % 1 - 0.5)
            colour = COLOURS[k % len(COLOURS)]
            body += f'<circle cx="{at(value):.1f}" cy="{y + lift:.1f}" r="2.8" fill="{colour}" fill-opacity="0.7"/>'
    if mark.mean is not None and mark.seeds:
        x = at(mark.mean)
        body += f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 11:.1f}" y2="{y + 11:.1f}" class="our-mean"/>'
    elif mark.mean is not None:
        x = at(mark.mean)
        if mark.deviation is not None:
            a, b = at(mark.mean - mark.deviation), at(mark.mean + mark.deviation)
            body += f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y:.1f}" y2="{y:.1f}" class="our-whisker"/>'
        body += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="var(--accent)"/>'
    return f"{body}</g>"


def _span(marks: Sequence[Mark]) -> tuple[float, float]:
    values = [v for mark in marks for _, folds in mark.seeds for v in folds]
    for mark in marks:
        if mark.mean is not None:
            side = 0.0 if mark.seeds else mark.deviation or 0.0
            values += [mark.mean - side, mark.mean + side]
        if mark.paper is not None:
            values += [mark.paper[0] - mark.paper[1], mark.paper[0] + mark.paper[1]]
    low, high = min(values, default=0.0), max(values, default=100.0)
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def _describe(mark: Mark) -> str:
    ours = "not measured" if mark.mean is None else f"{mark.mean:.2f}"
    if mark.mean is not None and mark.deviation is not None:
        ours += f" ± {mark.deviation:.2f}"
    paper = "" if mark.paper is None else f", the paper {mark.paper[0]:.2f} ± {mark.paper[1]:.2f}"
    return f"{mark.name}: {ours}{paper}"


def _legend(marks: Sequence[Mark]) -> list[LegendKey]:
    seeds = list(dict.fromkeys(seed for mark in marks for seed, _ in mark.seeds))
    keys = [LegendKey("the paper, mean ± deviation", "var(--pale)", "band")] if any(m.paper for m in marks) else []
    if not seeds:
        return [*keys, LegendKey("ours, ± over seeds", "var(--accent)")]
    more = f", and {len(seeds) - 6} more in the same colours" if len(seeds) > 6 else ""
    keys += [LegendKey(f"seed {seed}", colour) for seed, colour in zip(seeds, COLOURS, strict=False)]
    return [*keys, LegendKey(f"mean{more}", "var(--ink)", "bar")]
