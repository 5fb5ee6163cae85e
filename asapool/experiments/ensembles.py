"""Ensembles: several training runs of one split, or the models of a cross-validation, as one model in one file.

ensemble.json      number of members         members/   their store and their models, as in a cross-validation
model.safetensors, metrics.json, predictions.csv, config.toml, split.json, README.md: as in a single run; history.csv is
that of the first member. Stopping or killing the process loses no finished member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from asapool.data import GraphSet, Reading, Split
from asapool.errors import CheckpointError, ConfigError, TrainingError
from asapool.experiments.execute import Engine, OnProgress, execute, model_path
from asapool.experiments.experiment import MODELS, refuse_other_versions
from asapool.experiments.plan import Cell, Plan
from asapool.experiments.protocols import SplitFile
from asapool.experiments.record import RunRecord
from asapool.experiments.run import Run
from asapool.experiments.store import Store
from asapool.files import read_json, working_in, write_json
from asapool.models import checkpoint
from asapool.models.content import MEMBERS
from asapool.models.ensemble import EnsembleModel
from asapool.training import run as single
from asapool.training.fitting import Fit
from asapool.training.predictions import predict
from asapool.training.results import evaluate_run, write_results
from asapool.training.run import settle
from asapool.training.settings import RunSettings, read_for
from asapool.training.state import Epoch
from asapool.training.tasks import task_of
from asapool.training.trust import KEY, Trust, measured_coverage, trust_in_answers

FILE, FOLDER = "ensemble.json", "members"
OnMember = Callable[[int, int, RunRecord], None]  # finished members, all of them, the one that ended


def is_ensemble(folder: str | PathLike[str]) -> bool:
    """Whether a folder contains an ensemble of asapool train --ensemble, finished or not."""
    return (Path(folder) / FILE).is_file()


def train_ensemble(
    settings: RunSettings,
    graphs: GraphSet,
    folder: str | PathLike[str],
    members: int,
    engine: Engine,
    *,
    overwrite: bool = False,
    reading: Reading | None = None,
    on_member: OnMember | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Train several models on one split with different seeds, and combine them into one.

    Args:
        settings: all four tables; member k has the seed train.seed + k.
        graphs: the data set that the settings name.
        folder: where the files go.
        members: how many models, at least 2.
        engine: trains the members.
        overwrite: replace an existing run.
        reading: counts of what was left out of the data set, for metrics.json.
        on_member: called when a member ends.
        on_progress: called with the number of epochs trained, now and then.

    Returns:
        The content of metrics.json: the scores of the ensemble, and under "ensemble" those of its members.
    """
    if not 2 <= members <= MEMBERS:
        raise ConfigError(f"an ensemble has 2 to {MEMBERS} members, got {members}. Leave out --ensemble to train one")
    split = settings.split.make(graphs)
    settings = settle(settings, graphs, split, threads=1, trainings=members)
    path = Path(folder)
    with single.claimed(path, settings, split, overwrite=overwrite):
        if (path / FOLDER).exists():
            rmtree(path / FOLDER)
        write_json(path / FILE, {"members": members}, durable=True)
    return _carry_out(settings, graphs, split, path, members, engine, reading, on_member, on_progress, False)


def resume_ensemble(
    folder: str | PathLike[str],
    engine: Engine,
    *,
    on_member: OnMember | None = None,
    on_progress: OnProgress | None = None,
    mix_versions: bool = False,
) -> dict[str, Any]:
    """Train the members of an ensemble that are missing; a finished one is only read."""
    path = Path(folder)
    if (path / "metrics.json").exists():
        metrics: dict[str, Any] = read_json(path / "metrics.json")
        return metrics
    members = read_json(path / FILE).get("members")
    settings, split = RunSettings.from_file(path / "config.toml"), Split.load(path / "split.json")
    reading = read_for(settings.data, settings.split)
    split.check(reading.graphs)
    return _carry_out(
        settings, reading.graphs, split, path, members, engine, reading, on_member, on_progress, mix_versions
    )


def join(paths: Sequence[Path]) -> tuple[EnsembleModel, list[Trust]]:
    """The ensemble of several model files, and the uncertainty data of each."""
    loaded = [checkpoint.load(path) for path in paths]
    if any(one.recipe != loaded[0].recipe or not one.target.matches(loaded[0].target) for one in loaded):
        raise CheckpointError(f"{paths[0].parent}: its models were trained on different graphs or targets")
    return EnsembleModel([one.model for one in loaded]).eval(), [Trust.from_dict(one.extra[KEY]) for one in loaded]


def save_folds(graphs: GraphSet, folder: Path, runs: Sequence[Run], splits: SplitFile | None = None) -> Path:
    """Combine the models of a cross-validation into one file, model.safetensors in its folder.

    Conformal sets and probabilities are calibrated on the predictions of each model for its own test fold, which it has
    not seen; the scores of the cross-validation are those of the single models and are not affected.

    Args:
        graphs: the data set.
        folder: of the cross-validation, with its models.
        runs: the finished training runs of one method.
        splits: the split file, if there is one.
    """
    ensemble, trusts = join([model_path(folder / MODELS, run) for run in runs])
    tests = [run.split(graphs, splits).test for run in runs]
    answers = [predict(model, graphs, test) for model, test in zip(ensemble.models, tests, strict=True)]
    _save(ensemble, trusts, graphs, folder, np.concatenate(tests), np.concatenate(answers), {"name": graphs.name})
    return folder / checkpoint.FILE


def _carry_out(
    settings: RunSettings, graphs: GraphSet, split: Split, path: Path, members: int, engine: Engine,
    reading: Reading | None, on_member: OnMember | None, on_progress: OnProgress | None, mix_versions: bool,
) -> dict[str, Any]:  # fmt: skip
    plan = _plan(settings, graphs, split, path, members)
    by_name, models, done = {graphs.name: graphs}, path / FOLDER / MODELS, [0]

    def on_record(record: RunRecord) -> None:
        done[0] += record.finished
        if on_member is not None:
            on_member(done[0], members, record)

    with Store.open(path / FOLDER) as store:
        if not mix_versions:
            refuse_other_versions(store, [plan], by_name)
        done[0] = sum(store.finished(run.key) for run in plan.runs(by_name))
        execute(plan, by_name, store, engine, on_record, on_progress, models)
    records = Store.read(path / FOLDER)
    runs = plan.runs(by_name)
    failed = [records[run.key] for run in runs if not records[run.key].finished]
    if failed:
        raise TrainingError(
            f"{path}: {len(failed)} of {members} members failed, the first because {failed[0].failure}. "
            f"Try them again with: asapool train --resume {path}"
        )
    ensemble, trusts = join([model_path(models, run) for run in runs])
    with working_in(path):
        return _finish(settings, graphs, split, path, ensemble, trusts, [records[run.key] for run in runs], reading)


def _finish(
    settings: RunSettings, graphs: GraphSet, split: Split, path: Path, ensemble: EnsembleModel,
    trusts: Sequence[Trust], records: Sequence[RunRecord], reading: Reading | None,
) -> dict[str, Any]:  # fmt: skip
    """Write the files of a single run, for the ensemble."""
    first = records[0]
    done = Fit(
        best_epoch=first.best_epoch or 0, best_score=None, selected_by=settings.train.select_by,
        history=tuple(Epoch(**row) for row in first.history or ()),
    )  # fmt: skip
    metrics = evaluate_run(settings, graphs, split, ensemble, done)
    members: dict[str, Any] = {"members": len(records), "seeds": [record.run.seed for record in records]}
    for part in ("validation", "test"):
        members[part] = [getattr(record, part) for record in records]
    metrics["ensemble"] = members
    metrics["seconds"] = sum(record.seconds or 0.0 for record in records)
    if reading is not None:
        metrics["data"] |= reading.counts()
    summary: dict[str, Any] = {"train": settings.train.to_dict(), "source": settings.data.source, "name": graphs.name}
    summary |= {"members": len(records), "validation": metrics["validation"], "test": metrics["test"]}
    trust = _save(ensemble, trusts, graphs, path, split.val, predict(ensemble, graphs, split.val), summary)
    metrics["conformal"] = measured_coverage(trust, graphs, split.test, ensemble)
    write_results(path, settings, graphs, split, ensemble, done, metrics)
    return metrics


def _save(
    ensemble: EnsembleModel, trusts: Sequence[Trust], graphs: GraphSet, folder: Path, held_out: Any, answers: Any,
    summary: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Write the model file and return its uncertainty data, computed from predictions for held-out graphs."""
    target = graphs.target if ensemble.target is None else ensemble.target
    parts = task_of(target).parts(graphs.y[held_out], answers, target)
    references = tuple(reference for trust in trusts for reference in trust.references)
    known = references if len(references) == len(trusts) else ()
    trust = Trust(tasks=trust_in_answers(parts), references=known).to_dict()
    checkpoint.save(
        folder / checkpoint.FILE, ensemble, target=target, recipe=graphs.recipe, summary=summary,
        fingerprint=graphs.fingerprint, extra={KEY: trust},
    )  # fmt: skip
    return trust


def _plan(settings: RunSettings, graphs: GraphSet, split: Split, path: Path, members: int) -> Plan:
    """The members as a plan: one split, and a seed for each."""
    file = SplitFile.of(split, path / FOLDER / "splits.json")
    seed = settings.train.seed
    cell = Cell(
        row=settings.model.method, column=graphs.name, source=settings.data, model=settings.model,
        train=replace(settings.train, seed=0), splits=file,
    )  # fmt: skip
    return Plan(
        name="ensemble", title=f"An ensemble of {members} models on {graphs.name}", cells=(cell,),
        seeds=tuple(range(seed, seed + members)), folds=1, protocol="splits",
    )  # fmt: skip
