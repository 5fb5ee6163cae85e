"""TASKS: everything that depends on the kind of target, in one table that training, scores and files iterate over.

kind             outputs      answers                     loss                          trivial answer
classification   (G, C)       softmax                     cross entropy                 class shares
regression       (G, T)       outputs · scale + mean      squared error or Huber        mean
multilabel       (G, T)       sigmoid                     binary cross entropy          share of yes

To add a kind of target: a subclass of Task, an entry of TASKS, and its name in asapool.data.targets.KINDS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.data.targets import Target
from asapool.errors import ConfigError, DataError
from asapool.training.assessment import against_mean, against_shares, against_trivial, warnings_for
from asapool.training.metrics import METRICS, score
from asapool.training.regression_metrics import REGRESSION_METRICS
from asapool.training.task import Floats, Ints, Parts, Task, Values
from asapool.training.task_scores import Part

if TYPE_CHECKING:
    from torch import Tensor

    from asapool.data import GraphSet
    from asapool.training.config import TrainConfig
    from asapool.training.losses import Loss

UNEVEN = 3  # classes are far from even where the largest has at least this many times the graphs of the smallest


class Classification(Task):
    """One of C classes."""

    kind = "classification"
    metrics = METRICS
    headline = "accuracy"
    shown = ("accuracy", "balanced_accuracy", "roc_auc", "pr_auc", "calibration_error")
    fitting = "log_loss"
    rules = ("loss", "paper")
    column = "class"

    def answers(self, outputs: Tensor, target: Target) -> Tensor:
        """p = softmax(outputs)."""
        return outputs.softmax(dim=1)

    def loss(self, graphs: GraphSet, train: Ints, target: Target, config: TrainConfig, weight: Tensor | None) -> Loss:
        """Weighted cross entropy."""
        from asapool.training.losses import CrossEntropy

        refuse_task_weights(config, target)
        return CrossEntropy(self._class_weights(graphs, train, config), weight, config.label_smoothing)

    def graph_weights(self, graphs: GraphSet, train: Ints, config: TrainConfig) -> Floats | None:
        """The weight of each graph's class."""
        by_class = self._class_weights(graphs, train, config)
        return None if by_class is None else by_class.double().numpy()[graphs.y[train]]

    def default_rule(self, y: Values, weighted: bool) -> str:
        """The paper's rule, or ROC-AUC where classes are weighted or far from even.

        There accuracy prefers a model that answers with the largest class.
        """
        count = np.unique(y, return_counts=True)[1]
        uneven = len(count) > 0 and count.max() >= UNEVEN * count.min()
        return "roc_auc" if weighted or uneven else "paper"

    def parts(self, y: Values, p: Values, target: Target) -> list[Part]:
        """One task."""
        rows = np.flatnonzero(y >= 0)
        return [Part(target.names[0], rows, y[rows], p[rows])]

    def score(self, y: Values, p: Values, target: Target) -> dict[str, Any]:
        """Scores as plain data."""
        return score(y, p, target.classes).to_dict()

    def trivial(self, y: Values, target: Target) -> Floats:
        """The class shares, of which the most frequent class is the answer."""
        count = np.bincount(y[y >= 0], minlength=target.outputs).astype(np.float64)
        shares: Floats = count / max(count.sum(), 1)
        return shares

    def trivial_scores(self, y: Values, split: Parts, target: Target) -> dict[str, Any]:
        """Nothing: the confusion matrix has it."""
        return {}

    def test(self, y: Values, p: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """McNemar's and Mann-Whitney's tests."""
        return against_trivial(y, p, int(trivial.argmax()))

    def warnings(self, y: Values, p: Values, target: Target, part: str, trivial: dict[str, Any]) -> list[str]:
        """One class only, one answer only, no better than the most frequent class."""
        return warnings_for(y, p, target.classes, part, trivial)

    def extras(self, y: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """The most frequent class of the training graphs, as 0.1.0 wrote it."""
        common = int(trivial.argmax())
        right = float((y == common).mean()) if len(y) else None
        return {"majority_class": {"class": target.classes[common], "test_accuracy": right}}

    def predicted(self, p: Values, target: Target) -> Values:
        """The most probable class."""
        names: npt.NDArray[np.str_] = np.array(target.classes)[p.argmax(axis=1)]
        return names

    def columns(self, p: Values, target: Target) -> dict[str, Sequence[Any]]:
        """The most probable class and the probability of every class."""
        answers = [target.classes[k] for k in p.argmax(axis=1).tolist()]
        return {"predicted": answers} | {f"p({name})": column for name, column in zip(target.classes, p.T, strict=True)}

    def labels(self, y: Values, target: Target) -> dict[str, list[str]]:
        """The class."""
        return {"label": [target.classes[k] if k >= 0 else "" for k in y.tolist()]}

    def count(self, counts: dict[str, Any], graphs: int, p: Values, target: Target) -> None:
        """Graphs of every class."""
        for name, number in zip(target.classes, np.bincount(p.argmax(axis=1), minlength=p.shape[1]), strict=True):
            counts[name] = counts.get(name, 0) + int(number)

    def _class_weights(self, graphs: GraphSet, train: Ints, config: TrainConfig) -> Tensor | None:
        """The weight of every class, (C,); None = all the same."""
        import torch

        from asapool.training.losses import class_weights

        given = config.class_weights
        if given == "none":
            return None
        if isinstance(given, str):
            return class_weights(graphs.y[train], graphs.num_classes)
        unknown = [name for name in given if name not in graphs.class_names]
        if unknown:
            known = ", ".join(map(repr, graphs.class_names[:8]))
            raise ConfigError(
                f"train.class_weights: {graphs.name} has no class {unknown[0]!r}. Its classes are {known}"
            )
        return torch.tensor([float(given.get(name, 1.0)) for name in graphs.class_names])


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
        return _masked(each, z, np.ones_like(z), target, config, weight, 0.0)

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
        return _masked(binary_cross_entropy, graphs.y, entries, target, config, weight, config.label_smoothing)

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

    def count(self, counts: dict[str, Any], graphs: int, p: Values, target: Target) -> None:
        """Graphs that are predicted yes, for every task."""
        for name, number in zip(target.names, (p >= 0.5).sum(axis=0).tolist(), strict=True):
            counts[name] = counts.get(name, 0) + int(number)


TASKS: dict[str, Task] = {task.kind: task for task in (Classification(), Regression(), Multilabel())}


def task_of(target: Target | None) -> Task:
    """The entry of a target; None = classification, the only kind of 0.1.0."""
    return TASKS["classification" if target is None else target.kind]


def refuse_task_weights(config: TrainConfig, target: Target) -> None:
    """Refuse weights of tasks that the target does not have."""
    unknown = [name for name in config.task_weights if name not in target.names]
    if unknown:
        known = ", ".join(map(repr, target.names[:8]))
        raise ConfigError(f"train.task_weights: there is no task {unknown[0]!r}. The tasks are {known}")


def _masked(
    each: Any, y: Values, entries: Values, target: Target, config: TrainConfig, weight: Tensor | None, smoothing: float
) -> Loss:
    """A loss over the entries that are there, with the weights of tasks."""
    import torch

    from asapool.training.losses import MaskedLoss

    refuse_task_weights(config, target)
    present = ~np.isnan(y)
    by_task = np.array([float(config.task_weights.get(name, 1.0)) for name in target.names])
    v = torch.from_numpy((np.where(present, entries, 0) * by_task).astype(np.float32))
    values = torch.from_numpy(np.where(present, y, 0).astype(np.float32))
    return MaskedLoss(each, values, v, weight, smoothing)
