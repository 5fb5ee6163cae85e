"""Cross-validation: methods × seeds × folds on one data set, as a plan whose rows are the methods, kept in a folder.

plan.json   what the folder is for        graphs.csv   what the numbers of graphs in the records mean
runs.jsonl  a record per training: finished ones are found again, and failed ones tried again
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from asapool.data import GraphSet
from asapool.errors import CheckpointError, ConfigError
from asapool.experiments.comparison import FoldResult
from asapool.experiments.execute import Engine, Inputs, OnProgress, execute
from asapool.experiments.local import LocalEngine
from asapool.experiments.machine import machine
from asapool.experiments.plan import Cell, Plan
from asapool.experiments.processes import run_tasks
from asapool.experiments.record import RunRecord, failed
from asapool.experiments.run import Run, run
from asapool.experiments.store import Store
from asapool.files import read_json, write_csv, write_json
from asapool.models.config import ModelConfig
from asapool.training.config import TrainConfig
from asapool.training.settings import DataConfig

OnFold = Callable[[FoldResult, int], None]


def methods_plan(
    graphs: GraphSet,
    models: Mapping[str, ModelConfig],
    *,
    train: TrainConfig | None = None,
    folds: int = 10,
    seeds: Sequence[int] = (8971,),
    protocol: str = "authors",
    source: DataConfig | None = None,
) -> Plan:
    """A plan with a row per model, all with one training setting on the same folds.

    authors: plain shuffled folds, the validation fold is the one before the test fold. stratified: the same with the
    classes in proportion. source: where the graphs came from.
    """
    known, schedule = source or DataConfig(source=graphs.name), train or TrainConfig()
    cells = [Cell(row=name, column=graphs.name, source=known, model=m, train=schedule) for name, m in models.items()]
    return Plan(
        name="cv", title=graphs.name, cells=tuple(cells), seeds=tuple(seeds), folds=folds, protocol=protocol
    )  # fmt: skip


def cross_validate(
    graphs: GraphSet,
    plan: Plan,
    folder: str | PathLike[str] | None = None,
    *,
    jobs: int = 1,
    engine: Engine | None = None,
    on_fold: OnFold | None = None,
) -> list[FoldResult]:
    """Train and judge every fold of the plan; seeds are outermost, then folds, and methods take turns.

    folder: where results are kept and found again; a folder of another plan or other graphs is refused. on_fold is
    called with each new result and the number of folds that are still to come. A fold that fails is tried once more at
    the end; if it fails again it is part of the result, with its reason, and the next call tries it again. One job
    trains in this process, more in as many others; an engine takes the place of both.
    """
    wanted = _tasks(graphs, plan)
    wanted[0][1].split(graphs)  # refuses folds that these graphs cannot give, before anything is written
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="asapool-cv-") as passing:
            return cross_validate(graphs, plan, passing, jobs=jobs, engine=engine, on_fold=on_fold)
    with Store.open(folder) as store:
        _claim(Path(folder), graphs, plan)
        names = {task.key: name for name, task in wanted}
        told = None if on_fold is None else _counting(names, store, on_fold)
        worker = engine or (InProcess() if jobs == 1 else LocalEngine(jobs))
        execute(plan, {graphs.name: graphs}, store, worker, told)
        return [fold_result(name, store.records()[task.key]) for name, task in wanted]


def fold_result(method: str, record: RunRecord) -> FoldResult:
    """A record as the comparison of methods reads it."""
    return FoldResult(
        method=method, seed=record.run.seed, fold=record.run.fold, validation=record.validation, test=record.test,
        best_epoch=record.best_epoch, epochs=record.epochs, stopped=record.stopped, seconds=record.seconds,
        failure=record.failure,
    )  # fmt: skip


class InProcess:
    """The engine that needs no other process: one Run after the other, here."""

    def work(self, runs: Sequence[Run], inputs: Inputs, on_progress: OnProgress) -> Iterator[RunRecord]:
        """Yield a record per Run; an error of the training is a failed record."""
        for outcome in run_tasks(runs, _train, (inputs, on_progress)):
            yield outcome.result or failed(outcome.task, outcome.failure or "", machine())


def plan_record(graphs: GraphSet, plan: Plan) -> dict[str, Any]:
    """What makes two cross-validations the same; where the graphs were read from plays no part."""
    train = {name: value for name, value in plan.cells[0].train.to_dict().items() if name not in ("seed", "threads")}
    return {
        "version": 2,
        "data": {"name": graphs.name, "graphs": len(graphs), "fingerprint": graphs.fingerprint},
        "models": {cell.row: cell.model.to_dict() for cell in plan.cells},
        "train": train,
        "folds": plan.folds, "seeds": list(plan.seeds), "protocol": plan.protocol,
    }  # fmt: skip


def short_name(graphs: GraphSet, plan: Plan) -> str:
    """A folder name that the same command finds again, and no other command uses."""
    text = json.dumps(plan_record(graphs, plan), sort_keys=True)
    return f"{graphs.name.replace(':', '-').replace('/', '-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _tasks(graphs: GraphSet, plan: Plan) -> list[tuple[str, Run]]:
    """All trainings with their rows; a run cut short has then compared all methods on some folds."""
    if plan.columns != (graphs.name,) or len({cell.train for cell in plan.cells}) > 1:
        raise ConfigError(
            f"a cross-validation is of one data set with one training setting; plan {plan.name} has the data sets "
            f"{', '.join(plan.columns)}. Make it with methods_plan, or carry it out with asapool reproduce --plan"
        )
    ways = [[(cell.row, task) for task in plan.runs_of(cell, {graphs.name: graphs})] for cell in plan.cells]
    return [task for turn in zip(*ways, strict=True) for task in turn]


def _claim(folder: Path, graphs: GraphSet, plan: Plan) -> None:
    """Write what a folder is for, or refuse one that is for something else."""
    path, record = folder / "plan.json", plan_record(graphs, plan)
    if not path.exists():
        texts = graphs.source_text or [""] * len(graphs)  # such as SMILES: the report draws the structures of errors
        rows = zip(graphs.ids, (graphs.class_names[c] for c in graphs.y.tolist()), texts, strict=True)
        table = ([k, *row] for k, row in enumerate(rows))
        write_csv(folder / "graphs.csv", ["graph", "id", "class", "text"], table, durable=True)
        write_json(path, record, durable=True)
    elif read_json(path) != record:
        raise CheckpointError(
            f"{folder}: holds a cross-validation with other settings or graphs. Choose another folder"
        )


def _counting(names: Mapping[str, str], store: Store, on_fold: OnFold) -> Callable[[RunRecord], None]:
    left = {key for key in names if not store.finished(key)}
    tries: Counter[str] = Counter()

    def told(record: RunRecord) -> None:
        key = record.run.key
        tries[key] += 1
        if record.finished or tries[key] == 2:  # one that failed for the first time comes again
            left.discard(key)
        on_fold(fold_result(names[key], record), len(left))

    return told


def _train(shared: tuple[Inputs, OnProgress], task: Run) -> RunRecord:
    inputs, on_progress = shared
    return run(inputs[task.fingerprint], task, partial(on_progress, task), inputs.get(task.splits))
