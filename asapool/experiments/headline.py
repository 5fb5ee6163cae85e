"""The score that a table compares: accuracy of classes, RMSE of measured values, ROC-AUC of yes/no tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from asapool.training.metrics import METRICS
from asapool.training.selection import ALL_METRICS

if TYPE_CHECKING:
    from asapool.experiments.record import RunRecord

USUAL = "accuracy"  # of classes, and of folders without trainings


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
    return Headline(name, metric.label, metric.greater, 100.0 if name in METRICS else 1.0)


def headline_of(scores: Mapping[str, Any] | None) -> Headline:
    """The headline of a record's scores; those without a kind are of classes."""
    from asapool.training.tasks import TASKS

    kind = (scores or {}).get("kind", "classification")
    return headline_named(TASKS[kind].headline)


def headline_of_records(records: Iterable[RunRecord]) -> Headline:
    """The headline of some trainings of one data set."""
    return headline_of(next((r.test or r.validation for r in records if r.finished and (r.test or r.validation)), None))
