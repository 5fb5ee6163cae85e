"""Task: what depends on the kind of target, as one interface; asapool.training.tasks has the kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from asapool.data.targets import Target
from asapool.training.assessment import warnings_of_tasks
from asapool.training.metrics import Metric
from asapool.training.task_scores import Part, mean_score, score_tasks

if TYPE_CHECKING:
    from torch import Tensor

    from asapool.data import GraphSet
    from asapool.training.config import TrainConfig
    from asapool.training.losses import Loss


class Parts(Protocol):
    """Which graphs are trained and tested on."""

    @property
    def train(self) -> Any: ...
    @property
    def test(self) -> Any: ...


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Values = npt.NDArray[Any]


class Task:
    """What a kind of target decides.

    Args:
        kind: as in Target.
        metrics: its scores.
        headline: the score that is shown first and that cross-validations compare.
        shown: the scores that commands print.
        rules: what may choose the epoch besides the metrics.
        probabilities: whether the answers are probabilities.
        column: what the column of the values is called.
        alike: what a part has that has nothing to compare.
        fitting: the score that stands for the loss of a model that is not trained by gradient.
    """

    kind: ClassVar[str]
    metrics: ClassVar[Mapping[str, Metric]]
    headline: ClassVar[str]
    shown: ClassVar[tuple[str, ...]]
    fitting: ClassVar[str]
    rules: ClassVar[tuple[str, ...]] = ("loss",)
    alike: ClassVar[str] = "one class"
    column: ClassVar[str] = "target"
    probabilities: ClassVar[bool] = True

    # training

    def scaled(self, target: Target, y: Values, where: str) -> Target:
        """The target with the scale of the training values; only measured values have one."""
        return target

    def answers(self, outputs: Tensor, target: Target) -> Tensor:
        """What the outputs of a model mean, (B, K)."""
        raise NotImplementedError

    def loss(self, graphs: GraphSet, train: Ints, target: Target, config: TrainConfig, weight: Tensor | None) -> Loss:
        """The training loss; weight: of every graph, (G,)."""
        raise NotImplementedError

    def graph_weights(self, graphs: GraphSet, train: Ints, config: TrainConfig) -> Floats | None:
        """How much each training graph counts because of its class, (len(train),); None = all the same."""
        return None

    def default_rule(self, y: Values, weighted: bool) -> str:
        """The score that chooses the epoch where train.select_by is "auto"."""
        raise NotImplementedError

    # scores

    def parts(self, y: Values, p: Values, target: Target) -> list[Part]:
        """The entries of each task that are not missing."""
        raise NotImplementedError

    def mean(self, name: str, y: Values, p: Values, target: Target, w: Ints | None = None) -> float | None:
        """A score, as the mean over the tasks where it is defined."""
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
        """The same answer for every graph that uses the training values only, (K,)."""
        raise NotImplementedError

    def compare(self, y: Values, p: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """A test of whether the model is better than the trivial answer, and the scores of that answer."""
        constant = np.repeat(trivial[None], len(y), axis=0)
        scores = {name: self.mean(name, y, constant, target) for name in self.metrics}
        return self.test(y, p, trivial, target) | {"answer": trivial.tolist(), "scores": scores}

    def trivial_scores(self, y: Values, split: Parts, target: Target) -> dict[str, Any]:
        """The scores of the trivial answer on the test part, as an entry of the scores of that part."""
        trivial = self.trivial(y[split.train], target)
        constant = np.repeat(trivial[None], len(split.test), axis=0)
        return {"trivial": {name: self.mean(name, y[split.test], constant, target) for name in self.metrics}}

    def test(self, y: Values, p: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """The test of compare."""
        raise NotImplementedError

    def warnings(self, y: Values, p: Values, target: Target, part: str, trivial: dict[str, Any]) -> list[str]:
        """What a user should know before trusting the scores of a part."""
        return warnings_of_tasks(self.parts(y, p, target), part, trivial)

    def extras(self, y: Values, trivial: Floats, target: Target) -> dict[str, Any]:
        """Further entries of metrics.json about the test part."""
        return {}

    # predictions

    def predicted(self, p: Values, target: Target) -> Values:
        """The answers in a user's terms: names of classes (G,), values (G,) or (G, T), 0 and 1 (G, T)."""
        raise NotImplementedError

    def columns(self, p: Values, target: Target) -> dict[str, Sequence[Any]]:
        """The columns of a file of predictions, name → values."""
        raise NotImplementedError

    def labels(self, y: Values, target: Target) -> dict[str, list[str]]:
        """The columns of true values of such a file, "" where missing."""
        raise NotImplementedError

    def number(self, value: float) -> str:
        """A number of such a file."""
        return f"{value:.6f}"

    def count(self, counts: dict[str, Any], graphs: int, p: Values, target: Target) -> None:
        """Add predictions to a summary of a file, after that many graphs."""
        raise NotImplementedError

    def describe(self, counts: Mapping[str, Any], graphs: int) -> str:
        """The summary as text."""
        return ", ".join(f"{name}: {count:,}" for name, count in counts.items())
