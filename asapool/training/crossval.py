"""Cross-validation: methods × seeds × folds, each a training of its own, in parallel processes, resumable.

A finished fold is a small file that appears whole, so a killed run goes on where it was. Methods share their folds.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from asapool.data import GraphSet, Split
from asapool.data.splits import authors_folds, stratified_folds
from asapool.errors import CheckpointError, ConfigError, choose
from asapool.models import ModelConfig, build
from asapool.training.config import TrainConfig
from asapool.training.fitting import fit, typical_nodes
from asapool.training.folder import read_json, working_in, write_json
from asapool.training.metrics import score
from asapool.training.probability import predict
from asapool.training.processes import run_tasks

PROTOCOLS = ("authors", "stratified")


@dataclass(frozen=True)
class Fold:
    """One training: a method, a seed, the number of the test fold."""

    method: str
    seed: int
    fold: int

    @property
    def file(self) -> str:
        """Where its result is kept."""
        return f"{self.method}-{self.seed}-{self.fold:02d}.json"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to cross-validate: models by name, one training setting, and the folds.

    authors: plain shuffled folds, the validation fold is the one before the test fold. stratified: the same with the
    classes in proportion.
    """

    models: Mapping[str, ModelConfig]
    train: TrainConfig = field(default_factory=TrainConfig)
    folds: int = 10
    seeds: tuple[int, ...] = (8971,)
    protocol: Literal["authors", "stratified"] = "authors"

    def __post_init__(self) -> None:
        choose("protocol", self.protocol, PROTOCOLS)
        if not self.models:
            raise ConfigError("there is no method to cross-validate. Name at least one")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"seeds must be different numbers, at least one, got {self.seeds}")
        if self.folds < 3:
            raise ConfigError(f"folds must be at least 3 (training, validation, test), got {self.folds}")

    @property
    def tasks(self) -> list[Fold]:
        """All trainings; methods take turns, so that a run cut short has compared all of them on some folds."""
        return [Fold(m, s, f) for s in self.seeds for f in range(self.folds) for m in self.models]

    def split(self, graphs: GraphSet, task: Fold) -> Split:
        """The parts of a fold; they depend on seed and fold, not on the method."""
        make = authors_folds if self.protocol == "authors" else stratified_folds
        return make(graphs, task.seed, task.fold, self.folds)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        train = self.train.to_dict()
        for own in ("seed", "threads"):  # every fold has its own
            train.pop(own, None)
        return {
            "models": {name: model.to_dict() for name, model in self.models.items()},
            "train": train,
            "folds": self.folds, "seeds": list(self.seeds), "protocol": self.protocol,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FoldResult:
    """The scores of one training, or the reason why there are none."""

    method: str
    seed: int
    fold: int
    validation: dict[str, Any] | None = None  # Scores as plain data
    test: dict[str, Any] | None = None
    best_epoch: int | None = None
    epochs: int | None = None
    stopped: str | None = None
    seconds: float | None = None
    failure: str | None = None


def train_fold(graphs: GraphSet, plan: Plan, task: Fold) -> FoldResult:
    """Train one method on one fold and judge it on the test part."""
    began = time.perf_counter()
    split = plan.split(graphs, task)
    seed = int(
        np.random.SeedSequence([task.seed, task.fold]).generate_state(1)[0]
    )  # folds start from different weights
    # one thread, however many trainings run side by side: the result must not depend on the number of jobs
    config = replace(plan.train, seed=seed, threads=1)
    size = typical_nodes(graphs, split.train)
    model = build(plan.models[task.method], graphs.num_features, graphs.num_classes, seed=seed, typical_nodes=size)
    done = fit(model, graphs, split, config)

    def scores(part: Any) -> dict[str, Any]:
        return score(graphs.y[part], predict(model, graphs, part), graphs.class_names).to_dict()

    return FoldResult(
        **asdict(task), validation=scores(split.val), test=scores(split.test), best_epoch=done.best_epoch,
        epochs=len(done.history), stopped=done.stopped, seconds=time.perf_counter() - began,
    )  # fmt: skip


def cross_validate(
    graphs: GraphSet,
    plan: Plan,
    folder: str | PathLike[str] | None = None,
    *,
    jobs: int = 1,
    on_fold: Callable[[FoldResult, int], None] | None = None,
) -> list[FoldResult]:
    """Train and judge every fold of the plan; results come in the order of plan.tasks.

    folder: where finished folds are kept and found again; a folder of another plan or other graphs is refused.
    on_fold is called with each new result and the number of folds that are still to come. Failed folds are part of the
    result, with their reason, and are tried again the next time.
    """
    plan.split(graphs, plan.tasks[0])  # refuses folds that these graphs cannot give
    if folder is None:
        return _run(graphs, plan, None, jobs, on_fold)
    with working_in(folder) as path:
        claim(path / "plan.json", plan_record(graphs, plan))
        (path / "folds").mkdir(exist_ok=True)
        return _run(graphs, plan, path / "folds", jobs, on_fold)


def plan_record(graphs: GraphSet, plan: Plan) -> dict[str, Any]:
    """What makes two cross-validations the same."""
    data = {"name": graphs.name, "graphs": len(graphs), "fingerprint": graphs.fingerprint}
    return {"version": 1, "data": data, **plan.to_dict()}


def short_name(graphs: GraphSet, plan: Plan) -> str:
    """A folder name that the same command finds again, and no other command uses."""
    text = json.dumps(plan_record(graphs, plan), sort_keys=True)
    return f"{graphs.name.replace(':', '-').replace('/', '-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def claim(path: Path, record: dict[str, Any]) -> None:
    """Write what a folder is for, or refuse one that is for something else."""
    if not path.exists():
        write_json(path, record)
    elif read_json(path) != record:
        raise CheckpointError(
            f"{path.parent}: holds a cross-validation with other settings or graphs. Choose another folder"
        )


def _run(
    graphs: GraphSet, plan: Plan, store: Path | None, jobs: int, on_fold: Callable[[FoldResult, int], None] | None
) -> list[FoldResult]:
    done: dict[Fold, FoldResult] = {}
    if store is not None:
        done = {task: FoldResult(**read_json(store / task.file)) for task in plan.tasks if (store / task.file).exists()}
    waiting = [task for task in plan.tasks if task not in done]
    left = len(waiting)
    for outcome in run_tasks(waiting, _work, (graphs, plan), min(jobs, left) or 1):
        result = outcome.result or FoldResult(**asdict(outcome.task), failure=outcome.failure)
        if store is not None and result.failure is None:
            write_json(store / outcome.task.file, asdict(result))
        done[outcome.task] = result
        left -= 1
        if on_fold is not None:
            on_fold(result, left)
    return [done[task] for task in plan.tasks]


def _work(shared: tuple[GraphSet, Plan], task: Fold) -> FoldResult:
    return train_fold(*shared, task)
