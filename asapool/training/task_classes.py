"""The task of classification: one of C classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.data.targets import Target
from asapool.errors import ConfigError
from asapool.training.assessment import against_trivial, warnings_for
from asapool.training.metrics import METRICS, score
from asapool.training.task import EvaluatedParts, Floats, Ints, Task, Values, refuse_task_weights
from asapool.training.task_scores import Part, WrongAnswer, most_confident_errors

if TYPE_CHECKING:
    from torch import Tensor

    from asapool.data import GraphSet
    from asapool.training.config import TrainConfig
    from asapool.training.losses import Loss

UNEVEN = 3  # classes are imbalanced if the largest has at least this many times the graphs of the smallest


class Classification(Task):
    """One of C classes."""

    kind = "classification"
    metrics = METRICS
    headline = "accuracy"
    shown = ("accuracy", "balanced_accuracy", "roc_auc", "pr_auc", "mcc", "f1", "calibration_error")
    fitting = "log_loss"
    baseline = "the most frequent class"
    rules = ("loss", "last", "paper")
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
        """The paper's rule, or ROC-AUC if classes are weighted or imbalanced.

        In that case accuracy favours a model that always predicts the largest class.
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
        """The class shares; the most frequent class is predicted."""
        count = np.bincount(y[y >= 0], minlength=target.outputs).astype(np.float64)
        shares: Floats = count / max(count.sum(), 1)
        return shares

    def trivial_scores(self, y: Values, split: EvaluatedParts, target: Target) -> dict[str, Any]:
        """Nothing, because they follow from the confusion matrix."""
        return {}

    def test(self, y: Values, p: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """McNemar's and Mann-Whitney's tests."""
        return against_trivial(y, p, int(trivial.argmax()))

    def cannot_learn(self, y: Values, target: Target) -> list[str]:
        """Nothing: a training part with one class is refused."""
        return []

    def warnings(self, y: Values, p: Values, target: Target, part: str, trivial: dict[str, Any]) -> list[str]:
        """Only one class, only one predicted class, or no better than the most frequent class."""
        return warnings_for(y, p, target.classes, part, trivial)

    def extras(self, y: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """The most frequent class of the training graphs, as 0.1.0 wrote it."""
        common = int(trivial.argmax())
        right = float((y == common).mean()) if len(y) else None
        return {"majority_class": {"class": target.classes[common], "test_accuracy": right}}

    def errors(self, y: Values, p: Values, target: Target, count: int) -> list[WrongAnswer]:
        """The wrong classes with the highest probability."""
        places = most_confident_errors(y, p, count)
        return [WrongAnswer(k, None, f"{self.shown_answer(p[k], 0, target)}, p = {p[k].max():.3f}") for k in places]

    def explained(self, outputs: Tensor, k: int, target: Target) -> Tensor:
        """The log odds of a class, ln p_k/(1 − p_k) = z_k − ln Σ_{j≠k} e^{z_j}; for a single class, the output."""
        import torch

        others = torch.cat([outputs[:, :k], outputs[:, k + 1 :]], dim=1)
        return outputs[:, k] - others.logsumexp(dim=1) if others.size(1) else outputs[:, k]

    def shown_answer(self, p: Values, k: int, target: Target) -> str:
        """The most probable class."""
        return target.classes[int(p.argmax())]

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

    def read_labels(self, rows: Sequence[Sequence[str]], target: Target) -> Values:
        """Class numbers."""
        return np.array([target.classes.index(row[0]) if row[0] else -1 for row in rows], np.int64)

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
