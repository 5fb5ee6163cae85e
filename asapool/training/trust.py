"""Trust: the data in a model file from which the uncertainty of predictions is computed.

For every task, the sorted conformal scores and the calibrations of its probabilities, from the validation graphs; and
the embeddings of the training graphs, to detect graphs unlike them. `trust_of` computes it after training,
`Uncertainty` turns it into columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet
from asapool.data.targets import Target
from asapool.errors import CheckpointError, ConfigError, choose
from asapool.models import DirectModel, GraphModel
from asapool.models.checkpoint import LoadedModel
from asapool.training.applicability import UNLIKE, Reference, sample
from asapool.training.calibration import (
    KINDS,
    calibrate,
    check_coverage,
    class_sets,
    conformal_quantile,
    covered,
    fit_calibration,
    is_calibration,
    needed_graphs,
    nonconformity,
    set_texts,
)  # fmt: skip
from asapool.training.embeddings import embed
from asapool.training.predictions import predict
from asapool.training.task_scores import Part
from asapool.training.tasks import task_of

Floats = npt.NDArray[np.float64]
KEY = "trust"  # of LoadedModel.extra
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # coverages that a run measures on its test part


@dataclass(frozen=True, kw_only=True)
class TaskTrust:
    """Uncertainty data of one task.

    Args:
        scores: conformal scores of the validation graphs, sorted.
        calibration: of the probabilities, see asapool.training.calibration; None for values.
    """

    scores: Floats
    calibration: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Uncertainty data of a model.

    Args:
        tasks: one per task of the target.
        references: the training embeddings of the model, or of each member of an ensemble; empty if it has none.
    """

    tasks: tuple[TaskTrust, ...]
    references: tuple[Reference, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a model file."""
        tasks = [{"scores": task.scores.tolist(), "calibration": task.calibration} for task in self.tasks]
        return {"tasks": tasks, "references": [reference.to_dict() for reference in self.references]}

    @classmethod
    def from_dict(cls, values: Any) -> Trust:
        """The trust that to_dict was called on."""
        try:
            tasks = [
                TaskTrust(scores=np.sort(np.asarray(t["scores"], np.float64).reshape(-1)), calibration=t["calibration"])
                for t in values["tasks"]
            ]
            if not all(np.isfinite(task.scores).all() and is_calibration(task.calibration) for task in tasks):
                raise ValueError("a score or a calibration is not a number")
            return cls(tasks=tuple(tasks), references=tuple(map(Reference.from_dict, values["references"])))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the uncertainty data of the model are damaged ({error}). Train again") from None


def trust_of(model: GraphModel, graphs: GraphSet, split: Any) -> dict[str, Any]:
    """The trust of a trained model, as plain data for its file.

    Args:
        model: after training.
        graphs: the whole set.
        split: train and val, lists of graph numbers.
    """
    target = graphs.target if model.target is None else model.target
    answers = predict(model, graphs, split.val) if len(split.val) else np.zeros((0, target.outputs))
    parts = task_of(target).parts(graphs.y[split.val], answers, target)
    return Trust(tasks=trust_in_answers(parts), references=_references(model, graphs, split.train)).to_dict()


def trust_in_answers(parts: Sequence[Part]) -> tuple[TaskTrust, ...]:
    """The uncertainty data from predictions for graphs that the model was not trained on.

    Args:
        parts: the true values and the predictions of each task, from `Task.parts`.
    """
    return tuple(
        TaskTrust(scores=np.sort(nonconformity(part.y, part.p)), calibration=fit_calibration(part.y, part.p))
        for part in parts
    )


def measured_coverage(values: Mapping[str, Any], graphs: GraphSet, indices: Any, model: GraphModel) -> dict[str, Any]:
    """The coverage of conformal sets and intervals on graphs that were not used for calibration.

    Args:
        values: the trust of the model, as plain data.
        graphs: the whole set.
        indices: numbers of the graphs, such as the test part.
        model: the model.

    Returns:
        validation: number of validation graphs of the task with the fewest; levels: for every coverage, the share of
        sets or intervals that contain the truth, `covered`, and the mean number of classes in a set or the mean width
        of an interval, `size` (None if the validation part is too small); `sizes` has that of every task.
    """
    trust = Trust.from_dict(values)
    target = graphs.target if model.target is None else model.target
    parts = task_of(target).parts(graphs.y[indices], predict(model, graphs, indices), target)
    levels = []
    for coverage in LEVELS:
        hits, sizes = [np.zeros(0, bool)], []
        for part, task in zip(parts, trust.tasks, strict=True):
            q = conformal_quantile(task.scores, coverage)
            hits.append(covered(part.y, part.p, q))
            sizes.append(
                2 * q if part.p.ndim == 1 else float(class_sets(part.p, q).sum(axis=1).mean() if len(part.y) else 0)
            )
        joined = np.concatenate(hits)
        size = float(np.mean(sizes))
        levels.append({
            "coverage": coverage, "covered": float(joined.mean()) if len(joined) else None,
            "size": size if math.isfinite(size) else None,
            "sizes": {p.name: s if math.isfinite(s) else None for p, s in zip(parts, sizes, strict=True)},
        })  # fmt: skip
    return {"validation": min(len(task.scores) for task in trust.tasks), "levels": levels}


class Uncertainty:
    """Uncertainty columns: calibrated probabilities, conformal sets or intervals, distance from the training graphs.

    Args:
        trained: the model.
        coverage: of the conformal sets and intervals; None = no such columns.
        calibration: "temperature" or "isotonic".
    """

    def __init__(self, trained: LoadedModel, coverage: float | None = None, calibration: str = "temperature") -> None:
        choose("calibration", calibration, KINDS)
        if coverage is not None:
            check_coverage(coverage)
        if KEY not in trained.extra:
            raise CheckpointError(
                f"{trained.path}: has no uncertainty data, because it was saved by an older version, by "
                "checkpoint.save, or by an estimator after a warm start. Train it again with asapool train --val 0.1, "
                "or with an estimator with validation_fraction=0.1"
            )
        self.trained, self.coverage, self.calibration = trained, coverage, calibration
        self.trust = Trust.from_dict(trained.extra[KEY])
        if len(self.trust.tasks) != trained.target.tasks:
            tasks = len(self.trust.tasks)
            raise CheckpointError(f"{trained.path}: has uncertainty data for {tasks} tasks only. Train again")
        if coverage is not None and all(len(task.scores) == 0 for task in self.trust.tasks):
            raise ConfigError(
                f"{trained.path}: was trained without validation graphs, which conformal prediction needs. "
                "Train again with a validation part (--val 0.1, or validation_fraction=0.1 of an estimator)"
            )

    @cached_property
    def quantiles(self) -> list[float]:
        """The conformal quantile of every task."""
        assert self.coverage is not None
        return [conformal_quantile(task.scores, self.coverage) for task in self.trust.tasks]

    def notes(self) -> list[str]:
        """What a user should know about the columns."""
        if self.coverage is None:
            return []
        short = [
            f"{name!r} ({len(task.scores)})"
            for name, task, q in zip(self.trained.target.names, self.trust.tasks, self.quantiles, strict=True)
            if math.isinf(q)
        ]
        if not short:
            return []
        need = needed_graphs(self.coverage)
        return [
            f"a coverage of {self.coverage:g} needs {need} validation graphs; sets or intervals of tasks with fewer "
            f"contain everything: {', '.join(short)}"
        ]

    @property
    def reads_vectors(self) -> bool:
        """Whether a column is computed from the embeddings of the graphs."""
        return bool(self.trust.references)

    def columns(self, p: Floats, vectors: npt.NDArray[np.float32] | None) -> dict[str, Any]:
        """Names and values of the columns for predicted graphs.

        Args:
            p: their predictions, (G, K).
            vectors: their embeddings (G, W), from predict_with_vectors; None = without the distance.
        """
        target, columns = self.trained.target, dict[str, Any]()
        views = answers_of_tasks(p, target)
        calibrated = [
            None if view.ndim == 1 else calibrate(task.calibration, view, self.calibration)
            for view, task in zip(views, self.trust.tasks, strict=True)
        ]
        if calibrated[0] is not None:
            # yes/no tasks have one output, the probability of yes; classes have one each
            several = target.outputs == len(views)
            table = np.stack([q[:, 1] for q in calibrated if q is not None], axis=1) if several else calibrated[0]
            columns |= {f"calibrated({name})": c for name, c in zip(target.output_names, table.T, strict=True)}
        if self.coverage is not None:
            for name, view, q in zip(target.names, views, self.quantiles, strict=True):
                columns |= _conformal(view, q, target, name)
        if vectors is not None and self.trust.references:
            quantile = self.distance_quantile(vectors)
            columns["distance_quantile"] = quantile
            columns["unlike_training"] = ["yes" if far else "no" for far in (quantile > UNLIKE).tolist()]
        return columns

    def distance_quantile(self, vectors: npt.NDArray[np.float32]) -> Floats:
        """The share of training graphs closer to the training set than each graph, mean over members, (G,)."""
        start, quantiles = 0, []
        for reference in self.trust.references:
            width = len(reference.mean)
            quantiles.append(reference.quantile(vectors[:, start : start + width]))
            start += width
        mean: Floats = np.mean(quantiles, axis=0)
        return mean


def answers_of_tasks(p: Floats, target: Target) -> list[Floats]:
    """The predictions of each task: probabilities of all classes (G, C), or values (G,)."""
    empty = np.zeros(len(p), np.int64) if target.tasks == 1 and target.outputs > 1 else np.zeros((len(p), target.tasks))
    return [part.p for part in task_of(target).parts(empty, p, target)]


def _conformal(view: Floats, q: float, target: Target, name: str) -> dict[str, Any]:
    """The conformal sets or intervals of one task."""
    if view.ndim == 1:
        return {f"lower({name})": view - q, f"upper({name})": view + q}
    label = "set" if target.outputs != target.tasks else f"set({name})"
    return {label: set_texts(class_sets(view, q), target.classes)}


def _references(model: GraphModel, graphs: GraphSet, train: Any) -> tuple[Reference, ...]:
    """The embeddings of the training graphs, or of a sample of many; empty for a model without any."""
    if isinstance(model, DirectModel) or type(model).embed is GraphModel.embed or not len(train):
        return ()
    chosen = np.asarray(train)[sample(len(train))]  # a million embeddings would not fit into memory
    reference = Reference.fit(embed(model, graphs, chosen))
    return () if reference is None else (reference,)
