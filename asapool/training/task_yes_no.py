"""The task of several yes/no columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asapool.data.targets import Target
from asapool.errors import ConfigError
from asapool.training.assessment import against_shares
from asapool.training.metrics import METRICS
from asapool.training.task import Floats, Ints, Task, Values, masked_loss
from asapool.training.task_scores import Part

if TYPE_CHECKING:
    from torch import Tensor

    from asapool.data import GraphSet
    from asapool.training.config import TrainConfig
    from asapool.training.losses import Loss


class Multilabel(Task):
    """Several yes/no tasks."""

    kind = "multilabel"
    metrics = METRICS
    headline = "roc_auc"
    shown = ("roc_auc", "pr_auc", "balanced_accuracy", "mcc", "f1", "accuracy", "calibration_error")
    fitting = "log_loss"

    def answers(self, outputs: Tensor, target: Target) -> Tensor:
        """p = sigmoid(outputs)."""
        return outputs.sigmoid()

    def loss(self, graphs: GraphSet, train: Ints, target: Target, config: TrainConfig, weight: Tensor | None) -> Loss:
        """Masked binary cross entropy."""
        from asapool.training.losses import binary_cross_entropy

        entries = np.ones_like(graphs.y)
        if config.class_weights == "balanced":
            for t, column in enumerate(graphs.y[train].T):
                count = np.array([(column == 0).sum(), (column == 1).sum()], np.float64)
                by_class = np.divide(count.sum(), 2 * count, out=np.ones(2), where=count > 0)
                entries[:, t] = np.where(graphs.y[:, t] == 1, by_class[1], by_class[0])
        elif isinstance(config.class_weights, Mapping):
            words = dict(zip(target.classes, (0, 1), strict=True)) | {"0": 0, "1": 1}
            unknown = [name for name in config.class_weights if name not in words]
            if unknown:
                raise ConfigError(
                    f"train.class_weights: yes/no tasks have the classes {' and '.join(target.classes)}, "
                    f"got {unknown[0]!r}"
                )
            for name, value in config.class_weights.items():
                entries = np.where(graphs.y == words[name], value, entries)
        return masked_loss(binary_cross_entropy, graphs.y, entries, target, config, weight, config.label_smoothing)

    def default_rule(self, y: Values, weighted: bool) -> str:
        """The mean ROC-AUC."""
        return "roc_auc"

    def parts(self, y: Values, p: Values, target: Target) -> list[Part]:
        """The answers of each task as probabilities of no and yes."""
        parts = []
        for t, name in enumerate(target.names):
            rows = np.flatnonzero(~np.isnan(y[:, t]))
            parts.append(Part(name, rows, y[rows, t].astype(np.int64), np.stack([1 - p[rows, t], p[rows, t]], axis=1)))
        return parts

    def trivial(self, y: Values, target: Target) -> Floats:
        """The share of yes of each task."""
        present = ~np.isnan(y)
        shares: Floats = (y == 1).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        return shares

    def test(self, y: Values, p: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """Mann-Whitney's test of every task."""
        return against_shares(self.parts(y, p, target))

    def error_size(self, part: Part, target: Target) -> Floats:
        """The probability of a wrong answer."""
        wrong = part.p.argmax(axis=1) != part.y
        size: Floats = np.where(wrong, part.p.max(axis=1), 0.0)
        return size

    def shown_answer(self, p: Values, k: int, target: Target) -> str:
        """The task and its more probable answer."""
        return f"{target.names[k]}: {target.classes[int(p[k] >= 0.5)]}"

    def predicted(self, p: Values, target: Target) -> Values:
        """1 where yes is at least as probable as no."""
        answers: Ints = (p >= 0.5).astype(np.int64)
        return answers

    def columns(self, p: Values, target: Target) -> dict[str, Sequence[Any]]:
        """The probability of yes, one per task."""
        return {f"p({name})": column for name, column in zip(target.names, p.T, strict=True)}

    def labels(self, y: Values, target: Target) -> dict[str, list[str]]:
        """The words for no and yes, one column per task."""
        return {
            f"label({name})": ["" if np.isnan(v) else target.classes[int(v)] for v in column]
            for name, column in zip(target.names, y.T.tolist(), strict=True)
        }

    def read_labels(self, rows: Sequence[Sequence[str]], target: Target) -> Values:
        """0 and 1, NaN where missing."""
        values = [[float(target.classes.index(cell)) if cell else np.nan for cell in row] for row in rows]
        return np.array(values, np.float64).reshape(len(rows), target.tasks)

    def count(self, counts: dict[str, Any], graphs: int, p: Values, target: Target) -> None:
        """Graphs that are predicted yes, for every task."""
        for name, number in zip(target.names, (p >= 0.5).sum(axis=0).tolist(), strict=True):
            counts[name] = counts.get(name, 0) + int(number)
