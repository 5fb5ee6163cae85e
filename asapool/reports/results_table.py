"""One table of reproduced results as the page shows it: ours beside the paper's, spread, curves, settings."""

from __future__ import annotations

import json
from typing import Any

from asapool.experiments.columns import grid, meanings
from asapool.experiments.markup import plus_minus, signed
from asapool.experiments.summary import by_seed
from asapool.experiments.table_text import choices, lead, notes, trainings
from asapool.experiments.tables import Table, TableCell
from asapool.experiments.verdicts import evaluate_claims
from asapool.reports.charts import Chart, line_chart
from asapool.reports.curves import mean_line
from asapool.reports.forest import Mark, forest_chart
from asapool.reports.page import TableView
from asapool.reports.ratio_figure import NAME as RATIO
from asapool.reports.ratio_figure import ratio_chart
from asapool.reports.results_record import Results
from asapool.reports.seeds import seed_table

MOST = 60  # cells with curves of their own; a grid search has hundreds
Charts = list[tuple[str, list[Chart]]]  # by their headings


def table_view(results: Results, made: Table) -> dict[str, Any]:
    """Everything about one table."""
    done, planned = sum(cell.folds for cell in made.cells), sum(cell.expected for cell in made.cells)
    means, spread = _charts(made)
    curves, left_out = _curves(results, made)
    return {
        "name": made.name, "title": f"{made.title} ({made.name})", "columns": made.columns, "table": None,
        "lead": " ".join([lead(made), *notes(made), f"{done:,} of {planned:,} trainings are done; below each score "
                          "stand seeds × folds."]),
        "glance": [{"name": row, "cells": [_cell(made.cell(row, c), made) for c in made.columns]} for row in made.rows],
        "choices": choices(made) if made.choose else [], "figure": ratio_chart(made) if made.name == RATIO else None,
        "claims": evaluate_claims(made), "means": [] if made.name == RATIO else means,  # the figure shows the same
        "spread": spread, "seeds_table": _seeds(made), "full": TableView(*grid(made), notes=meanings(made)),
        "curves": curves, "left_out": left_out, **_settings(made),
    }  # fmt: skip


def _cell(cell: TableCell | None, made: Table) -> dict[str, Any] | None:
    if cell is None:
        return None
    gap = "" if cell.difference is None else f" ({signed(cell.difference)})"
    return {
        "score": plus_minus(cell.mean, cell.over_seeds), "chosen": cell.chosen, "finished": cell.finished,
        "paper": None if cell.paper is None else str(cell.paper), "gap": gap, "verdict": cell.verdict,
        "trainings": trainings(cell, made),
    }  # fmt: skip


def _charts(made: Table) -> tuple[Charts, Charts]:
    """Per data set: means against the paper's bands, and the folds behind the means."""
    means: Charts = []
    spread: Charts = []
    label = f"{made.metric} accuracy, %"
    for column in made.columns:
        cells = [c for c in made.cells if c.column == column and (c.mean is not None or c.paper is not None)]
        if not any(cell.mean is not None for cell in cells):
            continue
        marks = [
            Mark(c.row, c.mean, c.over_seeds, None if c.paper is None or c.paper.other else c.paper[:2]) for c in cells
        ]
        means.append((column, [forest_chart(marks, f"{column}, ours and the paper", label)]))
        dots = [mark._replace(seeds=_by_seed(c), paper=None) for mark, c in zip(marks, cells, strict=True) if c.values]
        spread.append((column, [forest_chart(dots, f"{column}, every fold", label)]))
    return means, spread


def _by_seed(cell: TableCell) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return tuple((str(seed), tuple(values)) for seed, values in by_seed(cell.values).items())


def _seeds(made: Table) -> TableView:
    rows = (([cell.row, cell.column], seed, values) for cell in made.cells for seed, values in _by_seed(cell))
    return seed_table(["row", "data"], rows)


def _curves(results: Results, made: Table) -> tuple[Charts, str]:
    """The mean curves of every cell's trainings with their deviation as a band, and a note if some are left out."""
    cells = [cell for cell in made.cells if any(key in results.curves for key in cell.runs)]
    if made.choose:
        cells = [cell for cell in cells if cell.chosen]
    drawn: Charts = []
    for cell in cells[:MOST]:
        own = [results.curves[key] for key in cell.runs if key in results.curves]
        losses = [
            mean_line(name, [one[column] for one in own])
            for name, column in (("training", "loss"), ("validation", "val_loss"))
        ]
        accuracy = mean_line("validation", [100 * one["val_accuracy"] for one in own])
        name = f"{cell.row} on {cell.column}"
        charts = [line_chart([s for s in losses if s.x], f"{name}: loss by epoch", "epoch", "loss", whole=True)]
        if accuracy.x:
            charts.append(line_chart([accuracy], f"{name}: accuracy by epoch", "epoch", "accuracy, %", whole=True))
        drawn.append((name, charts))
    return drawn, f"The first {MOST} of {len(cells)} cells." if len(cells) > MOST else ""


def _settings(made: Table) -> dict[str, Any]:
    """What all cells share, once; and what each has of its own."""
    every = [
        {f"{part}.{k}": v for part, values in cell.settings.items() for k, v in values.items()} for cell in made.cells
    ]
    shared = {k: v for k, v in every[0].items() if all(one.get(k) == v for one in every)}
    own = list(dict.fromkeys(k for one in every for k in one if k not in shared))
    rows = [
        [cell.row, cell.column, *(str(one.get(k, "–")) for k in own)]
        for cell, one in zip(made.cells, every, strict=True)
    ]
    seeds = ", ".join(map(str, made.seeds))
    return {
        "seeds": f"Seeds: {seeds}; {made.folds} folds ({made.protocol}).",
        "differing": TableView(["row", "data", *own], rows, "Where cells differ") if own else None,
        "shared": json.dumps(shared, indent=1, ensure_ascii=False),
    }
