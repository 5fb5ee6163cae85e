"""The report of a cross-validation or comparison: one table, the spread over folds and seeds, then every method."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from asapool.data.targets import YES_NO, Target
from asapool.errors import CheckpointError
from asapool.experiments.baselines import MAJORITY, TRIVIAL
from asapool.experiments.bootstrap import with_intervals
from asapool.experiments.columns import grid, meanings, task_grid
from asapool.experiments.experiment import OLD_PLAN, read_plans
from asapool.experiments.plan import Plan
from asapool.experiments.record import RunRecord
from asapool.experiments.rendering import notes
from asapool.experiments.store import Store
from asapool.experiments.summary import by_seed
from asapool.experiments.table_text import number
from asapool.experiments.tables import Table, make_table
from asapool.experiments.verdicts import leader
from asapool.files import read_json
from asapool.insight.drawing.pictures import molecule_svg
from asapool.insight.levels import Floats, Ints
from asapool.reports.charts import line_chart, strip_chart
from asapool.reports.curves import Panel, class_panels, mean_line, task_panels
from asapool.reports.page import Fact, TableView, render, seed_table
from asapool.training.task_scores import most_confident_errors
from asapool.training.tasks import TASKS, task_of

ERRORS = 10  # listed per method


class GraphNames(NamedTuple):
    """The graphs of a folder's records: their ids, their classes, and their source text (such as SMILES)."""

    ids: list[str]
    classes: list[str]
    texts: list[str]
    labels: list[list[str]]  # per graph: its class, or its value for every task

    @classmethod
    def read(cls, path: Path) -> GraphNames:
        """Read graphs.csv; version 0.1.0 wrote no texts."""
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        names = [name for name in (rows[0] if rows else ()) if name not in ("graph", "id", "text")]
        labels = [[row[name] for name in names] for row in rows]
        classes = [row[0] for row in labels]
        return cls([row["id"] for row in rows], classes, [row.get("text") or "" for row in rows], labels)


class EvaluatedGraphs(NamedTuple):
    """The test graphs of all folds and seeds of a method, concatenated."""

    graph: Ints  # (M,) number of the graph
    fold: Ints
    seed: Ints
    y: Ints  # (M,) true class
    probability: Floats  # (M, C)
    classes: list[str]
    confusion: list[list[int]]


def evaluated_graphs(records: Sequence[RunRecord], graphs: GraphNames) -> EvaluatedGraphs | None:
    """Concatenate the test graphs of finished training runs; None if nothing is finished."""
    parts = [(r, r.probabilities, r.test) for r in records if r.probabilities is not None and r.test is not None]
    if not parts:
        return None
    classes = list(parts[0][2]["class_names"])
    number = {name: c for c, name in enumerate(classes)}
    graph = np.concatenate([np.asarray(p["graphs"], np.int64) for _, p, _ in parts])
    sizes = [len(p["graphs"]) for _, p, _ in parts]
    return EvaluatedGraphs(
        graph=graph,
        fold=np.repeat([r.run.fold for r, _, _ in parts], sizes),
        seed=np.repeat([r.run.seed for r, _, _ in parts], sizes),
        y=np.array([number[graphs.classes[g]] for g in graph.tolist()], np.int64),
        probability=np.concatenate([np.asarray(p["proba"], np.float64) for _, p, _ in parts]),
        classes=classes,
        confusion=np.sum([t["confusion"] for _, _, t in parts], axis=0).tolist(),
    )


def method_view(method: str, records: Sequence[RunRecord], graphs: GraphNames) -> dict[str, Any] | None:
    """The section of one method; None if none of its training runs finished."""
    training = _training([r.history for r in records if r.history])
    first = next((r.test for r in records if r.test is not None and r.probabilities is not None), None)
    if first is not None and "tasks" in first:
        return {"name": method, "panels": [*_task_panels(first, records, graphs), *training], "errors": None}
    tested = evaluated_graphs(records, graphs)
    if tested is None:
        return None
    panels = class_panels(tested.y, tested.probability, tested.classes, tested.confusion)
    return {"name": method, "panels": [*panels, *training], "errors": _errors(tested, graphs)}


def _task_panels(scores: dict[str, Any], records: Sequence[RunRecord], graphs: GraphNames) -> list[Panel]:
    """The panels of measured values or yes/no tasks, over the test graphs of all folds and seeds."""
    y, target = _values(scores, graphs)
    kept = [r.probabilities for r in records if r.probabilities is not None]
    graph = np.concatenate([np.asarray(one["graphs"], np.int64) for one in kept])
    return task_panels(task_of(target), y[graph], np.concatenate([np.asarray(one["proba"]) for one in kept]), target)


def _values(scores: Mapping[str, Any], graphs: GraphNames) -> tuple[npt.NDArray[Any], Target]:
    """The labels of all graphs, and what they are according to the scores of a record."""
    if "tasks" not in scores:
        target = Target(classes=tuple(scores["class_names"]))
        return task_of(target).read_labels(graphs.labels, target), target
    kind, names = scores["kind"], tuple(scores["tasks"])
    words = {cell.lower() for row in graphs.labels for cell in row if cell}
    pair = next((pair for pair in YES_NO if words <= set(pair)), ("0", "1")) if TASKS[kind].probabilities else ()
    target = Target(kind=kind, names=names, classes=pair)
    return task_of(target).read_labels(graphs.labels, target), target


def _labels(records: Mapping[str, RunRecord], graphs: GraphNames) -> tuple[npt.NDArray[Any], Target] | None:
    """The labels of all graphs, if a record says what they are."""
    first = next((r.test for r in records.values() if r.test is not None), None)
    return None if first is None else _values(first, graphs)


def _training(histories: Sequence[Sequence[dict[str, Any]]]) -> list[Panel]:
    """Curves over the epochs; none for methods that have no epochs, whose history is a single row."""
    if all(len(history) == 1 for history in histories):
        return []

    def curves(column: str, scale: float = 1.0) -> list[Floats]:
        return [
            np.array([np.nan if row[column] is None else scale * row[column] for row in history], np.float64)
            for history in histories
        ]

    losses = [mean_line(name, curves(column)) for name, column in (("training", "loss"), ("validation", "val_loss"))]
    accuracy = mean_line("validation", curves("val_accuracy", 100.0))
    note = "Mean of all training runs; the shaded band is their standard deviation."
    panels = []
    for title, unit, lines in (
        ("Loss by epoch", "loss", losses),
        ("Validation accuracy by epoch", "accuracy, %", [accuracy]),
    ):
        drawn = [line for line in lines if line.x]
        if drawn:
            panels.append(Panel(title, line_chart(drawn, title.lower(), "epoch", unit, whole=True), note=note))
    return panels


def _errors(tested: EvaluatedGraphs, graphs: GraphNames) -> TableView:
    """A row per error, with the structure if the graph is a molecule."""
    predicted = tested.probability.argmax(axis=1)
    rows: list[list[str | Markup]] = []
    places = most_confident_errors(tested.y, tested.probability, ERRORS)
    pictures = [_structure(graphs.texts[tested.graph[k]]) for k in places]
    for k, picture in zip(places, pictures, strict=True):
        name, cells = graphs.ids[tested.graph[k]], [
            tested.classes[tested.y[k]], tested.classes[predicted[k]],
            f"{tested.probability[k].max():.3f}", str(tested.fold[k]), str(tested.seed[k]),
        ]  # fmt: skip
        rows.append([name, picture, *cells] if any(pictures) else [name, *cells])
    shown = ["graph", "structure"] if any(pictures) else ["graph"]
    header = [*shown, "true class", "predicted", "probability", "fold", "seed"]
    return TableView(header, rows, "", "numbers errors-table")


def _structure(smiles: str) -> Markup:
    return Markup(molecule_svg(smiles) if smiles else "")


FOLDS = {"authors": "shuffled, as by the paper's authors", "splits": "published splits"}
BASELINES = {MAJORITY: "always the most frequent class", TRIVIAL: "the mean of the training graphs"}


def is_comparison(folder: Path) -> bool:
    """Whether the folder was written by asapool cv or compare."""
    return (folder / "cv.plan.json").is_file() or (folder / OLD_PLAN).is_file()


def comparison_page(folder: Path) -> str:
    """Read the plan, graphs.csv and the records of a folder, and render the page."""
    plan = next(plan for plan in read_plans(folder) if plan.comparison)
    records = Store.read(folder)
    table = make_table(plan, records)
    if not all(cell.folds + cell.failed == cell.expected for cell in table.cells):
        raise CheckpointError(f"{folder}: the cross-validation is not finished. Run its command again")
    try:
        graphs = GraphNames.read(folder / "graphs.csv")
        labels = _labels(records, graphs)
        table = with_intervals(table, records, *labels, _stored(folder, plan)) if labels is not None else table
        return _page(folder, plan, table, records, graphs)
    except (OSError, KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{folder}: its files are inconsistent ({type(error).__name__}: {error}). Run the command again"
        ) from None


def _stored(folder: Path, plan: Plan) -> Table | None:
    """The table that the command wrote, with its intervals; None in a folder of 0.1.0."""
    file = folder / f"{plan.name}.json"
    return Table.from_dict(read_json(file)) if file.is_file() else None


def _page(folder: Path, plan: Plan, table: Table, records: Mapping[str, RunRecord], graphs: GraphNames) -> str:
    [data], several = table.columns, len(table.rows) > 1
    heading = f"{data}: {'a comparison of methods' if several else table.rows[0]}"
    seeds = ", ".join(map(str, table.seeds))
    by_method = [method_view(cell.row, [records[key] for key in cell.runs], graphs) for cell in table.cells]
    views = [view for view in by_method if view is not None]
    failed = [record for record in records.values() if not record.finished]
    return render(
        "comparison.html", heading=heading, title=f"asapool: {heading}",
        about=f"{len(graphs.ids):,} graphs · {table.folds} folds ({FOLDS.get(table.protocol, table.protocol)}) · "
        f"{'seed' if len(table.seeds) == 1 else 'seeds'} {seeds}",
        links=[(f"method-{k}", view["name"]) for k, view in enumerate(views, 1)] if several else [],
        glance=_glance(table), scores=_scores(table), tasks=_tasks(table), spread=_spread(table), methods=views,
        failures=[f"{r.run.model.method}, seed {r.run.seed}, fold {r.run.fold}: {r.failure}" for r in failed],
        repeat=_repeat(folder, table), settings=json.dumps(plan.to_dict(), indent=1, ensure_ascii=False),
    )  # fmt: skip


def _glance(table: Table) -> dict[str, Any]:
    score, result = table.headline, leader(table, table.columns[0])
    sign = 1 if score.greater else -1
    best = max(table.cells, key=lambda cell: -np.inf if cell.mean is None else sign * cell.mean)
    label = "best method" if result is not None and result.ahead else f"{score.best} mean"
    facts = [
        Fact(label if len(table.rows) > 1 else "method", best.row, f"{best.folds} folds"),
        Fact(f"mean test {score.axis}", number(best.mean)),
        *([] if best.over_seeds is None else [Fact("± over seeds", number(best.over_seeds), "standard deviation")]),
        Fact("± over folds", number(best.over_folds), "standard deviation within a seed"),
        *(Fact(cell.row, number(cell.mean), BASELINES[cell.row]) for cell in table.baselines),
    ]
    return {"facts": facts, "lead": " ".join(notes(table))}


def _scores(table: Table) -> dict[str, Any]:
    """The table with all scores, and the meaning of its columns."""
    lead = "Scores on the test folds" + (" in percent." if table.headline.factor == 100 else ".")
    if len(table.rows) > 1:
        lead += f" Tests compare each method with {table.reference}, the first method given, on the same folds."
    tests = grid(table, tests=True)
    grids = [grid(table, tests=False), *([tests] if tests[1] else [])]
    views = [TableView(*one, classes="numbers wide") for one in grids[:-1]]
    views.append(TableView(*grids[-1], classes="numbers wide", notes=meanings(table)))
    title = "All methods" if len(table.rows) > 1 else "All scores"
    of_tasks = f"Mean test {table.headline.words} over the folds, with 95 % bootstrap intervals."
    return {"title": title, "lead": lead, "tables": views, "of_tasks": of_tasks}


def _tasks(table: Table) -> TableView | None:
    """The score of every task, if there are several."""
    by_task = task_grid(table)
    return None if by_task is None else TableView(*by_task, classes="numbers wide")


def _spread(table: Table) -> dict[str, Any] | None:
    seeds = {cell.row: by_seed(sorted(cell.values)) for cell in table.cells if cell.values}
    if not seeds:
        return None
    named = {
        row: {f"seed {seed}": values for seed, values in values_by_seed.items()}
        for row, values_by_seed in seeds.items()
    }
    lines = [
        ([row], str(seed), values) for row, values_by_seed in seeds.items() for seed, values in values_by_seed.items()
    ]
    score = table.headline
    label, axis = f"test {score.label} of every fold", f"test {score.axis}"
    chart = strip_chart(named, label, axis, percent=score.factor == 100)
    return {"chart": chart, "table": seed_table(["method"], lines, score.factor == 100)}


def _repeat(folder: Path, table: Table) -> TableView:
    import torch

    import asapool

    rows = [
        ["folder", str(folder)],
        ["trained by asapool", ", ".join(table.versions)],
        ["page written by asapool", asapool.__version__],
        ["with torch", torch.__version__],
    ]
    return TableView(["", ""], rows, "To reproduce this", "plain")
