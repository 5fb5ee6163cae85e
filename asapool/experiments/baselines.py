"""The trivial baseline of a comparison as a row of its table: the most frequent class, or the mean value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.experiments.cells import TableCell, shown, shown_scores, shown_tasks, shown_values
from asapool.experiments.summary import (
    Headline,
    by_seed,
    complete,
    headline_of_records,
    mean_of,
    score_names,
    task_means,
)
from asapool.training.metrics import METRICS

if TYPE_CHECKING:
    from asapool.experiments.plan import Plan
    from asapool.experiments.record import RunRecord

MAJORITY = "majority class"  # name of the row
TRIVIAL = "trivial baseline"  # its name for targets other than classes
Ints = npt.NDArray[np.int64]
Scores = Mapping[str, float | None]
RecordsOf = Mapping[tuple[str, str], list["RunRecord"]]  # row, column → records in the order of the plan


def baseline(plan: Plan, column: str, records: RecordsOf) -> TableCell | None:
    """The trivial baseline on the test parts of the row with the most training runs.

    For classes it is the most frequent one of the data set, for measured values the mean of the training graphs. None
    if the records do not contain it (compact files).
    """
    rows = [[r for r in records[cell.row, column] if r.finished] for cell in plan.cells if cell.column == column]
    most = max(rows, key=len)
    score = headline_of_records(most)
    tested = [(r.run.seed, r.run.fold, r.test) for r in most if r.test is not None]
    trivial = [(seed, fold, test["trivial"]) for seed, fold, test in tested if test.get("trivial")]
    if trivial:
        tasks = task_means([test.get("trivial_of_tasks") for _, _, test in tested])
        return _cell(TRIVIAL, column, trivial, plan.folds, score, tasks)
    confusions = [(seed, fold, test["confusion"]) for seed, fold, test in tested if test.get("confusion")]
    majority = _majority([(seed, fold, np.sum(matrix, axis=1)) for seed, fold, matrix in confusions])
    return _cell(MAJORITY, column, majority, plan.folds, score, None) if majority else None


def _majority(counts: Sequence[tuple[int, int, Ints]]) -> Sequence[tuple[int, int, Scores]]:
    """Seed, fold and scores of always predicting the class shares of the data set.

    counts: seed, fold and the number of test graphs of each class, (C,).
    """
    total = np.sum([count for _, _, count in counts], axis=0)
    if not np.any(total):
        return []
    shares = total / total.sum()
    scores = []
    for seed, fold, count in counts:
        y, p = np.repeat(np.arange(len(count)), count), np.repeat(shares[None], count.sum(), axis=0)
        if len(y):
            scores.append((seed, fold, {name: METRICS[name].compute(y, p, None) for name in score_names("accuracy")}))
    return scores


def _cell(
    row: str, column: str, folds: Sequence[tuple[int, int, Scores]], whole: int, score: Headline, tasks: Any
) -> TableCell | None:
    """The row of a baseline; whole: how many folds a complete seed has."""
    known = ((seed, fold, score.of(scores)) for seed, fold, scores in folds)
    values = tuple((seed, fold, value) for seed, fold, value in known if value is not None)
    if not values:
        return None
    seeds, factor = by_seed(values), score.factor
    means = [float(np.mean(v)) for v in complete(seeds, whole).values()]
    within = [float(np.std(v, ddof=1)) for v in seeds.values() if len(v) > 1]
    scores = {name: mean_of([one.get(name) for _, _, one in folds]) for name in score_names(score.name)}
    return TableCell(
        row=row, column=column, mean=shown(float(np.mean([value for _, _, value in values])), factor),
        over_seeds=shown(float(np.std(means, ddof=1)), factor) if len(means) > 1 else None,
        over_folds=shown(float(np.mean(within)), factor) if within else None, seeds=len(seeds), folds=len(values),
        expected=len(values), values=shown_values(values, factor), score=score.name, scores=shown_scores(scores),
        tasks=shown_tasks(tasks), settings={"model": {"method": row}, "train": {}},
    )  # fmt: skip
