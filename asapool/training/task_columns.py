"""The tasks whose labels are columns with missing entries: measured values (regression), and yes/no (multilabel)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from asapool.data.targets import Target
from asapool.errors import ConfigError, DataError
from asapool.training.assessment import against_mean, against_shares
from asapool.training.metrics import METRICS
from asapool.training.task import Floats, Ints, Task, Values, masked_loss
from asapool.training.task_scores import REGRESSION_METRICS, Part

if TYPE_CHECKING:
    from torch import Tensor

    from asapool.data import GraphSet
    from asapool.training.config import TrainConfig
    from asapool.training.losses import Loss


LARGE = 1e30  # larger values, or values that differ by less than 1e-30, come too close to the limits of float32


class Regression(Task):
    """One or several measured values."""

    kind = "regression"
    metrics = REGRESSION_METRICS
    headline = "rmse"
    shown = tuple(REGRESSION_METRICS)
    fitting = "rmse"
    baseline = "the mean value"
    alike = "equal values"
    probabilities = False

    def scaled(self, target: Target, y: Values, where: str) -> Target:
        """Mean and standard deviation of the training values; the latter is 1 if they are all equal."""
        with np.errstate(all="ignore"):
            mean = [float(np.mean(column[~np.isnan(column)])) if (~np.isnan(column)).any() else 0.0 for column in y.T]
            scale = [float(np.std(column[~np.isnan(column)])) if (~np.isnan(column)).any() else 1.0 for column in y.T]
            scale = [1.0 if s <= 1e-12 * abs(m) or s == 0 else s for s, m in zip(scale, mean, strict=True)]
            size = [float(np.max(np.abs(column), where=~np.isnan(column), initial=0)) for column in y.T]
            spread = [float(np.ptp(column[~np.isnan(column)])) if (~np.isnan(column)).any() else 0.0 for column in y.T]
        for t, name in enumerate(target.names):
            if not (size[t] <= LARGE and np.isfinite(scale[t])) or 0 < spread[t] < 1 / LARGE:
                raise self._too_large(where, name)
        return replace(target, mean=tuple(mean), scale=tuple(scale))

    def answers(self, outputs: Tensor, target: Target) -> Tensor:
        """outputs · scale + mean."""
        return outputs * outputs.new_tensor(target.scale) + outputs.new_tensor(target.mean)

    def loss(self, graphs: GraphSet, train: Ints, target: Target, config: TrainConfig, weight: Tensor | None) -> Loss:
        """Masked squared error, or Huber's loss, of the scaled values."""
        from asapool.training.losses import huber, squared_error

        if config.weighted:
            raise ConfigError("train.class_weights is for classes, but the target is measured values. Leave it out")
        with np.errstate(over="ignore"):
            z = (graphs.y - np.array(target.mean)) / np.array(target.scale)
        for t, name in enumerate(target.names):
            if (np.abs(z[:, t]) > LARGE).any():  # False for NaN, a missing value
                raise self._too_large(graphs.name, name)
        each = huber if config.loss == "huber" else squared_error
        return masked_loss(each, z, np.ones_like(z), target, config, weight, 0.0)

    def default_rule(self, y: Values, weighted: bool) -> str:
        """RMSE; for several tasks, whose units differ, the loss."""
        return "rmse" if y.shape[1] == 1 else "loss"

    def parts(self, y: Values, p: Values, target: Target) -> list[Part]:
        """The measured values of each task."""
        rows = [np.flatnonzero(~np.isnan(column)) for column in y.T]
        return [Part(name, r, y[r, t], p[r, t]) for t, (name, r) in enumerate(zip(target.names, rows, strict=True))]

    def trivial(self, y: Values, target: Target) -> Floats:
        """The mean of each task."""
        present = ~np.isnan(y)
        means: Floats = np.where(present, y, 0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        return means

    def test(self, y: Values, p: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """Wilcoxon's test of the squared errors."""
        return against_mean(self.parts(y, p, target), trivial)

    errors_title = "Largest errors"
    errors_lead = "The test graphs with the largest difference between predicted and measured value, explained."

    def error_size(self, part: Part, target: Target) -> Floats:
        """|predicted − measured| in units of the scale."""
        k = target.names.index(part.name)
        size: Floats = np.abs(part.p - part.y) / (target.scale[k] if target.scale else 1.0)
        return size

    def explained(self, outputs: Tensor, k: int, target: Target) -> Tensor:
        """The value in its unit."""
        return self.answers(outputs, target)[:, k]

    def shown_answer(self, p: Values, k: int, target: Target) -> str:
        """The value with its unit."""
        name, unit = target.names[k], target.units[k]  # a column such as logS [mol/l] has its unit in its name
        return f"{name} = {p[k]:.4g} {'' if f'[{unit}]' in name else unit}".strip()

    def predicted(self, p: Values, target: Target) -> Values:
        """The values."""
        return p[:, 0] if target.tasks == 1 else p

    def columns(self, p: Values, target: Target) -> dict[str, Sequence[Any]]:
        """One per task."""
        return {f"predicted({name})": column for name, column in zip(target.names, p.T, strict=True)}

    def labels(self, y: Values, target: Target) -> dict[str, list[str]]:
        """One per task."""
        return {
            f"measured({name})": ["" if np.isnan(v) else repr(v) for v in column]
            for name, column in zip(target.names, y.T.tolist(), strict=True)
        }

    def read_labels(self, rows: Sequence[Sequence[str]], target: Target) -> Values:
        """Values, NaN if missing."""
        values = [[float(cell) if cell else np.nan for cell in row] for row in rows]
        return np.array(values, np.float64).reshape(len(rows), target.tasks)

    def number(self, value: float) -> str:
        """Seven significant digits."""
        return f"{value:.7g}"

    def count(self, counts: dict[str, Any], graphs: int, p: Values, target: Target) -> None:
        """Mean and range of every task."""
        if not len(p):
            return
        for name, column in zip(target.names, p.T, strict=True):
            old = counts.setdefault(name, {"mean": 0.0, "min": np.inf, "max": -np.inf})
            old["mean"] = float((old["mean"] * graphs + column.sum()) / (graphs + len(column)))
            old["min"], old["max"] = min(old["min"], float(column.min())), max(old["max"], float(column.max()))

    def describe(self, counts: Mapping[str, Any], graphs: int) -> str:
        """Mean and range of every task."""
        return "; ".join(
            f"{name}: mean {v['mean']:.4g}, {v['min']:.4g} to {v['max']:.4g}" for name, v in counts.items()
        )

    def _too_large(self, where: str, name: str) -> DataError:
        return DataError(
            f"{where}: the values of {name!r} cannot be scaled to mean 0 and deviation 1, because they are larger than "
            f"{LARGE:g} or differ by less than {1 / LARGE:g}. Use another unit, or logarithms"
        )


class Multilabel(Task):
    """Several yes/no tasks."""

    kind = "multilabel"
    metrics = METRICS
    headline = "roc_auc"
    shown = ("roc_auc", "pr_auc", "balanced_accuracy", "mcc", "f1", "accuracy", "calibration_error")
    fitting = "log_loss"
    baseline = "the share of yes"

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
        """The predictions of each task as probabilities of no and yes."""
        parts = []
        for t, name in enumerate(target.names):
            rows = np.flatnonzero(~np.isnan(y[:, t]))
            parts.append(Part(name, rows, y[rows, t].astype(np.int64), np.stack([1 - p[rows, t], p[rows, t]], axis=1)))
        return parts

    def trivial(self, y: Values, target: Target) -> Floats:
        """The share of yes in each task."""
        present = ~np.isnan(y)
        shares: Floats = (y == 1).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        return shares

    def test(self, y: Values, p: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """Mann-Whitney's test of every task."""
        return against_shares(self.parts(y, p, target))

    def error_size(self, part: Part, target: Target) -> Floats:
        """The probability of the predicted class if it is wrong, else 0."""
        wrong = part.p.argmax(axis=1) != part.y
        size: Floats = np.where(wrong, part.p.max(axis=1), 0.0)
        return size

    def shown_answer(self, p: Values, k: int, target: Target) -> str:
        """The task and its more probable class."""
        return f"{target.names[k]}: {target.classes[int(p[k] >= 0.5)]}"

    def predicted(self, p: Values, target: Target) -> Values:
        """1 if yes is at least as probable as no."""
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
        """0 and 1, NaN if missing."""
        values = [[float(target.classes.index(cell)) if cell else np.nan for cell in row] for row in rows]
        return np.array(values, np.float64).reshape(len(rows), target.tasks)

    def count(self, counts: dict[str, Any], graphs: int, p: Values, target: Target) -> None:
        """The number of graphs predicted as yes, for every task."""
        for name, number in zip(target.names, (p >= 0.5).sum(axis=0).tolist(), strict=True):
            counts[name] = counts.get(name, 0) + int(number)
