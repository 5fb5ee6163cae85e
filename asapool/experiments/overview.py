"""Summaries of stores: the verdicts on claims, a line per group of training runs, and comparisons of two stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from asapool.errors import DataError
from asapool.experiments import paper
from asapool.experiments.compact import merge, read_records
from asapool.experiments.filled import plans_behind
from asapool.experiments.plan import Plan
from asapool.experiments.record import RunRecord
from asapool.experiments.run import Run
from asapool.experiments.significance import paired_test, test_share
from asapool.experiments.summary import summarise
from asapool.experiments.tables import make_table
from asapool.experiments.verdicts import Verdict, evaluate_claims
from asapool.files import read_json, working_in, write_json
from asapool.models.config import ModelConfig
from asapool.training.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class RunGroup:
    """Training runs that differ only in seed and fold; accuracies are fractions, not percent.

    over_seeds: deviation of the seeds' means. over_folds: of the folds of one seed, averaged over the seeds.
    """

    data: str
    rows: tuple[tuple[str, str], ...]  # (plan, row) of every plan that has it
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

    @property
    def names(self) -> tuple[str, ...]:
        """Plan and row of every plan that has it; otherwise its settings."""
        return tuple(f"{plan}: {row}" for plan, row in self.rows) or (self.settings,)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"names": list(self.names)} | asdict(self)


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


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What a store holds: the verdicts on the paper's claims, with the table of each, and the groups of its runs.

    plans: those behind the runs.
    """

    claims: tuple[tuple[str, Verdict], ...]
    groups: tuple[RunGroup, ...]
    plans: tuple[Plan, ...] = ()

    def tables(self) -> dict[str, list[tuple[str, RunGroup]]]:
        """For every plan, its rows with their groups, in its order; groups in no plan are under "" with their settings.

        A group that several plans have is in the table of each.
        """
        tables: dict[str, list[tuple[str, RunGroup]]] = {}
        for plan in self.plans:
            rows = [(row, group) for group in self.groups for name, row in group.rows if name == plan.name]
            rows.sort(key=lambda entry: (plan.columns.index(entry[1].data), plan.rows.index(entry[0])))
            tables[plan.name] = rows
        tables[""] = [(group.settings, group) for group in self.groups if not group.rows]
        return {name: rows for name, rows in tables.items() if rows}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        claims = [{"table": table, **verdict.to_dict()} for table, verdict in self.claims]
        return {"claims": claims, "groups": [group.to_dict() for group in self.groups]}


def overview(folder: str | PathLike[str]) -> Overview:
    """Summarise a store or compact files, in the order of the plans."""
    records = read_records(folder, light=True)
    plans = plans_behind(folder, records)
    named = [plan for plan in plans if paper.claims(plan.name)]
    claims = tuple((plan.name, one) for plan in named for one in evaluate_claims(make_table(plan, records)))
    return Overview(claims=claims, groups=tuple(_groups(records, plans)), plans=tuple(plans))


def _groups(records: Mapping[str, RunRecord], plans: Sequence[Plan]) -> list[RunGroup]:
    by_run: dict[Run, list[RunRecord]] = {}
    for record in records.values():
        by_run.setdefault(replace(record.run, seed=0, fold=0), []).append(record)
    places: dict[Run, list[tuple[int, int, int]]] = {}  # of every group: numbers of plans, their columns and rows
    for number, plan in enumerate(plans):
        for cell in plan.cells:
            for fingerprint in {run.fingerprint for run in by_run if run.data == cell.column}:
                graphs: dict[str, Any] = {cell.column: SimpleNamespace(fingerprint=fingerprint)}
                first = plan.runs_of(cell, graphs)[0]
                place = number, plan.columns.index(cell.column), plan.rows.index(cell.row)
                places.setdefault(replace(first, seed=0, fold=0), []).append(place)
    ordered = sorted(by_run, key=lambda run: (places.get(run, [(len(plans),)])[0], run.data))
    return [
        _group(run, by_run[run], [(plans[k].name, plans[k].rows[row]) for k, _, row in places.get(run, ())])
        for run in ordered
    ]


def differences(first: str | PathLike[str], second: str | PathLike[str]) -> list[Difference]:
    """Every cell that both stores have, by the names of plan, row and data set; its settings may differ.

    Runs that are in no plan are matched by their settings. The paired test is over the seeds and folds that both
    have finished.
    """
    others = overview(second).groups
    named = {(one.data, name): one for one in others for name in one.names}
    alike = {(one.data, one.settings): one for one in others}
    differences = []
    for series in overview(first).groups:
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


def _group(run: Run, records: Sequence[RunRecord], rows: Sequence[tuple[str, str]]) -> RunGroup:
    ordered = sorted(records, key=lambda r: (r.run.seed, r.run.fold))
    total = summarise(ordered, run.folds)
    return RunGroup(
        data=run.data, rows=tuple(rows), settings=_settings(run), test=total.mean,
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
    if run.ensemble > 1:
        parts.append(f"ensemble of {run.ensemble}")
    return ", ".join(parts)


def _difference(name: str, first: RunGroup, second: RunGroup) -> Difference:
    a = {(seed, fold): value for seed, fold, value in first.scores}
    b = {(seed, fold): value for seed, fold, value in second.scores}
    both = [key for key in a if key in b] if (first.of, first.protocol) == (second.of, second.protocol) else []
    test = paired_test([b[key] for key in both], [a[key] for key in both], test_share=test_share(first.of))
    return Difference(data=first.data, name=name, first=first.test, second=second.test, test=test.to_dict())
