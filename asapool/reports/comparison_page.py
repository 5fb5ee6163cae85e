"""The page of a cross-validation or a comparison: one table, the spread over folds and seeds, then every method."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asapool.errors import CheckpointError
from asapool.experiments.columns import grid, meanings
from asapool.experiments.experiment import OLD_PLAN, read_plans
from asapool.experiments.plan import Plan
from asapool.experiments.record import RunRecord
from asapool.experiments.store import Store
from asapool.experiments.summary import by_seed
from asapool.experiments.table_text import notes, number
from asapool.experiments.tables import MAJORITY, TRIVIAL, Table, make_table
from asapool.experiments.verdicts import leader
from asapool.reports.charts import strip_chart
from asapool.reports.method_cards import GraphNames, method_view
from asapool.reports.page import Fact, TableView, render, seed_table

BASELINES = {MAJORITY: "always the most frequent class, %", TRIVIAL: "the mean of the training graphs"}


def is_comparison(folder: Path) -> bool:
    """Whether asapool cv or compare worked in the folder."""
    return (folder / "cv.plan.json").is_file() or (folder / OLD_PLAN).is_file()


def comparison_page(folder: Path) -> str:
    """Read the plan, graphs.csv and the records of a folder, and write their page."""
    plan = next(plan for plan in read_plans(folder) if plan.comparison)
    records = Store.read(folder)
    made = make_table(plan, records)
    if not all(cell.folds + cell.failed == cell.expected for cell in made.cells):
        raise CheckpointError(f"{folder}: the cross-validation is not finished. Give its command again")
    try:
        return _page(folder, plan, made, records, GraphNames.read(folder / "graphs.csv"))
    except (OSError, KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{folder}: its files do not fit together ({type(error).__name__}: {error}). Run the command again"
        ) from None


def _page(folder: Path, plan: Plan, made: Table, records: Mapping[str, RunRecord], graphs: GraphNames) -> str:
    [data], several = made.columns, len(made.rows) > 1
    heading = f"{data}: {'a comparison of methods' if several else made.rows[0]}"
    seeds = ", ".join(map(str, made.seeds))
    own = [method_view(cell.row, [records[key] for key in cell.runs], graphs) for cell in made.cells]
    views = [view for view in own if view is not None]
    failed = [record for record in records.values() if not record.finished]
    return render(
        "comparison.html", heading=heading, title=f"asapool: {heading}",
        about=f"{len(graphs.ids):,} graphs · {made.folds} {made.protocol} folds · seeds {seeds}",
        links=[(f"method-{k}", view["name"]) for k, view in enumerate(views, 1)] if several else [],
        glance=_glance(made), scores=_scores(made), spread=_spread(made), methods=views,
        failures=[f"{r.run.model.method}, seed {r.run.seed}, fold {r.run.fold}: {r.failure}" for r in failed],
        repeat=_repeat(folder, made), settings=json.dumps(plan.to_dict(), indent=1, ensure_ascii=False),
    )  # fmt: skip


def _glance(made: Table) -> dict[str, Any]:
    score, result = made.headline, leader(made, made.columns[0])
    sign = 1 if score.greater else -1
    best = max(made.cells, key=lambda cell: -np.inf if cell.mean is None else sign * cell.mean)
    label = "best method" if result is not None and result.ahead else f"{score.best} mean"
    facts = [
        Fact(label if len(made.rows) > 1 else "method", best.row, f"{best.folds} folds"),
        Fact(f"mean test {score.axis}", number(best.mean)),
        Fact("± over seeds", number(best.over_seeds), "standard deviation of the seeds"),
        Fact("± over folds", number(best.over_folds), "within a seed"),
        *(Fact(cell.row, number(cell.mean), BASELINES[cell.row]) for cell in made.baselines),
    ]
    return {"facts": facts, "lead": " ".join(notes(made))}


def _scores(made: Table) -> dict[str, Any]:
    """The table with all scores, and the meaning of its columns."""
    lead = "Scores on the test folds" + (" in percent." if made.headline.factor == 100 else ".")
    if len(made.rows) > 1:
        lead += f" Tests compare each method with {made.reference}, the first of the methods given, on the same folds."
    table = TableView(*grid(made), classes="numbers wide", notes=meanings(made))
    return {"title": "All methods" if len(made.rows) > 1 else "All scores", "lead": lead, "table": table}


def _spread(made: Table) -> dict[str, Any] | None:
    seeds = {cell.row: by_seed(sorted(cell.values)) for cell in made.cells if cell.values}
    if not seeds:
        return None
    named = {row: {f"seed {seed}": values for seed, values in own.items()} for row, own in seeds.items()}
    lines = [([row], str(seed), values) for row, own in seeds.items() for seed, values in own.items()]
    score = made.headline
    label, axis = f"test {score.label} of every fold", f"test {score.axis}"
    chart = strip_chart(named, label, axis, percent=score.factor == 100)
    return {"chart": chart, "table": seed_table(["method"], lines, score.factor == 100)}


def _repeat(folder: Path, made: Table) -> TableView:
    import torch

    import asapool

    rows = [
        ["folder", str(folder)],
        ["trained by asapool", ", ".join(made.versions)],
        ["page written by asapool", asapool.__version__],
        ["with torch", torch.__version__],
    ]
    return TableView(["", ""], rows, "What it takes to repeat this", "")
