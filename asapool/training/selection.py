"""Which epoch's weights are kept: the one with the best score on the validation part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from asapool.data.targets import Target
from asapool.errors import ConfigError
from asapool.training.metrics import METRICS
from asapool.training.task_scores import REGRESSION_METRICS

if TYPE_CHECKING:
    from asapool.training.task import Task

Values = npt.NDArray[Any]
ALL_METRICS = METRICS | REGRESSION_METRICS
# "paper" is the authors' rule: the first epoch with the highest accuracy. "last" keeps the weights of the last epoch,
# for a schedule that ends with a small learning rate. The others break ties by the loss. "auto" is the default for the
# kind of target, see resolve_rule.
SELECT_BY = ("auto", "paper", "last", "loss", *(name for name in ALL_METRICS if name != "log_loss"))


@dataclass(frozen=True)
class Selection:
    """The rule by which the epoch is chosen.

    Args:
        name: one of SELECT_BY except "auto".
        task: of the target.
        target: what the values mean.
        note: why the rule differs from the requested one, if it does.
    """

    name: str
    task: Task
    target: Target
    note: str | None = None

    @property
    def label(self) -> str:
        """The name of the score in messages."""
        plain = {"paper": "validation accuracy", "loss": "validation loss", "last": "validation loss"}
        return plain.get(self.name) or f"validation {ALL_METRICS[self.name].label}"

    def notes(self, patience: int | None = None, validation: int = 1) -> tuple[str, ...]:
        """For the user: why the rule differs, and that early stopping is off without validation graphs."""
        notes = [] if self.note is None else [self.note]
        if patience is not None and not validation:
            notes.append("early stopping needs validation graphs, and there are none, so all epochs were trained")
        return tuple(notes)

    @classmethod
    def choose(
        cls, select_by: str, task: Task, target: Target, y_train: Values, y_val: Values, weighted: bool = False,
        uneven: bool = False,
    ) -> Selection:  # fmt: skip
        """The rule for these parts.

        Without validation graphs the last epoch is kept. If the validation part has only one class, or equal values,
        the loss replaces a score that compares them. If the validation graphs have different weights (`uneven`), it
        replaces every score: the loss is weighted, scores are not.
        """
        name = resolve_rule(select_by, task, y_train, weighted)
        if not len(y_val):
            return cls("last", task, target)
        if uneven and name not in ("loss", "last"):
            label = "accuracy" if name == "paper" else ALL_METRICS[name].label
            note = f"the graphs have different weights, so the epoch is chosen by the weighted loss, not by {label}"
            return cls("loss", task, target, note)
        if name in task.metrics and not task.defined(name, y_val, target):
            note = f"the validation part has only {task.alike}, so the epoch is chosen by the loss, not by"
            return cls("loss", task, target, f"{note} {ALL_METRICS[name].label}")
        return cls(name, task, target)

    def score(self, y: Values, p: Values, accuracy: float | None, loss: float) -> float:
        """The score of an epoch on the validation part; the metric says whether greater is better."""
        if self.name == "paper" and accuracy is not None:
            return accuracy
        if self.name in ("loss", "last"):
            return loss
        value = self.task.mean(self.name, y, p, self.target)
        return -1.0 if value is None else value  # a correlation with constant predictions is undefined

    def better(self, score: float, loss: float, best_score: float, best_loss: float) -> bool:
        """Whether an epoch is better than the best so far."""
        if self.name == "last":
            return True
        if self.name == "paper":
            return score > best_score
        sign = -1 if self.name == "loss" or not ALL_METRICS[self.name].greater else 1
        return sign * score > sign * best_score or (score == best_score and loss < best_loss)


def resolve_rule(select_by: str, task: Task, y_train: Values, weighted: bool = False) -> str:
    """What "auto" means for these training values; a score that the target does not have is refused.

    >>> import numpy as np
    >>> from asapool.training.tasks import TASKS
    >>> classes = TASKS["classification"]
    >>> resolve_rule("auto", classes, np.array([0, 0, 1])), resolve_rule("auto", classes, np.array([0, 0, 0, 1]))
    ('paper', 'roc_auc')
    """
    if select_by == "auto":
        return task.default_rule(y_train, weighted)
    allowed = (*task.rules, *task.metrics)
    if select_by not in allowed:
        raise ConfigError(
            f"train.select_by = {select_by!r} is not a score of a {task.kind} target. Choose one of "
            f"{', '.join(name for name in allowed if name != 'log_loss')}"
        )
    return select_by
