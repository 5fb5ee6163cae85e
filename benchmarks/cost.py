"""What a row of table2 costs: seconds per training beside accuracy, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from asapool.experiments.compact import read_compact, together
from asapool.experiments.plan import load_plan
from asapool.experiments.record import RunRecord
from asapool.experiments.table_text import markdown
from asapool.experiments.tables import Table, TableCell, make_table
from asapool.insight.drawing.figure import new_figure, save_figures

COLUMNS = ("PROTEINS", "NCI1")  # the data sets on which every method was trained


def seconds(cell: TableCell | None, records: Mapping[str, RunRecord]) -> float | None:
    """Mean processor seconds of the trainings of a cell."""
    taken = [records[key] for key in (cell.runs if cell else ()) if key in records]
    known = [r.cpu_seconds or r.seconds for r in taken if r.cpu_seconds or r.seconds]
    return sum(known) / len(known) if known else None


def markdown_table(table: Table, records: Mapping[str, RunRecord]) -> str:
    """A row per method, a column per data set."""
    rows = []
    for row in table.rows:
        taken = [seconds(table.cell(row, column), records) for column in table.columns]
        rows.append([row, *("–" if s is None else f"{s:.0f} s" for s in taken)])
    return markdown(["seconds per training", *table.columns], rows)


def draw(results: Path, path: Path) -> None:
    """One panel per data set: each method at its cost and accuracy."""
    records = together(*(read_compact(file) for file in sorted(results.glob("*.jsonl"))))
    table = make_table(load_plan("table2", datasets=list(COLUMNS)), records)
    figure = new_figure(9, 4)
    for axes, column in zip(figure.subplots(1, len(COLUMNS)), COLUMNS, strict=True):
        for row in table.rows:
            cell = table.cell(row, column)
            cost = seconds(cell, records)
            if cell is None or cell.mean is None or cost is None:
                continue
            axes.plot(cost, cell.mean, "o", color="#c2410c" if row == "asap" else "#0f766e")
            axes.annotate(row, (cost, cell.mean), xytext=(5, 3), textcoords="offset points", fontsize=8)
        axes.set(title=column, xlabel="processor seconds per training", ylabel="test accuracy, %", xscale="log")
        axes.margins(x=0.25, y=0.1)
        axes.spines[["top", "right"]].set_visible(False)
    save_figures({path.stem: figure}, path.parent, kinds=[path.suffix[1:]])
