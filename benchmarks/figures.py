"""The figures of docs/results.md: accuracies beside the paper's, accuracy against cost, and the figures of plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asapool.experiments.tables import Table
from asapool.insight.drawing.figure import new_figure, save_figures
from asapool.reports.plan_figures import plan_figure

OURS, OTHERS, PAPER = "#c2410c", "#0f766e", "#d7dbe2"
CAPTIONS = {
    "results-table2": "Test accuracy of the pooling methods, and the paper's",
    "results-cost": "Test accuracy against seconds per training run",
    "results-pooling-range": "Test accuracy against the distance between two motifs",
    "results-figure-ratio": "Validation accuracy against the sampling ratio",
}


def draw(tables: Sequence[Table], costs: Mapping[str, Any], folder: Path) -> None:
    """Write every figure that the tables have numbers for."""
    figures: dict[str, Any] = {f"results-{table.name}": plan_figure(table) for table in tables}
    comparison = next((table for table in tables if table.name == "table2"), None)
    if comparison is not None:
        figures |= {"results-table2": beside_paper(comparison), "results-cost": against_cost(comparison, costs)}
    save_figures({name: figure for name, figure in figures.items() if figure is not None}, folder, kinds=["svg"])


def beside_paper(table: Table) -> Any:
    """One panel per data set: a dot with whiskers is our mean ± deviation over seeds, a bar the paper's."""
    from matplotlib.patches import Patch

    figure = new_figure(2.0 * len(table.columns) + 1, 0.32 * len(table.rows) + 0.9)
    panels = figure.subplots(1, len(table.columns), sharey=True, squeeze=False)[0]
    for axes, column in zip(panels, table.columns, strict=True):
        for y, row in enumerate(table.rows):
            cell = table.cell(row, column)
            if cell is None:
                continue
            if cell.paper is not None and not cell.paper.other:
                mean, deviation = cell.paper[:2]
                axes.barh(y, 2 * deviation, left=mean - deviation, height=0.7, color=PAPER)
            if cell.mean is not None:
                colour = OURS if row == "asap" else OTHERS
                axes.errorbar(cell.mean, y, xerr=cell.over_seeds or 0.0, fmt="o", markersize=4, color=colour)
        axes.use_sticky_edges = False  # otherwise a bar may begin at the frame
        axes.set(title=column, xlabel="accuracy, %", yticks=range(len(table.rows)), yticklabels=table.rows)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#eceef2", linewidth=0.6)
        axes.set_axisbelow(True)
    panels[0].invert_yaxis()
    dot = panels[0].errorbar([], [], xerr=[], fmt="o", markersize=4, color=OTHERS)
    bar = Patch(color=PAPER)
    labels = ["ours, ± over seeds", "the paper, mean ± deviation"]
    figure.legend([dot, bar], labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def against_cost(table: Table, costs: Mapping[str, Any]) -> Any:
    """One panel per data set: each method at its processor seconds and its accuracy."""
    columns = [c for c in table.columns if c in costs]
    if not columns:
        return None
    figure = new_figure(9, 2.9 * -(-len(columns) // 2))
    panels = figure.subplots(-(-len(columns) // 2), 2, squeeze=False).ravel()
    for axes, column in zip(panels, columns, strict=False):
        points = {}
        for row in table.rows:
            cell = table.cell(row, column)
            cost = costs.get(column, {}).get(row)
            if cell is not None and cell.mean is not None and cost is not None:
                points[row] = cost["seconds"], cell.mean
                axes.plot(cost["seconds"], cell.mean, "o", markersize=4, color=OURS if row == "asap" else OTHERS)
        axes.set(title=column, xlabel="processor seconds per training run", ylabel="test accuracy, %", xscale="log")
        axes.margins(x=0.2, y=0.12)
        axes.spines[["top", "right"]].set_visible(False)
        _name(axes, points)
    for axes in panels[len(columns) :]:
        axes.axis("off")
    return figure


def _name(axes: Any, points: Mapping[str, tuple[float, float]]) -> None:
    """Write the names beside their points, on the first side where they cover no other name and no point."""
    sides = [(5, 2, "left"), (5, -8, "left"), (-5, 2, "right"), (-5, -8, "right"), (5, 10, "left"), (-5, 10, "right")]
    axes.figure.draw_without_rendering()  # settles the layout
    scale = axes.figure.dpi / 72
    places = [axes.transData.transform(point) / scale for point in points.values()]
    boxes = [(x - 3, x + 3, y - 3, y + 3) for x, y in places]
    for name, point in sorted(points.items(), key=lambda item: item[1]):
        x, y = axes.transData.transform(point) / scale  # in points
        width, height = 3.9 * len(name), 8.0

        def box(side: tuple[int, int, str]) -> tuple[float, float, float, float]:
            left = x + side[0] - (width if side[2] == "right" else 0)  # noqa: B023
            return left, left + width, y + side[1], y + side[1] + height  # noqa: B023

        def free(side: tuple[int, int, str]) -> bool:
            a, b, c, d = box(side)
            return not any(a < r and b > p and c < t and d > q for p, r, q, t in boxes)

        side = next((side for side in sides if free(side)), sides[0])
        boxes.append(box(side))
        axes.annotate(name, point, xytext=side[:2], textcoords="offset points", fontsize=7, ha=side[2])
