"""From a plan and its records to a table: our numbers, the paper's beside them, a trivial baseline, paired tests.

Accuracies are in percent, as in the paper. No score depends on time, machine or the order in which training runs
ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from asapool.errors import CheckpointError, DataError
from asapool.experiments import paper
from asapool.experiments.baselines import RecordsOf, baseline
from asapool.experiments.cells import TableCell, cell_from, shown, shown_scores, shown_tasks, shown_values
from asapool.experiments.rendering import to_csv, to_dict, to_markdown
from asapool.experiments.run import settings_of
from asapool.experiments.summary import (
    USUAL,
    Headline,
    fold_values,
    headline_named,
    headline_of_records,
    paired_tests,
    summarise,
)

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.plan import Cell, Plan
    from asapool.experiments.record import RunRecord


@dataclass(frozen=True, kw_only=True)
class Table:
    """A filled plan.

    Args:
        name: Of the plan, and of the files.
        title: For people.
        metric: Which accuracy it shows, "test" or "validation".
        rows: Names of the rows.
        columns: Names of the data sets.
        cells: Row by row.
        baselines: For a comparison: the score of the trivial baseline, the most frequent class or the mean value.
        seeds: Of the plan.
        folds: Of a seed.
        protocol: How folds are made.
        choose: Whether the best row on validation is chosen per column.
        reference: The row that the paired tests compare with.
        versions: The versions of asapool that made its records.
        comparison: Whether it compares models on one data set; the first row is then the reference.
    """

    name: str
    title: str
    metric: Literal["test", "validation"]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[TableCell, ...]
    baselines: tuple[TableCell, ...] = ()
    seeds: tuple[int, ...]
    folds: int
    protocol: str
    choose: bool = False
    reference: str | None = None
    versions: tuple[str, ...] = ()
    comparison: bool = False

    def cell(self, row: str, column: str) -> TableCell | None:
        """The cell of a row and a column, if the plan has it."""
        cells = (*self.cells, *self.baselines)
        return next((cell for cell in cells if (cell.row, cell.column) == (row, column)), None)

    @property
    def headline(self) -> Headline:
        """The score that it shows: that of the first cell with training runs."""
        return headline_named(next((cell.score for cell in self.cells if cell.folds), USUAL))

    @property
    def comparable(self) -> bool:
        """Whether all cells were trained for as many epochs as in the paper, so that verdicts are fair."""
        return all(cell.settings["train"]["epochs"] == paper.EPOCHS for cell in self.cells)

    def to_markdown(self) -> str:
        """The table as Markdown."""
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
            values = {name: value for name, value in plain.items() if name not in ("kind", "claims")}
            for name in ("cells", "baselines"):
                values[name] = tuple(cell_from(cell) for cell in values[name])
            for name in ("rows", "columns", "seeds", "versions"):
                values[name] = tuple(values[name])
            return cls(**values)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CheckpointError(f"not a table of asapool ({type(error).__name__}: {error})") from None


def make_table(plan: Plan, records: Mapping[str, RunRecord], graphs: Mapping[str, GraphSet] | None = None) -> Table:
    """Summarise the records that belong to a plan.

    Args:
        plan: The plan of the table.
        records: By key of the Run.
        graphs: By column; by default, the graphs are identified by the records.
    """
    known = graphs if graphs is not None else _fingerprints(records.values())
    records_of: dict[tuple[str, str], list[RunRecord]] = {}
    for cell in plan.cells:
        runs = plan.runs_of(cell, cast("Mapping[str, GraphSet]", known)) if cell.column in known else []
        records_of[cell.row, cell.column] = [records[run.key] for run in runs if run.key in records]
    rows, columns = plan.rows, plan.columns
    first = "asap" if "asap" in rows and not plan.comparison else rows[0]
    first = plan.reference if plan.reference in rows else first  # --methods may leave it out
    reference = first if plan.metric == "test" else None
    filled: dict[tuple[str, str], TableCell] = {}
    for column in columns:
        cells = [cell for cell in plan.cells if cell.column == column]
        for cell in cells:
            filled[cell.row, column] = _fill(plan, cell, records_of[cell.row, column])
        tests = _tests({cell.row: records_of[cell.row, column] for cell in cells}, reference, plan.folds)
        filled |= {(row, column): replace(filled[row, column], against=test) for row, test in tests.items()}
        if plan.choose:
            filled |= _choice([filled[cell.row, column] for cell in cells], records_of, plan.folds)
    baselines = [baseline(plan, column, records_of) for column in columns] if plan.comparison else []
    for trivial in baselines:
        filled |= _against_trivial(filled, trivial, plan.folds) if trivial is not None else {}
    return Table(
        name=plan.name, title=plan.title, metric=plan.metric, rows=rows, columns=columns,
        cells=tuple(filled[cell.row, cell.column] for cell in plan.cells),
        baselines=tuple(cell for cell in baselines if cell is not None), seeds=tuple(plan.seeds), folds=plan.folds,
        protocol=plan.protocol, choose=plan.choose, reference=reference,
        versions=tuple(sorted({record.version for of_cell in records_of.values() for record in of_cell})),
        comparison=plan.comparison,
    )  # fmt: skip


def _fill(plan: Plan, cell: Cell, records: Sequence[RunRecord]) -> TableCell:
    total, score = summarise(records, plan.folds, plan.metric), headline_of_records(records)
    factor = score.factor
    number = paper.nearest(cell.column, cell.row, "table2" if plan.comparison else plan.name)
    filled = TableCell(
        row=cell.row,
        column=cell.column,
        mean=shown(total.mean, factor),
        over_seeds=shown(total.over_seeds, factor),
        over_folds=shown(total.over_folds, factor),
        seeds=total.seeds,
        folds=total.folds,
        failed=total.failed,
        expected=len(plan.seeds) * plan.folds,
        paper=number,
        validation=shown(total.validation, factor),
        # other tables must have the same bytes on every machine, and when made from rounded compact records
        scores=shown_scores(total.scores) if plan.comparison else None,
        undefined=_undefined(total.scores, records) if plan.comparison else None,
        tasks=shown_tasks(total.tasks) if plan.comparison else None,
        seconds=round(total.seconds, 3) if plan.comparison and total.seconds is not None else None,
        values=shown_values(total.values, factor),
        score=score.name,
        runs=tuple(record.run.key for record in records if record.finished),
        settings={"model": settings_of(cell.model), "train": settings_of(cell.train)}
        | ({"ensemble": cell.ensemble} if cell.ensemble > 1 else {}),
    )
    if number is None or number.other or filled.mean is None:
        return filled
    whole = filled.complete_seeds(plan.folds)
    if not whole:  # a partial seed does not estimate what the paper measured
        return replace(filled, difference=round(filled.mean - number.mean, 6))
    difference = round(float(np.mean(list(whole.values()))) - number.mean, 6)
    if cell.train.epochs != paper.EPOCHS:
        return replace(filled, difference=difference)
    verdict: Literal["within", "outside"] = "within" if abs(difference) <= number.deviation else "outside"
    return replace(filled, difference=difference, verdict=verdict)


def _undefined(scores: Mapping[str, float | None], records: Sequence[RunRecord]) -> dict[str, str] | None:
    """Why scores have no mean, in the words of the first record that says so; None if all have one."""
    notes = [(record.test or {}).get("notes") or {} for record in records if record.finished]
    missing = [name for name, value in scores.items() if value is None]
    return {name: next((why[name] for why in notes if name in why), "") for name in missing if notes} or None


def _choice(cells: list[TableCell], records: RecordsOf, folds: int) -> dict[tuple[str, str], TableCell]:
    """The best row of a column by validation accuracy, whatever the table shows, with its test accuracy.

    Empty until all rows are finished.
    """
    means = [cell.validation for cell in cells if cell.validation is not None]
    if not all(cell.finished for cell in cells) or len(means) < len(cells):
        return {}
    score = headline_named(cells[0].score)
    best = cells[means.index(max(means) if score.greater else min(means))]  # the first in a tie
    total = summarise(records[best.row, best.column], folds)
    test, deviation = shown(total.mean, score.factor), shown(total.over_seeds, score.factor)
    chosen = replace(best, chosen=True, test=test, test_over_seeds=deviation)
    return {(best.row, best.column): chosen}


def _tests(rows: Mapping[str, list[RunRecord]], reference: str | None, folds: int) -> dict[str, dict[str, Any]]:
    """Paired tests of the rows of a column against the reference; differences in percent."""
    values = {row: fold_values(records) for row, records in rows.items() if records}
    if reference is None or reference not in values:
        return {}
    tests, factor = paired_tests(values, reference, folds), headline_of_records(rows[reference]).factor
    return {
        row: test | {name: shown(test[name], factor) for name in ("difference", "margin")}
        for row, test in tests.items()
        if test["n"] > 0
    }


def _against_trivial(
    cells: Mapping[tuple[str, str], TableCell], trivial: TableCell, folds: int
) -> dict[tuple[str, str], TableCell]:
    """The cells of a column with their paired tests against the trivial baseline."""
    tested = [cell for cell in cells.values() if cell.column == trivial.column and cell.values]
    tests = paired_tests({cell.row: cell.values for cell in tested} | {"": trivial.values}, "", folds)
    return {
        (cell.row, cell.column): replace(cell, against_trivial=tests[cell.row])
        for cell in tested
        if tests[cell.row]["n"] > 0
    }


def _fingerprints(records: Iterable[RunRecord]) -> dict[str, SimpleNamespace]:
    """The fingerprint of every data set that the records name."""
    fingerprints: dict[str, str] = {}
    for record in records:
        first = fingerprints.setdefault(record.run.data, record.run.fingerprint)
        if first != record.run.fingerprint:
            raise DataError(
                f"{record.run.data}: the records are from two versions of the data set, with fingerprints {first} and "
                f"{record.run.fingerprint}. Keep them in separate stores"
            )
    return {name: SimpleNamespace(fingerprint=fingerprint) for name, fingerprint in fingerprints.items()}
