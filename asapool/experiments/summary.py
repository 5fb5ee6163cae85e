"""Summaries of training runs: the score that a table compares, its mean and deviations, and paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from asapool.experiments.record import RunRecord
from asapool.experiments.significance import holm, paired_test, test_share
from asapool.training.metrics import METRICS
from asapool.training.selection import ALL_METRICS
from asapool.training.task_scores import REGRESSION_METRICS

USUAL = "accuracy"  # for classes, and for folders without training runs


class Headline(NamedTuple):
    """A score and how it is shown.

    Args:
        name: Key in the scores of a record.
        label: Name for people.
        greater: Whether greater is better.
        factor: 100 for shares, which are shown in percent; 1 for values.
    """

    name: str
    label: str
    greater: bool
    factor: float

    @property
    def words(self) -> str:
        """Name and unit for headings.

        >>> headline_named("accuracy").words, headline_named("rmse").words
        ('accuracy in percent', 'RMSE')
        """
        return f"{self.label} in percent" if self.factor == 100 else self.label

    @property
    def axis(self) -> str:
        """Name and unit for axes."""
        return f"{self.label}, %" if self.factor == 100 else self.label

    @property
    def best(self) -> str:
        """The word for the best mean: highest or lowest."""
        return "highest" if self.greater else "lowest"

    def of(self, scores: Mapping[str, Any] | None) -> float | None:
        """The score, as it is stored."""
        value = None if scores is None else scores.get(self.name)
        return None if value is None else float(value)


def headline_named(name: str) -> Headline:
    """The headline of that name."""
    metric = ALL_METRICS[name]
    return Headline(name, metric.label, metric.greater, factor_of(name))


def factor_of(score: str) -> float:
    """100 for shares, which are shown in percent; 1 for other scores.

    >>> factor_of("f1"), factor_of("mcc"), factor_of("rmse")
    (100.0, 1.0, 1.0)
    """
    return 100.0 if score in METRICS and score not in ("mcc", "log_loss") else 1.0


def headline_of(scores: Mapping[str, Any] | None) -> Headline:
    """The headline of a record's scores; scores without a kind are of classes."""
    from asapool.training.tasks import TASKS

    kind = (scores or {}).get("kind", "classification")
    return headline_named(TASKS[kind].headline)


def headline_of_records(records: Iterable[RunRecord]) -> Headline:
    """The headline of training runs on one data set."""
    return headline_of(next((r.test or r.validation for r in records if r.finished and (r.test or r.validation)), None))


SCORES = ("accuracy", "balanced_accuracy", "roc_auc", "pr_auc", "calibration_error")  # that compact files keep
VALUE_SCORES = tuple(REGRESSION_METRICS)  # of measured values
FoldValue = tuple[int, int, float]  # seed, fold, score


def score_names(headline: str) -> tuple[str, ...]:
    """The scores that a comparison shows: those of the kind of target with this headline.

    >>> score_names("rmse")
    ('rmse', 'mae', 'r2', 'pearson', 'spearman')
    """
    return (*SCORES, "mcc", "f1") if headline in METRICS else VALUE_SCORES


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """Training runs that differ only in seed and fold; a number is None if it cannot be computed.

    Args:
        mean: Of the score over all finished training runs.
        over_seeds: Deviation of the means of the seeds with all folds finished (the paper's ±), with n − 1.
        over_folds: Deviation of the folds of one seed, averaged over the seeds, with n − 1.
        seeds: How many have a finished fold.
        folds: Finished training runs.
        failed: Failed training runs.
        validation: Mean validation score.
        scores: Mean of every test score over the folds for which it is defined.
        tasks: The same for every task, if there are several.
        seconds: Mean time of a run.
        values: The score of every finished run.
    """

    mean: float | None
    over_seeds: float | None
    over_folds: float | None
    seeds: int
    folds: int
    failed: int
    validation: float | None
    scores: dict[str, float | None]
    tasks: dict[str, dict[str, float | None]] | None
    seconds: float | None
    values: tuple[FoldValue, ...]


def summarise(records: Sequence[RunRecord], folds: int, metric: str = "test") -> RunSummary:
    """Summarise the scores of training runs.

    Args:
        records: In the order of seeds and folds.
        folds: How many a seed has when it is complete.
        metric: "test" or "validation", the part whose score is summarised.
    """
    finished = [r for r in records if r.finished]
    values = fold_values(finished, metric)
    score = headline_of_records(finished)
    seeds = by_seed(values)
    within = [float(np.std(v, ddof=1)) for v in seeds.values() if len(v) > 1]
    means = [float(np.mean(v)) for v in complete(seeds, folds).values()]
    tests = [r.test for r in finished if r.test is not None]
    return RunSummary(
        mean=mean_of([value for _, _, value in values]),
        over_seeds=float(np.std(means, ddof=1)) if len(means) > 1 else None,
        over_folds=mean_of(within),
        seeds=len(seeds),
        folds=len(finished),
        failed=len(records) - len(finished),
        validation=mean_of([score.of(r.validation) for r in finished]),
        scores={name: mean_of([test.get(name) for test in tests]) for name in score_names(score.name)},
        tasks=task_means([test.get("tasks") for test in tests]),
        seconds=mean_of([r.seconds for r in finished]),
        values=values,
    )


def fold_values(records: Iterable[RunRecord], metric: str = "test") -> tuple[FoldValue, ...]:
    """Seed, fold and score of every training run that has one: accuracy, or the headline of the kind of target."""
    values = []
    for record in records:
        scores = record.test if metric == "test" else record.validation
        value = headline_of(scores).of(scores)
        if value is not None:
            values.append((record.run.seed, record.run.fold, value))
    return tuple(values)


def by_seed(values: Iterable[FoldValue]) -> dict[int, list[float]]:
    """The scores of every seed.

    >>> by_seed([(1, 0, 0.5), (1, 1, 0.75), (2, 0, 0.25)])
    {1: [0.5, 0.75], 2: [0.25]}
    """
    seeds: dict[int, list[float]] = {}
    for seed, _, value in values:
        seeds.setdefault(seed, []).append(value)
    return seeds


def complete(seeds: Mapping[int, list[float]], folds: int) -> dict[int, list[float]]:
    """The seeds with all folds finished; a partial seed would add the deviation of its folds."""
    return {seed: values for seed, values in seeds.items() if len(values) == folds}


def paired_tests(values: Mapping[str, Sequence[FoldValue]], reference: str, folds: int) -> dict[str, dict[str, Any]]:
    """Every row against the reference on the seeds and folds that both have, with Holm's adjustment.

    Returns:
        Row → PairedTest as plain data with "p_holm"; its difference is the row − the reference.
    """
    first = {(seed, fold): value for seed, fold, value in values[reference]}
    tests = {}
    for row, series in values.items():
        if row == reference:
            continue
        second = {(seed, fold): value for seed, fold, value in series}
        both = [key for key in first if key in second]
        tests[row] = paired_test([second[k] for k in both], [first[k] for k in both], test_share=test_share(folds))
    tested = {row: t.p_corrected_t for row, t in tests.items() if t.p_corrected_t is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {row: t.to_dict() | {"p_holm": adjusted.get(row)} for row, t in tests.items()}


def task_means(folds: Sequence[Mapping[str, Mapping[str, Any]] | None]) -> dict[str, dict[str, float | None]] | None:
    """The mean of every score of every task over the folds; None if there are no several tasks.

    >>> task_means([{"a": {"rmse": 1.0}, "b": {"rmse": 2.0}}, {"a": {"rmse": 3.0}, "b": {"rmse": None}}])
    {'a': {'rmse': 2.0}, 'b': {'rmse': 2.0}}
    """
    known = [tasks for tasks in folds if tasks and len(tasks) > 1]
    if not known:
        return None
    names = {task: [name for name in scores if name in ALL_METRICS] for task, scores in known[0].items()}
    return {
        task: {name: mean_of([tasks.get(task, {}).get(name) for tasks in known]) for name in of_task}
        for task, of_task in names.items()
    }


def mean_of(values: Sequence[Any]) -> float | None:
    """The mean of the values that are not None, if there are any."""
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None
