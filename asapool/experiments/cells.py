"""TableCell: one cell of a table, and its numbers as they are shown (shares in percent)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from asapool.experiments import paper
from asapool.experiments.summary import USUAL, FoldValue, by_seed, complete, factor_of


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """One cell; a number is None if it cannot be computed.

    Args:
        row: Name of the row.
        column: Name of the data set.
        mean: Mean score over all finished training runs; shares are in percent, here and below.
        over_seeds: Deviation of the means of the complete seeds (the paper's ±).
        over_folds: Deviation of the folds of one seed, averaged over the seeds.
        seeds: Number of seeds with at least one finished fold.
        folds: Finished training runs, over all seeds.
        failed: Failed training runs.
        expected: All training runs of the cell.
        paper: The paper's number.
        difference: Ours − the paper's; only over complete seeds, as soon as there is one.
        verdict: Whether ours lies within the paper's mean ± its deviation; None if this cannot be decided.
        chosen: In a plan that chooses: the best of its column on validation.
        validation: Mean validation accuracy.
        test: Test accuracy of the chosen cell.
        test_over_seeds: Its deviation over seeds.
        against: Paired test against the table's reference row.
        against_trivial: Paired test against the trivial baseline; only for comparisons, like all up to seconds.
        scores: Mean of every test score.
        undefined: Score without a mean → the reason, that of the first fold.
        intervals: Score → 95 % bootstrap interval of its mean, over graphs; None before all training runs are done.
        tasks: Task → scores, and their intervals under "intervals", if there are several tasks.
        seconds: Mean time of a training run.
        values: Seed, fold and accuracy of every finished training run, in the order of the plan.
        runs: Their keys.
        settings: Of model and train.
        score: Name of the score, "accuracy" for classes.
    """

    row: str
    column: str
    mean: float | None = None
    over_seeds: float | None = None
    over_folds: float | None = None
    seeds: int = 0
    folds: int = 0
    failed: int = 0
    expected: int
    paper: paper.PaperNumber | None = None
    difference: float | None = None
    verdict: Literal["within", "outside"] | None = None
    chosen: bool = False
    validation: float | None = None
    test: float | None = None
    test_over_seeds: float | None = None
    against: dict[str, Any] | None = None
    against_trivial: dict[str, Any] | None = None
    scores: dict[str, float | None] | None = None
    undefined: dict[str, str] | None = None
    intervals: dict[str, list[float] | None] | None = None
    tasks: dict[str, dict[str, Any]] | None = None
    seconds: float | None = None
    values: tuple[FoldValue, ...] = ()
    runs: tuple[str, ...] = ()
    settings: dict[str, Any]
    score: str = USUAL

    @property
    def finished(self) -> bool:
        """Whether all training runs are done."""
        return self.folds == self.expected

    def complete_seeds(self, folds: int) -> dict[int, list[float]]:
        """The accuracies of the seeds with all folds finished."""
        return complete(by_seed(self.values), folds)


def shown(value: float | None, factor: float) -> float | None:
    """A share in percent, a measured value as it is."""
    return None if value is None else round(factor * value, 6)


def shown_scores(scores: Mapping[str, float | None]) -> dict[str, float | None]:
    """The scores of a cell by name.

    >>> shown_scores({"accuracy": 0.75, "mcc": 0.5, "rmse": None})
    {'accuracy': 75.0, 'mcc': 0.5, 'rmse': None}
    """
    return {name: shown(value, factor_of(name)) for name, value in scores.items()}


def shown_tasks(tasks: Mapping[str, Mapping[str, float | None]] | None) -> dict[str, dict[str, Any]] | None:
    """The scores of every task."""
    return None if tasks is None else {task: shown_scores(scores) for task, scores in tasks.items()}


def shown_values(values: Iterable[FoldValue], factor: float) -> tuple[FoldValue, ...]:
    """The score of every fold."""
    return tuple((seed, fold, round(factor * value, 6)) for seed, fold, value in values)


def cell_from(plain: Mapping[str, Any]) -> TableCell:
    """The cell of a table read from JSON."""
    number = plain["paper"]
    changed = {
        "paper": None if number is None else paper.PaperNumber(number["mean"], number["deviation"], number["other"]),
        "values": tuple((seed, fold, value) for seed, fold, value in plain["values"]),
        "runs": tuple(plain["runs"]),
    }
    return TableCell(**{**plain, **changed})
