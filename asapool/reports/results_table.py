"""The sections of a report of reproduced tables: each table with its charts, claims and settings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.errors import DataError
from asapool.experiments.cells import TableCell
from asapool.experiments.columns import grid, meanings, trainings
from asapool.experiments.experiment import read_plans
from asapool.experiments.record import RunRecord
from asapool.experiments.rendering import choices, lead, notes
from asapool.experiments.reproducing import known
from asapool.experiments.store import FILE, Store
from asapool.experiments.summary import by_seed
from asapool.experiments.table_text import plus_minus, signed
from asapool.experiments.tables import Table, make_table
from asapool.experiments.verdicts import evaluate_claims
from asapool.files import read_json
from asapool.reports.charts import Chart, line_chart
from asapool.reports.curves import mean_line
from asapool.reports.page import TableView, seed_table
from asapool.reports.plan_figures import FIGURES, Mark, forest_chart, plan_chart

CURVES = ("loss", "val_loss", "val_accuracy")
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """Everything the page shows; curves: (run key → column → value per epoch)."""

    folder: Path
    tables: list[Table]
    fixed: dict[str, dict[str, Any]]  # table1 and table3, read from their files
    records: dict[str, RunRecord]
    curves: dict[str, dict[str, Floats]]


def is_results(folder: Path) -> bool:
    """Whether the folder was written by asapool reproduce."""
    return (folder / FILE).is_file() or any((folder / f"{name}.json").is_file() for name in ("table1", "table3"))


def read_results(folder: Path, *, curves: bool = True) -> Results:
    """Read a folder; its tables are computed again from its records, so that they are never outdated."""
    records = Store.read(folder, light=True) if (folder / FILE).is_file() else {}
    order = known()  # the paper's tables first, in its order
    plans = sorted(read_plans(folder), key=lambda plan: order.index(plan.name) if plan.name in order else len(order))
    tables = [make_table(plan, records) for plan in plans]
    fixed = {name: read_json(path) for name in ("table1", "table3") if (path := folder / f"{name}.json").is_file()}
    if not tables and not fixed:
        raise DataError(
            f"{folder}: contains records but no plan of a table. Give a folder written by asapool reproduce, or write "
            f"the plan there with: asapool reproduce WHAT --out {folder}"
        )
    histories = _curves(folder / FILE, records) if curves else {}
    return Results(folder=folder, tables=tables, fixed=fixed, records=records, curves=histories)


def _curves(path: Path, records: dict[str, RunRecord]) -> dict[str, dict[str, Floats]]:
    """Read the histories one record at a time: all records at once would not fit in memory."""
    values_by_key: dict[str, dict[str, Floats]] = {}
    if not path.is_file():
        return values_by_key
    with open(path, "rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                break
            record = RunRecord.from_line(line)
            if record.history and record.run.key in records:
                values_by_key[record.run.key] = {
                    name: np.array([_or_nan(epoch.get(name)) for epoch in record.history]) for name in CURVES
                }
    return values_by_key


def _or_nan(value: Any) -> float:
    return float("nan") if value is None else float(value)


MOST = 60  # cells whose curves are drawn; a grid search has hundreds
Charts = list[tuple[str, list[Chart]]]  # by their headings


def table_view(results: Results, table: Table) -> dict[str, Any]:
    """Everything about one table."""
    done, planned = sum(cell.folds for cell in table.cells), sum(cell.expected for cell in table.cells)
    means, spread = _charts(table)
    alone = table.name in FIGURES and FIGURES[table.name].alone  # the figure shows the same as the means
    curves, left_out = _curve_charts(results, table)
    return {
        "name": table.name, "title": f"{table.title} ({table.name})", "columns": table.columns, "table": None,
        "lead": " ".join([lead(table), *notes(table), f"{done:,} of {planned:,} training runs are done; seeds × folds "
                          "are below each score."]),
        "glance": [{"name": r, "cells": [_cell(table.cell(r, c), table) for c in table.columns]} for r in table.rows],
        "choices": choices(table) if table.choose else [], "figure": plan_chart(table),
        "claims": evaluate_claims(table), "means": [] if alone else means, "has_paper": _has_paper(table.cells),
        "spread": spread, "seeds_table": _seeds(table), "full": TableView(*grid(table), notes=meanings(table)),
        "curves": curves, "left_out": left_out, **_settings(table),
    }  # fmt: skip


def _cell(cell: TableCell | None, table: Table) -> dict[str, Any] | None:
    if cell is None:
        return None
    gap = "" if cell.difference is None else f" ({signed(cell.difference)})"
    return {
        "score": plus_minus(cell.mean, cell.over_seeds), "chosen": cell.chosen, "finished": cell.finished,
        "paper": None if cell.paper is None else str(cell.paper), "gap": gap, "verdict": cell.verdict,
        "trainings": trainings(cell, table),
    }  # fmt: skip


def _charts(table: Table) -> tuple[Charts, Charts]:
    """Per data set: means against the paper's bands, and the folds behind the means."""
    means: Charts = []
    spread: Charts = []
    label = f"{table.metric} accuracy, %"
    for column in table.columns:
        cells = [c for c in table.cells if c.column == column and (c.mean is not None or c.paper is not None)]
        if not any(cell.mean is not None for cell in cells):
            continue
        marks = [
            Mark(c.row, c.mean, c.over_seeds, None if c.paper is None or c.paper.other else c.paper[:2]) for c in cells
        ]
        title = f"{column}, ours and the paper" if _has_paper(cells) else f"{column}, means"
        means.append((column, [forest_chart(marks, title, label)]))
        dots = [mark._replace(seeds=_by_seed(c), paper=None) for mark, c in zip(marks, cells, strict=True) if c.values]
        spread.append((column, [forest_chart(dots, f"{column}, every fold", label)]))
    return means, spread


def _has_paper(cells: Iterable[TableCell]) -> bool:
    """Whether a band of the paper is drawn beside any of these cells."""
    return any(cell.paper is not None and not cell.paper.other for cell in cells)


def _by_seed(cell: TableCell) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return tuple((str(seed), tuple(values)) for seed, values in by_seed(cell.values).items())


def _seeds(table: Table) -> TableView:
    rows = (([cell.row, cell.column], seed, values) for cell in table.cells for seed, values in _by_seed(cell))
    return seed_table(["row", "data"], rows)


def _curve_charts(results: Results, table: Table) -> tuple[Charts, str]:
    """The mean curves of every cell's training runs with their deviation as a band, and a note if some are left out."""
    cells = [cell for cell in table.cells if any(key in results.curves for key in cell.runs)]
    if table.choose:
        cells = [cell for cell in cells if cell.chosen]
    drawn: Charts = []
    for cell in cells[:MOST]:
        curves = [results.curves[key] for key in cell.runs if key in results.curves]
        if all(len(one["loss"]) == 1 for one in curves):
            continue  # a method without epochs
        losses = [
            mean_line(name, [one[column] for one in curves])
            for name, column in (("training", "loss"), ("validation", "val_loss"))
        ]
        accuracy = mean_line("validation", [100 * one["val_accuracy"] for one in curves])
        name = f"{cell.row} on {cell.column}"
        charts = [line_chart([s for s in losses if s.x], f"{name}: loss by epoch", "epoch", "loss", whole=True)]
        if accuracy.x:
            charts.append(line_chart([accuracy], f"{name}: accuracy by epoch", "epoch", "accuracy, %", whole=True))
        drawn.append((name, charts))
    return drawn, f"The first {MOST} of {len(cells)} cells." if len(cells) > MOST else ""


def _settings(table: Table) -> dict[str, Any]:
    """The settings that all cells share, and those in which they differ."""
    every = [
        {f"{part}.{k}": v for part, values in cell.settings.items() for k, v in values.items()} for cell in table.cells
    ]
    shared = {k: v for k, v in every[0].items() if all(one.get(k) == v for one in every)}
    varied = list(dict.fromkeys(k for one in every for k in one if k not in shared))
    rows = [
        [cell.row, cell.column, *(str(one.get(k, "–")) for k in varied)]
        for cell, one in zip(table.cells, every, strict=True)
    ]
    seeds = ", ".join(map(str, table.seeds))
    return {
        "seeds": f"Seeds: {seeds}; {table.folds} folds ({table.protocol}).",
        "differing": TableView(["row", "data", *varied], rows, "Settings that differ") if varied else None,
        "shared": json.dumps(shared, indent=1, ensure_ascii=False),
    }
