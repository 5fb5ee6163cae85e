"""The task of regression: one or several measured values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from asapool.data.targets import Target
from asapool.errors import ConfigError, DataError
from asapool.training.assessment import against_mean
from asapool.training.regression_metrics import REGRESSION_METRICS
from asapool.training.task import Floats, Ints, Task, Values, masked_loss
from asapool.training.task_scores import Part

if TYPE_CHECKING:
    from torch import Tensor

    from asapool.data import GraphSet
    from asapool.training.config import TrainConfig
    from asapool.training.losses import Loss


class Regression(Task):
    """One or several measured values."""

    kind = "regression"
    metrics = REGRESSION_METRICS
    headline = "rmse"
    shown = tuple(REGRESSION_METRICS)
    fitting = "rmse"
    alike = "equal values"
    probabilities = False

    def scaled(self, target: Target, y: Values, where: str) -> Target:
        """Mean and standard deviation of the training values; 1 where they are all equal."""
        with np.errstate(all="ignore"):
            mean = [float(np.mean(column[~np.isnan(column)])) if (~np.isnan(column)).any() else 0.0 for column in y.T]
            scale = [float(np.std(column[~np.isnan(column)])) if (~np.isnan(column)).any() else 1.0 for column in y.T]
            scale = [1.0 if s <= 1e-12 * abs(m) or s == 0 else s for s, m in zip(scale, mean, strict=True)]
        for t, name in enumerate(target.names):
            if not np.isfinite([mean[t], scale[t]]).all():
                raise self._too_large(where, name)
        return replace(target, mean=tuple(mean), scale=tuple(scale))

    def answers(self, outputs: Tensor, target: Target) -> Tensor:
        """outputs · scale + mean."""
        return outputs * outputs.new_tensor(target.scale) + outputs.new_tensor(target.mean)

    def loss(self, graphs: GraphSet, train: Ints, target: Target, config: TrainConfig, weight: Tensor | None) -> Loss:
        """Masked squared error, or Huber's loss, of the scaled values."""
        from asapool.training.losses import huber, squared_error

        if config.weighted:
            raise ConfigError("train.class_weights is for classes, and the target is measured values. Leave it out")
        with np.errstate(over="ignore"):
            z = (graphs.y - np.array(target.mean)) / np.array(target.scale)
        for t, name in enumerate(target.names):
            if (np.abs(z[:, t]) > np.finfo(np.float32).max).any():  # NaN, a missing value, is not
                raise self._too_large(graphs.name, name)
        each = huber if config.loss == "huber" else squared_error
        return masked_loss(each, z, np.ones_like(z), target, config, weight, 0.0)

    def default_rule(self, y: Values, weighted: bool) -> str:
        """RMSE; of several tasks, whose units differ, the loss."""
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
    errors_lead = "The test graphs whose predicted value is farthest from the measured one, and what decided it."

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
        return f"{target.names[k]} = {p[k]:.4g} {target.units[k]}".strip()

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
        """Values, NaN where missing."""
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
            held = counts.setdefault(name, {"mean": 0.0, "min": np.inf, "max": -np.inf})
            held["mean"] = float((held["mean"] * graphs + column.sum()) / (graphs + len(column)))
            held["min"], held["max"] = min(held["min"], float(column.min())), max(held["max"], float(column.max()))

    def describe(self, counts: Mapping[str, Any], graphs: int) -> str:
        """Mean and range of every task."""
        return "; ".join(
            f"{name}: mean {v['mean']:.4g}, {v['min']:.4g} to {v['max']:.4g}" for name, v in counts.items()
        )

    def _too_large(self, where: str, name: str) -> DataError:
        return DataError(
            f"{where}: the values of {name!r} cannot be scaled to mean 0 and deviation 1, because some are too large "
            "or too small for floating-point numbers. Use another unit, or logarithms"
        )
