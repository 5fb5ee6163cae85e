"""Which epoch's weights are kept: the one with the best score on the validation part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.training.metrics import METRICS

Ints = npt.NDArray[np.int64]
UNEVEN = 3  # classes are far from even where the largest has at least this many times the graphs of the smallest
# "paper" is the authors' rule: the highest accuracy, and the first epoch that reached it. The others break ties by the
# loss. "auto" is "paper" where that is sound, see resolve_rule.
SELECT_BY = ("auto", "paper", "loss", *(name for name in METRICS if name != "log_loss"))


@dataclass(frozen=True)
class Selection:
    """The rule by which the epoch is chosen.

    Args:
        name: one of SELECT_BY but "auto".
        note: why it is not the rule that was asked for, if so.
    """

    name: str
    note: str | None = None

    @property
    def label(self) -> str:
        """How messages call the score."""
        plain = {"paper": "validation accuracy", "loss": "validation loss"}
        return plain.get(self.name) or f"validation {METRICS[self.name].label}"

    @classmethod
    def choose(cls, select_by: str, y_train: Ints, y_val: Ints, weighted: bool = False) -> Selection:
        """The rule for these parts; where the validation part has one class, the loss takes the place of a score that
        compares classes.

        >>> Selection.choose("f1", np.array([0, 1]), np.array([1, 1])).name
        'loss'
        """
        name = resolve_rule(select_by, y_train, weighted)
        if name in METRICS and METRICS[name].compares and len(y_val) > 0 and len(np.unique(y_val)) < 2:
            note = "the validation part has one class only, so the epoch is chosen by the loss, not by"
            return cls("loss", f"{note} {METRICS[name].label}")
        return cls(name)

    def score(self, y: Ints, p: npt.NDArray[Any], accuracy: float, loss: float) -> float:
        """The score of an epoch on the validation part, greater or smaller being better as the metric has it."""
        if self.name == "paper":
            return accuracy
        if self.name == "loss":
            return loss
        value = METRICS[self.name].compute(y, p, None)
        return float("nan") if value is None else value

    def better(self, score: float, loss: float, best_score: float, best_loss: float) -> bool:
        """Whether an epoch is better than the best so far.

        >>> Selection("accuracy").better(0.8, 0.5, 0.8, 0.6), Selection("paper").better(0.8, 0.5, 0.8, 0.6)
        (True, False)
        """
        if self.name == "paper":
            return score > best_score
        sign = -1 if self.name == "loss" or not METRICS[self.name].greater else 1
        return sign * score > sign * best_score or (score == best_score and loss < best_loss)


def resolve_rule(select_by: str, y_train: Ints, weighted: bool = False) -> str:
    """What "auto" means for these training labels: the paper's rule, or ROC-AUC where that would not be sound.

    Where classes are weighted or far from even, accuracy prefers a model that answers with the largest class.

    >>> resolve_rule("auto", np.array([0, 0, 1])), resolve_rule("auto", np.array([0, 0, 0, 1]))
    ('paper', 'roc_auc')
    """
    if select_by != "auto":
        return select_by
    count = np.unique(y_train, return_counts=True)[1]
    uneven = len(count) > 0 and count.max() >= UNEVEN * count.min()
    return "roc_auc" if weighted or uneven else "paper"
