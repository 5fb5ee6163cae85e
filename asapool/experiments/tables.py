"""From a plan and its records to a table: ours, the paper's number beside it, and what lies between.

Accuracies are in percent, as the paper prints them. Means and deviations are those of training/comparison.py. A cell
never depends on time, machine or the order in which its trainings ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from asapool.errors import CheckpointError, DataError
from asapool.experiments import paper
from asapool.experiments.comparison import FoldResult, Row, compare
from asapool.experiments.table_text import to_csv, to_dict, to_markdown, write

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.plan import Cell, Plan
    from asapool.experiments.record import RunRecord

__all__ = ["Table", "TableCell", "make_table", "to_csv", "to_dict", "to_markdown", "write"]


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """One cell; a number is None where no training stands behind it.

    over_seeds: deviation of the whole seeds' means (the paper's ±). over_folds: of the folds of one seed, averaged.
    difference and verdict rest on the whole seeds alone, once there is one.
    values: (seed, fold, accuracy) of every finished training, in the order of the plan; runs: their keys.
    """

    row: str
    column: str
    mean: float | None = None
    over_seeds: float | None = None
    over_folds: float | None = None
    seeds: int = 0  # with at least one finished fold
    folds: int = 0  # finished trainings, of all seeds
    failed: int = 0
    expected: int  # trainings
    paper: paper.Claim | None = None
    difference: float | None = None  # ours − the paper's
    verdict: Literal["within", "outside"] | None = None  # of the paper's mean ± its deviation
    chosen: bool = False  # in a plan that chooses: the best on validation of its column
    validation: float | None = None  # of the chosen: the accuracy by which it was chosen
    test: float | None = None  # of the chosen: its test accuracy, and the deviation over seeds
    test_over_seeds: float | None = None
    against: dict[str, Any] | None = None  # paired test against the table's reference row
    values: tuple[tuple[int, int, float], ...] = ()
    runs: tuple[str, ...] = ()
    settings: dict[str, Any]  # model and train

    @property
    def finished(self) -> bool:
        """Whether all trainings are done."""
        return self.folds == self.expected

    def whole_seeds(self, folds: int) -> dict[int, list[float]]:
        """The accuracies of the seeds of which all folds are done."""
        by_seed: dict[int, list[float]] = {}
        for seed, _, value in self.values:
            by_seed.setdefault(seed, []).append(value)
        return {seed: values for seed, values in by_seed.items() if len(values) == folds}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A filled plan."""

    name: str
    title: str
    metric: Literal["test", "validation"]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[TableCell, ...]  # row by row
    seeds: tuple[int, ...]
    folds: int
    protocol: str
    choose: bool = False
    reference: str | None = None  # the row that the paired tests compare with

    def cell(self, row: str, column: str) -> TableCell | None:
        """The cell of a row and a column, if the plan has it."""
        return next((cell for cell in self.cells if (cell.row, cell.column) == (row, column)), None)

    def to_markdown(self) -> str:
        """The table for people."""
        return to_markdown(self)

    def to_csv(self) -> str:
        """A line per cell."""
        return to_csv(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which from_dict makes the table again."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Table:
        """The table that to_dict was called on."""
        try:
            own = {name: value for name, value in plain.items() if name not in ("kind", "claims")}
            cells = tuple(_cell_from(cell) for cell in own.pop("cells"))
            for name in ("rows", "columns", "seeds"):
                own[name] = tuple(own[name])
            return cls(**own, cells=cells)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CheckpointError(f"not a table of asapool ({type(error).__name__}: {error})") from None


def make_table(plan: Plan, records: Mapping[str, RunRecord], graphs: Mapping[str, GraphSet] | None = None) -> Table:
    """Sum up the records that belong to a plan.

    records: by key of the Run. graphs: by column; without them a column's graphs are those that the records name.
    """
    prints = graphs if graphs is not None else _named(records.values())
    found: dict[tuple[str, str], list[tuple[str, RunRecord]]] = {}
    for cell in plan.cells:
        runs = plan.runs_of(cell, cast("Mapping[str, GraphSet]", prints)) if cell.column in prints else []
        found[cell.row, cell.column] = [(run.key, records[run.key]) for run in runs if run.key in records]
    rows = tuple(dict.fromkeys(cell.row for cell in plan.cells))
    columns = tuple(dict.fromkeys(cell.column for cell in plan.cells))
    reference = ("asap" if "asap" in rows else rows[0]) if plan.metric == "test" else None
    made: dict[tuple[str, str], TableCell] = {}
    for column in columns:
        cells = [cell for cell in plan.cells if cell.column == column]
        tests = _tests(cells, found, reference, plan.folds)
        for cell in cells:
            filled = _fill(plan, cell, found[cell.row, column])
            made[cell.row, column] = replace(filled, against=tests.get(cell.row))
        if plan.choose:
            made |= _choice([made[cell.row, column] for cell in cells], found, plan.folds)
    return Table(
        name=plan.name, title=plan.title, metric=plan.metric, rows=rows, columns=columns,
        cells=tuple(made[cell.row, cell.column] for cell in plan.cells), seeds=tuple(plan.seeds), folds=plan.folds,
        protocol=plan.protocol, choose=plan.choose, reference=reference,
    )  # fmt: skip


def _fill(plan: Plan, cell: Cell, found: Sequence[tuple[str, RunRecord]]) -> TableCell:
    row = _sum_up(found, plan.metric, plan.folds)
    told = paper.nearest(cell.column, cell.row, plan.name)
    done = [(key, record) for key, record in found if record.failure is None]
    filled = TableCell(
        row=cell.row,
        column=cell.column,
        mean=_percent(row.mean) if row else None,
        over_seeds=_percent(row.over_seeds) if row else None,
        over_folds=_percent(row.over_folds) if row else None,
        seeds=row.seeds if row else 0,
        folds=len(done),
        failed=len(found) - len(done),
        expected=len(plan.seeds) * plan.folds,
        paper=told,
        values=tuple(
            (r.run.seed, r.run.fold, value) for _, r in done if (value := _accuracy(r, plan.metric)) is not None
        ),
        runs=tuple(key for key, _ in done),
        settings={"model": cell.model.to_dict(), "train": _train(cell)},
    )
    if told is None or told.other or filled.mean is None:
        return filled
    whole = filled.whole_seeds(plan.folds)
    if not whole:  # a part of a seed is no estimate of what the paper measured
        return replace(filled, difference=round(filled.mean - told.mean, 6))
    difference = round(float(np.mean(list(whole.values()))) - told.mean, 6)
    return replace(filled, difference=difference, verdict="within" if abs(difference) <= told.deviation else "outside")


def _choice(
    cells: list[TableCell], found: Mapping[tuple[str, str], list[tuple[str, RunRecord]]], folds: int
) -> dict[tuple[str, str], TableCell]:
    """The best row of a column by validation accuracy, whatever the table shows, and judged on test.

    There is none before all rows are done.
    """
    rows = [_sum_up(found[cell.row, cell.column], "validation", folds) for cell in cells]
    means = [row.mean for row in rows if row is not None and row.mean is not None]
    if not all(cell.finished for cell in cells) or len(means) < len(cells):
        return {}
    best = cells[means.index(max(means))]  # the first of equals
    row = _sum_up(found[best.row, best.column], "test", folds)
    judged = replace(
        best, chosen=True, validation=_percent(max(means)), test=_percent(row.mean) if row else None,
        test_over_seeds=_percent(row.over_seeds) if row else None,
    )  # fmt: skip
    return {(best.row, best.column): judged}


def _tests(
    cells: Sequence[Cell],
    found: Mapping[tuple[str, str], list[tuple[str, RunRecord]]],
    reference: str | None,
    folds: int,
) -> dict[str, dict[str, Any]]:
    """Paired tests of the rows of a column against the reference, with Holm's adjustment; differences in percent."""
    names = [cell.row for cell in cells if found[cell.row, cell.column]]
    if reference not in names:
        return {}
    order = [reference, *(name for name in names if name != reference)]
    results = [r for name in order for r in _folds(name, found[name, cells[0].column], "test")]
    tests = compare(results, folds).tests
    return {name: test | {"difference": _percent(-test["difference"])} for name, test in tests.items() if test["n"] > 0}


def _sum_up(found: Sequence[tuple[str, RunRecord]], metric: str, folds: int) -> Row | None:
    results = _folds("", found, metric)
    return compare(results, folds).rows[0] if results else None


def _folds(name: str, found: Sequence[tuple[str, RunRecord]], metric: str) -> list[FoldResult]:
    """Records in the form that the comparison reads; what it sums up is called test there."""
    return [
        FoldResult(
            method=name, seed=r.run.seed, fold=r.run.fold, test=r.test if metric == "test" else r.validation,
            failure=r.failure,
        )
        for _, r in found
    ]  # fmt: skip


def _named(records: Iterable[RunRecord]) -> dict[str, SimpleNamespace]:
    """The fingerprint of every data set that the records name."""
    prints: dict[str, str] = {}
    for record in records:
        first = prints.setdefault(record.run.data, record.run.fingerprint)
        if first != record.run.fingerprint:
            raise DataError(
                f"{record.run.data}: the records are of two versions of it, with fingerprints {first} and "
                f"{record.run.fingerprint}. Keep them in two stores"
            )
    return {name: SimpleNamespace(fingerprint=fingerprint) for name, fingerprint in prints.items()}


def _accuracy(record: RunRecord, metric: str) -> float | None:
    scores = record.test if metric == "test" else record.validation
    return None if scores is None else _percent(scores["accuracy"])


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 6)


def _train(cell: Cell) -> dict[str, Any]:
    return {name: value for name, value in cell.train.to_dict().items() if name not in ("seed", "threads")}


def _cell_from(plain: Mapping[str, Any]) -> TableCell:
    told = plain["paper"]
    changed = {
        "paper": None if told is None else paper.Claim(told["mean"], told["deviation"], told["other"]),
        "values": tuple((seed, fold, value) for seed, fold, value in plain["values"]),
        "runs": tuple(plain["runs"]),
    }
    return TableCell(**{**plain, **changed})
