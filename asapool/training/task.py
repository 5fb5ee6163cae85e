"""Task: the interface for everything that depends on the kind of target; asapool.training.tasks lists the kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from asapool.data.targets import Target
from asapool.errors import ConfigError
from asapool.training.assessment import constant_tasks, warnings_of_tasks
from asapool.training.metrics import Metric
from asapool.training.task_scores import Part, WrongAnswer, mean_score, score_tasks

if TYPE_CHECKING:
    from torch import Tensor

    from asapool.data import GraphSet
    from asapool.training.config import TrainConfig
    from asapool.training.losses import Loss


class EvaluatedParts(Protocol):
    """The training and test graphs."""

    @property
    def train(self) -> Any: ...
    @property
    def test(self) -> Any: ...


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Values = npt.NDArray[Any]


class Task:
    """Everything that depends on the kind of target.

    Args:
        kind: as in Target.
        metrics: its scores.
        headline: the score that is shown first and that cross-validations compare.
        shown: the scores that commands print.
        rules: what may choose the epoch besides the metrics.
        probabilities: whether the predictions are probabilities.
        baseline: what the trivial baseline predicts.
        column: the name of the label column in messages.
        alike: describes a part in which there is nothing to compare.
        fitting: the score reported as the loss of a model that is not trained by gradient descent.
    """

    kind: ClassVar[str]
    metrics: ClassVar[Mapping[str, Metric]]
    headline: ClassVar[str]
    shown: ClassVar[tuple[str, ...]]
    fitting: ClassVar[str]
    baseline: ClassVar[str]
    rules: ClassVar[tuple[str, ...]] = ("loss", "last")
    alike: ClassVar[str] = "one class"
    column: ClassVar[str] = "target"
    probabilities: ClassVar[bool] = True

    # training

    def scaled(self, target: Target, y: Values, where: str) -> Target:
        """The target with the scale of the training values; only measured values have one."""
        return target

    def answers(self, outputs: Tensor, target: Target) -> Tensor:
        """The predictions from the outputs of a model, (B, K)."""
        raise NotImplementedError

    def loss(self, graphs: GraphSet, train: Ints, target: Target, config: TrainConfig, weight: Tensor | None) -> Loss:
        """The training loss; weight: of every graph, (G,)."""
        raise NotImplementedError

    def graph_weights(self, graphs: GraphSet, train: Ints, config: TrainConfig) -> Floats | None:
        """How much each training graph counts because of its class, (len(train),); None = all the same."""
        return None

    def default_rule(self, y: Values, weighted: bool) -> str:
        """The score that chooses the epoch if train.select_by is "auto"."""
        raise NotImplementedError

    # scores

    def parts(self, y: Values, p: Values, target: Target) -> list[Part]:
        """The entries of each task that are not missing."""
        raise NotImplementedError

    def mean(self, name: str, y: Values, p: Values, target: Target, w: Ints | None = None) -> float | None:
        """The mean of a score over the tasks for which it is defined."""
        return mean_score(self.parts(y, p, target), self.metrics[name], w)

    def defined(self, name: str, y: Values, target: Target) -> bool:
        """Whether a score can be computed from these true values."""
        empty = np.zeros((len(y), target.outputs))
        parts = self.parts(y, empty, target)
        return not self.metrics[name].compares or any(len(np.unique(part.y)) > 1 for part in parts)

    def score(self, y: Values, p: Values, target: Target) -> dict[str, Any]:
        """All scores, as plain data."""
        labelled = int((~np.isnan(y)).any(axis=1).sum())
        return score_tasks(self.parts(y, p, target), self.metrics, labelled, self.kind)

    def trivial(self, y: Values, target: Target) -> Floats:
        """The trivial prediction, computed from the training values alone and the same for every graph, (K,)."""
        raise NotImplementedError

    def compare(self, y: Values, p: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """A test of whether the model is better than the trivial baseline, and the scores of the baseline."""
        scores, of_tasks = self._constant_scores(y, trivial, target)
        more = {"scores_of_tasks": of_tasks} if len(of_tasks) > 1 else {}
        return self.test(y, p, trivial, target) | {"answer": trivial.tolist(), "scores": scores} | more

    def trivial_scores(self, y: Values, split: EvaluatedParts, target: Target) -> dict[str, Any]:
        """The scores of the trivial baseline on the test part, as entries of the scores of that part."""
        scores, of_tasks = self._constant_scores(y[split.test], self.trivial(y[split.train], target), target)
        return {"trivial": scores} | ({"trivial_of_tasks": of_tasks} if len(of_tasks) > 1 else {})

    def _constant_scores(
        self, y: Values, trivial: Floats, target: Target
    ) -> tuple[dict[str, float | None], dict[str, dict[str, float | None]]]:
        """The scores of predicting the same for every graph: means over the tasks, and those of each task."""
        parts = self.parts(y, np.repeat(trivial[None], len(y), axis=0), target)
        scores = {name: mean_score(parts, metric) for name, metric in self.metrics.items()}
        of_tasks = {part.name: {name: mean_score([part], m) for name, m in self.metrics.items()} for part in parts}
        return scores, of_tasks

    def test(self, y: Values, p: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """The test of compare."""
        raise NotImplementedError

    def warnings(self, y: Values, p: Values, target: Target, part: str, trivial: dict[str, Any]) -> list[str]:
        """What a user should know before trusting the scores of a part."""
        return warnings_of_tasks(self.parts(y, p, target), part, trivial)

    def cannot_learn(self, y: Values, target: Target) -> list[str]:
        """The tasks that the training values y do not allow to learn, a sentence each."""
        return constant_tasks(y, target.names)

    def extras(self, y: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """Further entries of metrics.json about the test part."""
        return {}

    # explanations

    errors_title: ClassVar[str] = "Most confident errors"
    errors_lead: ClassVar[str] = (
        "The wrong predictions with the highest probability, and the nodes and clusters behind them."
    )

    def errors(self, y: Values, p: Values, target: Target, count: int) -> list[WrongAnswer]:
        """The worst errors, at most one per graph."""
        parts = self.parts(y, p, target)
        graph = np.concatenate([part.rows for part in parts])
        task = np.repeat(np.arange(len(parts)), [len(part.y) for part in parts])
        size = np.concatenate([self.error_size(part, target) for part in parts])
        order = [k for k in np.argsort(-size, kind="stable").tolist() if size[k] > 0]
        first: dict[int, int] = {}
        for k in order:
            first.setdefault(int(graph[k]), k)
        return [
            WrongAnswer(g, int(task[k]), self.shown_answer(p[g], int(task[k]), target))
            for g, k in list(first.items())[:count]
        ]

    def error_size(self, part: Part, target: Target) -> Floats:
        """How wrong each entry of a task is, 0 if it is correct; comparable between tasks."""
        raise NotImplementedError

    def explained(self, outputs: Tensor, k: int, target: Target) -> Tensor:
        """The quantity that explanations of output k attribute, (B,): here the log odds of yes, which is the output."""
        return outputs[:, k]

    def shown_answer(self, p: Values, k: int, target: Target) -> str:
        """The prediction for one graph as shown in explanations; p (K,), k the output that is explained."""
        raise NotImplementedError

    # predictions

    def predicted(self, p: Values, target: Target) -> Values:
        """The predictions for the user: names of classes (G,), values (G,) or (G, T), 0 and 1 (G, T)."""
        raise NotImplementedError

    def columns(self, p: Values, target: Target) -> dict[str, Sequence[Any]]:
        """The columns of a file of predictions, name → values."""
        raise NotImplementedError

    def labels(self, y: Values, target: Target) -> dict[str, list[str]]:
        """The columns of true values of such a file, "" for missing ones."""
        raise NotImplementedError

    def read_labels(self, rows: Sequence[Sequence[str]], target: Target) -> Values:
        """The true values written by `labels`, row by row."""
        raise NotImplementedError

    def number(self, value: float) -> str:
        """A number as written to such a file."""
        return f"{value:.6f}"

    def count(self, counts: dict[str, Any], graphs: int, p: Values, target: Target) -> None:
        """Add predictions to the summary of a file that already counts `graphs` graphs."""
        raise NotImplementedError

    def describe(self, counts: Mapping[str, Any], graphs: int) -> str:
        """The summary as text."""
        return ", ".join(f"{name}: {count:,}" for name, count in counts.items())


def refuse_task_weights(config: TrainConfig, target: Target) -> None:
    """Raise ConfigError for weights of unknown tasks."""
    unknown = [name for name in config.task_weights if name not in target.names]
    if unknown:
        known = ", ".join(map(repr, target.names[:8]))
        raise ConfigError(f"train.task_weights: there is no task {unknown[0]!r}. The tasks are {known}")


def masked_loss(
    each: Any, y: Values, entries: Values, target: Target, config: TrainConfig, weight: Tensor | None, smoothing: float
) -> Loss:
    """A loss over the entries that are not missing, with task weights."""
    import torch

    from asapool.training.losses import MaskedLoss

    refuse_task_weights(config, target)
    present = ~np.isnan(y)
    by_task = np.array([float(config.task_weights.get(name, 1.0)) for name in target.names])
    v = torch.from_numpy((np.where(present, entries, 0) * by_task).astype(np.float32))
    values = torch.from_numpy(np.where(present, y, 0).astype(np.float32))
    return MaskedLoss(each, values, v, weight, smoothing)
