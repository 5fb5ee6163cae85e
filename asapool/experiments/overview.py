"""Summaries of stores, whatever plans filled them: a line per group of training runs, and comparisons of two stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from asapool.errors import DataError
from asapool.experiments.compact import merge, read_records
from asapool.experiments.experiment import read_plans
from asapool.experiments.plan import Plan
from asapool.experiments.record import RunRecord
from asapool.experiments.run import Run
from asapool.experiments.significance import paired_test, test_share
from asapool.experiments.summary import summarise
from asapool.files import read_json, working_in, write_json
from asapool.models.config import ModelConfig
from asapool.training.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class RunGroup:
    """Training runs that differ only in seed and fold; accuracies are fractions, not percent.

    over_seeds: deviation of the seeds' means. over_folds: of the folds of one seed, averaged over the seeds.
    """

    data: str
    names: tuple[str, ...]  # "plan: row" of every plan that has it; otherwise its settings
    settings: str  # the method, and every setting that is not the default
    test: float | None
    over_seeds: float | None
    over_folds: float | None
    validation: float | None
    seeds: int
    folds: int  # finished training runs
    failed: int
    of: int  # folds of the protocol
    protocol: str
    scores: tuple[tuple[int, int, float], ...]  # seed, fold, test accuracy

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The same cell in two stores: second − first on the training runs that both have."""

    data: str
    name: str
    first: float | None
    second: float | None
    test: dict[str, Any]  # PairedTest as plain data, difference = second − first

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def overview(folder: str | PathLike[str]) -> list[RunGroup]:
    """The groups of a store or of compact files, in the order of the plans."""
    groups: dict[Run, list[RunRecord]] = {}
    for record in read_records(folder, light=True).values():
        groups.setdefault(replace(record.run, seed=0, fold=0), []).append(record)
    plans = read_plans(folder)
    summaries = [_group(run, records, plans) for run, records in groups.items()]
    return sorted(summaries, key=lambda s: (_place(s, plans), s.data))


def differences(first: str | PathLike[str], second: str | PathLike[str]) -> list[Difference]:
    """Every cell that both stores have, by the names of plan, row and data set; its settings may differ.

    Runs that are in no plan are matched by their settings. The paired test is over the seeds and folds that both
    have finished.
    """
    others = overview(second)
    named = {(one.data, name): one for one in others for name in one.names}
    alike = {(one.data, one.settings): one for one in others}
    differences = []
    for series in overview(first):
        names = [name for name in series.names if (series.data, name) in named]
        differences += [_difference(name, series, named[series.data, name]) for name in names]
        if not names and (series.data, series.settings) in alike:
            differences.append(_difference(series.names[0], series, alike[series.data, series.settings]))
    if not differences:
        raise DataError(f"{first} and {second} have no cell in common. Compare stores of the same plan")
    return differences


def merge_folders(folders: Sequence[str | PathLike[str]], into: str | PathLike[str]) -> int:
    """Merge stores and their plans into one folder; returns how many records were added.

    A compact file, or a folder of such files, counts as a store without plans. If two folders have a plan of the
    same name, the larger one is kept.
    """
    count = merge(*folders, into=into)
    with working_in(into) as path:
        for folder in folders:
            for file in sorted(Path(folder).glob("*.plan.json")):
                plan, target = read_json(file), path / file.name
                if not target.exists() or _size(read_json(target)) < _size(plan):
                    write_json(target, plan)
    return count


def _size(plan: Mapping[str, Any]) -> int:
    return len(plan["cells"]) * len(plan["seeds"])


def _group(run: Run, records: Sequence[RunRecord], plans: Sequence[Plan]) -> RunGroup:
    ordered = sorted(records, key=lambda r: (r.run.seed, r.run.fold))
    total = summarise(ordered, run.folds)
    names = tuple(
        f"{plan.name}: {cell.row}"
        for plan in plans
        for cell in plan.cells
        if (plan.folds, plan.protocol, cell.column) == (run.folds, run.protocol, run.data)
        and cell.model == run.model
        and replace(cell.train, seed=0, threads=None) == run.train
    )
    return RunGroup(
        data=run.data, names=names or (_settings(run),), settings=_settings(run), test=total.mean,
        over_seeds=total.over_seeds, over_folds=total.over_folds, validation=total.validation, seeds=total.seeds,
        folds=total.folds, failed=total.failed, of=run.folds, protocol=run.protocol,
        scores=total.values,
    )  # fmt: skip


def _settings(run: Run) -> str:
    parts: list[str] = [run.model.method]
    for given, default in ((run.model, ModelConfig()), (run.train, TrainConfig())):
        for f in fields(default):
            value = getattr(given, f.name)
            if f.name != "method" and value != getattr(default, f.name):
                parts.append(f"{f.name} {value}")
    return ", ".join(parts)


def _place(series: RunGroup, plans: Sequence[Plan]) -> tuple[int, int]:
    """Sort key: the order of the plans and of their rows; groups in no plan come last."""
    for number, plan in enumerate(plans):
        for at, row in enumerate(plan.rows):
            if f"{plan.name}: {row}" in series.names:
                return number, at
    return len(plans), 0


def _difference(name: str, first: RunGroup, second: RunGroup) -> Difference:
    a = {(seed, fold): value for seed, fold, value in first.scores}
    b = {(seed, fold): value for seed, fold, value in second.scores}
    both = [key for key in a if key in b] if (first.of, first.protocol) == (second.of, second.protocol) else []
    test = paired_test([b[key] for key in both], [a[key] for key in both], test_share=test_share(first.of))
    return Difference(data=first.data, name=name, first=first.test, second=second.test, test=test.to_dict())
