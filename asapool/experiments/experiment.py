"""Carry out plans in a folder: train what is missing, keep the table files up to date, and resume after a stop.

runs.jsonl       a record per training run: finished ones are reused, failed ones tried again
NAME.plan.json   the cells of a table with all their settings, and the fingerprints of the graphs
NAME.md .csv .json    the table;   results.csv    a line per training run
graphs.csv       for a comparison: the graphs behind the numbers in the records
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asapool import __version__
from asapool.errors import AsapoolError, CheckpointError
from asapool.experiments.execute import Engine, OnProgress, OnRecord, execute
from asapool.experiments.plan import Plan
from asapool.experiments.record import RunRecord
from asapool.experiments.run import settings_of
from asapool.experiments.store import Store
from asapool.experiments.summary import headline_of, score_names
from asapool.files import read_json, write_csv, write_json
from asapool.training.tasks import task_of

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.table_text import Written

EVERY = 2.0  # seconds between two updates of the table files
SHARE = 30  # and at least this many times the duration of an update, so that updates cost about 3 % of one core
MODELS = "models"  # folder of the models, if they are kept
OLD_PLAN = "plan.json"  # of a cross-validation of 0.1.0


class TableFiles:
    """The table files of a folder, updated as records arrive, but not too often."""

    def __init__(
        self, folder: Path, plans: Sequence[Plan], graphs: Mapping[str, GraphSet], records: Mapping[str, RunRecord],
        fixed: Sequence[Written] = (), order: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.folder, self.plans, self.graphs, self.records, self.fixed = folder, plans, graphs, records, fixed
        self.order = list(order) or [table.name for table in fixed] + [plan.name for plan in plans]
        self.keys = {plan.name: {run.key for run in plan.runs(graphs)} for plan in plans}
        self.changed: set[str] = set()
        self.due = 0.0
        for plan in plans:
            write_json(folder / f"{plan.name}.plan.json", plan_record(plan, graphs))

    def write(self, *, intervals: bool = False) -> list[Written]:
        """Write all tables and return them.

        intervals: with the bootstrap intervals of a comparison, which take a few seconds.
        """
        tables = [*self.fixed, *(self._made(plan, intervals) for plan in self.plans)]
        for table in tables:
            self._write(table)
        self.changed.clear()
        return sorted(tables, key=lambda table: self.order.index(table.name))

    def write_results(self) -> None:
        """Write results.csv: a line per training run of every plan."""
        measured = any(headline_of(record.test).factor != 100 for record in self.records.values() if record.finished)
        names = (*score_names("accuracy"), *score_names("rmse")) if measured else score_names("accuracy")
        head = ["plan", "row", "data", "seed", "fold", "validation_accuracy", *(f"test_{name}" for name in names)]
        lines = []
        for plan in self.plans:
            for cell in plan.cells:
                records = (self.records.get(run.key) for run in plan.runs_of(cell, self.graphs))
                lines += [
                    [plan.name, cell.row, cell.column, *_result(record, names)]
                    for record in records
                    if record is not None
                ]
        write_csv(self.folder / "results.csv", [*head, "best_epoch", "seconds", "version", "failure"], lines)

    def record(self, record: RunRecord) -> None:
        """Write the tables that a new record changes, if the last update is long enough ago."""
        self.changed |= {name for name, keys in self.keys.items() if record.run.key in keys}
        began = time.monotonic()
        if began < self.due:
            return
        for plan in self.plans:
            if plan.name in self.changed:
                self._write(self._made(plan))
        self.changed.clear()
        self.due = time.monotonic() + max(EVERY, SHARE * (time.monotonic() - began))

    def _made(self, plan: Plan, intervals: bool = False) -> Written:
        from asapool.experiments.bootstrap import with_intervals
        from asapool.experiments.tables import make_table

        table = make_table(plan, self.records, self.graphs)
        if not (intervals and plan.comparison):
            return table
        [data] = self.graphs.values()
        return with_intervals(table, Store.read(self.folder), data.y, data.target)

    def _write(self, table: Written) -> None:
        from asapool.experiments.table_text import write

        write(table, self.folder)


def carry_out(
    plans: Sequence[Plan],
    graphs: Mapping[str, GraphSet],
    folder: str | PathLike[str],
    engine: Engine,
    *,
    fixed: Sequence[Written] = (),
    order: Sequence[str] = (),
    mix_versions: bool = False,
    on_start: Callable[[Store], None] | None = None,
    on_record: OnRecord | None = None,
    on_progress: OnProgress | None = None,
    keep_models: bool = False,
) -> tuple[list[Written], list[RunRecord]]:
    """Train the Runs that are not finished in the folder's store, and write the tables; return them and all records.

    Args:
        plans: What to train. A comparison needs its own folder; other plans may share one.
        graphs: By column.
        folder: Created if it does not exist.
        engine: Trains the Runs.
        fixed: Tables that need no training.
        order: Of the tables, by name.
        mix_versions: Accept training runs of other versions of asapool.
        on_start: Called with the store before the first training run.
        on_record: Called with every new record.
        on_progress: Called with the number of epochs trained, now and then.
        keep_models: Keep the model of every Run in the subfolder "models", under its key.
    """
    with Store.open(folder) as store:
        for plan in plans:
            claim_folder(Path(folder), plan, graphs)
        if not mix_versions:
            refuse_other_versions(store, plans, graphs)
        files = TableFiles(Path(folder), plans, graphs, store.records(), fixed, order)
        files.write()
        if on_start is not None:
            on_start(store)

        def recorded(record: RunRecord) -> None:
            files.record(record)
            if on_record is not None:
                on_record(record)

        try:
            models = Path(folder) / MODELS if keep_models else None
            records = execute(plans, graphs, store, engine, recorded, on_progress, models)
        except BaseException:
            with suppress(AsapoolError):  # this may fail too; report the original error
                files.write()
            raise
        files.write_results()
        return files.write(intervals=True), records


def claim_folder(folder: Path, plan: Plan, graphs: Mapping[str, GraphSet]) -> None:
    """Refuse the folder of another comparison; in a new one write graphs.csv."""
    old, current = folder / OLD_PLAN, folder / f"{plan.name}.plan.json"
    if not plan.comparison:
        if old.exists() or (folder / "cv.plan.json").exists():
            raise CheckpointError(f"{folder}: contains a cross-validation. Choose another folder with --out")
        return
    expected, [data] = identity(plan, graph_facts(graphs)), graphs.values()
    if current.exists():
        plain = read_json(current)
        same = identity(Plan.from_dict(plain), plain.get("graphs", {})) == expected
    else:
        same = not old.exists() or read_json(old) == expected
    if not same:
        raise CheckpointError(
            f"{folder}: contains a cross-validation with other settings or graphs. Choose another folder"
        )
    if not (folder / "graphs.csv").exists():
        labels = task_of(data.target).labels(data.y, data.target)
        names = ["class"] if list(labels) == ["label"] else list(labels)
        texts = data.source_text or [""] * len(data)  # such as SMILES: the report draws the structures of errors
        rows = ([k, *row] for k, row in enumerate(zip(data.ids, *labels.values(), texts, strict=True)))
        write_csv(folder / "graphs.csv", ["graph", "id", *names, "text"], rows, durable=True)


def plan_record(plan: Plan, graphs: Mapping[str, GraphSet]) -> dict[str, Any]:
    """The content of a plan file: the cells with all settings, and the fingerprints of the graphs."""
    return plan.to_dict() | {"graphs": graph_facts({column: graphs[column] for column in plan.columns})}


def graph_facts(graphs: Mapping[str, GraphSet]) -> dict[str, dict[str, Any]]:
    """Number and fingerprint of the graphs of every column."""
    return {name: {"graphs": len(one), "fingerprint": one.fingerprint} for name, one in graphs.items()}


def identity(plan: Plan, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What identifies a comparison, regardless of the source of the graphs; in the form of 0.1.0."""
    [column] = plan.columns
    train = {cell.row: settings_of(cell.train) for cell in plan.cells}
    first = next(iter(train.values()))
    same: dict[str, Any] = {
        "version": 2,
        "data": {"name": column, **facts.get(column, {})},
        "models": {cell.row: settings_of(cell.model) for cell in plan.cells},
        "train": first if all(one == first for one in train.values()) else train,
        "folds": plan.folds, "seeds": list(plan.seeds), "protocol": plan.protocol,
    }  # fmt: skip
    splits = plan.cells[0].splits
    members = {cell.row: cell.ensemble for cell in plan.cells if cell.ensemble > 1}
    return same | ({} if splits is None else {"splits": splits.digest}) | ({"ensemble": members} if members else {})


def read_plans(folder: str | PathLike[str]) -> list[Plan]:
    """The plans of a folder, including a cross-validation of 0.1.0."""
    path = Path(folder)
    plans = [Plan.from_dict(read_json(file)) for file in sorted(path.glob("*.plan.json"))]
    if (path / OLD_PLAN).is_file() and not any(plan.comparison for plan in plans):
        plans.append(Plan.from_first_version(read_json(path / OLD_PLAN)))
    return plans


def refuse_other_versions(store: Store, plans: Sequence[Plan], graphs: Mapping[str, GraphSet]) -> None:
    """Refuse to mix records of several versions, whose numbers may differ."""
    keys = {run.key for plan in plans for run in plan.runs(graphs)}
    finished = [store.records()[key] for key in keys if store.finished(key)]
    others = sorted({record.version for record in finished} - {__version__})
    if others and len(finished) < len(keys):
        count = sum(record.version != __version__ for record in finished)
        raise CheckpointError(
            f"{store.folder}: {count} of its training runs were made by asapool {', '.join(others)}, but this is "
            f"{__version__}. Add --mix-versions to combine them, or choose another folder with --out"
        )


def _result(record: RunRecord, names: Sequence[str]) -> list[Any]:
    test, validation = record.test or {}, record.validation or {}
    scores = [test.get(name) for name in names]
    return [
        record.run.seed, record.run.fold, validation.get("accuracy"), *scores, record.best_epoch, record.seconds,
        record.version, record.failure,
    ]  # fmt: skip
