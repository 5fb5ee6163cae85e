"""Cross-validation: a plan whose rows are models on the folds of one data set."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, cast

from asapool.data import GraphSet
from asapool.errors import ConfigError
from asapool.experiments.engines import InlineEngine, LocalEngine
from asapool.experiments.execute import Engine
from asapool.experiments.experiment import carry_out, graph_facts, identity
from asapool.experiments.plan import Cell, Plan, check_graphs, in_memory
from asapool.experiments.protocols import SplitFile
from asapool.experiments.tables import Table
from asapool.models.config import ModelConfig
from asapool.training.config import TrainConfig
from asapool.training.settings import DataConfig

LONGEST = 120  # bytes of a data set's name in a folder name


def methods_plan(
    graphs: GraphSet,
    models: Mapping[str, ModelConfig],
    *,
    train: TrainConfig | Mapping[str, TrainConfig] | None = None,
    folds: int = 10,
    seeds: Sequence[int] = (8971,),
    protocol: str = "authors",
    splits: SplitFile | str | PathLike[str] | None = None,
    source: DataConfig | None = None,
    ensemble: int = 1,
) -> Plan:
    """A plan with a row per model on the same folds of one data set; tests compare with the first row.

    Args:
        graphs: The data set.
        models: Row → model.
        train: The training settings of all rows, or of each.
        folds: Number of folds; a split file has its own.
        seeds: For the folds and the training runs.
        protocol: "authors" (plain shuffled folds, validation on the fold before the test fold), "stratified" (the
            same, stratified by class) or "splits".
        splits: A file of published splits; the protocol is then "splits".
        source: Where the graphs came from.
        ensemble: How many models every fold trains, with different seeds; their averaged predictions are scored.
    """
    file = SplitFile.read(splits) if splits is not None and not isinstance(splits, SplitFile) else splits
    schedules = train if isinstance(train, Mapping) else dict.fromkeys(models, train or TrainConfig())
    cells = [
        Cell(
            row=row, column=graphs.name, source=source or in_memory(graphs.name), model=model,
            train=schedules[row], splits=file, ensemble=ensemble,
        )
        for row, model in models.items()
    ]  # fmt: skip
    return Plan(
        name="cv", title=f"Cross-validation on {graphs.name}", cells=tuple(cells), seeds=tuple(seeds),
        folds=folds if file is None else len(file.folds), protocol=protocol if file is None else "splits",
        comparison=True,
    )  # fmt: skip


def cross_validate(
    graphs: GraphSet,
    plan: Plan,
    folder: str | PathLike[str] | None = None,
    *,
    jobs: int = 1,
    engine: Engine | None = None,
    **options: Any,
) -> Table:
    """Train and test every fold of the plan; seeds are outermost, then folds, and rows take turns.

    A fold that fails is tried once more at the end; if it fails again, it counts as failed in its cell, and the next
    call tries it again.

    Args:
        graphs: The data set.
        plan: Made by methods_plan.
        folder: Where results are kept and found again; the folder of another plan or other graphs is refused.
        jobs: 1 trains in this process, more in that many worker processes.
        engine: Used instead of `jobs`.
        options: mix_versions, on_start, on_record and on_progress of asapool.experiments.experiment.carry_out.

    Returns:
        The table, which is also written into the folder.
    """
    check_plan(graphs, plan)
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="asapool-cv-") as temporary:
            return cross_validate(graphs, plan, temporary, jobs=jobs, engine=engine, **options)
    worker = engine or (InlineEngine() if jobs == 1 else LocalEngine(jobs))
    [table], _ = carry_out([plan], {graphs.name: graphs}, folder, worker, **options)
    return cast(Table, table)


def check_plan(graphs: GraphSet, plan: Plan) -> None:
    """Refuse a plan that cannot be trained before anything is written."""
    if plan.columns != (graphs.name,) or not plan.comparison:
        raise ConfigError(
            f"a cross-validation has one data set; plan {plan.name} has the data sets {', '.join(plan.columns)}. "
            "Make it with methods_plan, or run it with asapool reproduce --plan"
        )
    check_graphs(plan, {graphs.name: graphs})


def short_name(graphs: GraphSet, plan: Plan) -> str:
    """A folder name that the same command finds again, and no other command uses.

    Characters that a folder name cannot have become -, and a long name is cut.
    """
    text = json.dumps(identity(plan, graph_facts({graphs.name: graphs})), sort_keys=True)
    name = "".join("-" if c in ":/\\" or not c.isprintable() else c for c in graphs.name)
    name = name.encode()[:LONGEST].decode(errors="ignore")
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
