"""Scores of measured values (RMSE, MAE, R², correlations), and the scores of several tasks with their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asapool.training.metrics import Metric

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]


def rmse(y: Floats, p: Floats, w: Ints | None = None) -> float | None:
    """Root of the mean squared error, √(Σ (y − p)² / G).

    >>> rmse(np.array([1.0, 2.0]), np.array([1.0, 4.0])).__round__(4)
    1.4142
    """
    return float(np.sqrt(np.average((y - p) ** 2, weights=w))) if len(y) else None


def mae(y: Floats, p: Floats, w: Ints | None = None) -> float | None:
    """Mean absolute error, Σ |y − p| / G."""
    return float(np.average(np.abs(y - p), weights=w)) if len(y) else None


def r2(y: Floats, p: Floats, w: Ints | None = None) -> float | None:
    """Share of the variance that is explained, 1 − Σ (y − p)² / Σ (y − ȳ)²; None if all y are equal.

    >>> r2(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    0.5
    """
    if len(y) == 0:
        return None
    spread = float(np.average((y - np.average(y, weights=w)) ** 2, weights=w))
    return 1 - float(np.average((y - p) ** 2, weights=w)) / spread if spread > 0 else None


def pearson(y: Floats, p: Floats, w: Ints | None = None) -> float | None:
    """Correlation of measured and predicted values; None if either are all equal.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])).__round__(4)
    1.0
    """
    if len(y) < 2:
        return None
    a, b = y - np.average(y, weights=w), p - np.average(p, weights=w)
    size = np.sqrt(np.average(a * a, weights=w) * np.average(b * b, weights=w))
    # rounding leaves a little variance even if all numbers are equal
    flat = min(np.abs(a).max() / (np.abs(y).max() or 1), np.abs(b).max() / (np.abs(p).max() or 1)) < 1e-12
    return float(np.clip(np.average(a * b, weights=w) / size, -1, 1)) if size > 0 and not flat else None


def spearman(y: Floats, p: Floats, w: Ints | None = None) -> float | None:
    """Pearson's correlation of the ranks; equal values share their mean rank.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 8.0, 27.0])).__round__(4)
    1.0
    """
    if w is not None:
        y, p = np.repeat(y, w), np.repeat(p, w)
    return pearson(_ranks(y), _ranks(p)) if len(y) > 1 else None


def _ranks(values: Floats) -> npt.NDArray[np.float64]:
    from scipy.stats import rankdata

    ranks: npt.NDArray[np.float64] = rankdata(values)
    return ranks


# the metrics of measured values; METRICS in asapool.training.metrics has those of classes
REGRESSION_METRICS = {
    metric.name: metric
    for metric in (
        Metric(name="rmse", label="RMSE", compute=rmse, greater=False, compares=False, unit=True),
        Metric(name="mae", label="MAE", compute=mae, greater=False, compares=False, unit=True),
        Metric(name="r2", label="R²", compute=r2),
        Metric(name="pearson", label="Pearson r", compute=pearson),
        Metric(name="spearman", label="Spearman ρ", compute=spearman),
    )
}


class Part(NamedTuple):
    """The entries of one task that are not missing.

    Args:
        name: of the task.
        rows: the graphs, as indices into y, (n,).
        y: true values (n,): class numbers, or measured values.
        p: predictions: probabilities (n, C), or values (n,).
    """

    name: str
    rows: Ints
    y: npt.NDArray[Any]
    p: npt.NDArray[Any]


def mean_score(parts: Sequence[Part], metric: Metric, w: Ints | None = None) -> float | None:
    """The mean of a metric over the tasks for which it is defined; w: how often each graph counts, (G,)."""
    values = []
    for part in parts:
        count = None if w is None else w[part.rows]
        if len(part.y) and (count is None or count.any()):
            value = metric.compute(part.y, part.p, count)
            if value is not None:
                values.append(value)
    return sum(values) / len(values) if values else None


def score_tasks(parts: Sequence[Part], metrics: Mapping[str, Metric], graphs: int, kind: str) -> dict[str, Any]:
    """Every metric for each task, and its mean over the tasks.

    Args:
        parts: one per task.
        metrics: the metrics to compute.
        graphs: how many graphs have at least one entry.
        kind: of the target.

    Returns:
        kind, graphs, entries, a number per metric, tasks (name → entries and numbers) and notes: metric → why it is
        None, or which tasks its mean leaves out.
    """
    tasks: dict[str, dict[str, Any]] = {}
    notes: dict[str, str] = {}
    for part in parts:
        values = {name: m.compute(part.y, part.p, None) if len(part.y) else None for name, m in metrics.items()}
        tasks[part.name] = {"entries": len(part.y), **values}
    means = {}
    for name in metrics:
        missing = [part for part in parts if tasks[part.name][name] is None]
        values_of = [tasks[part.name][name] for part in parts if tasks[part.name][name] is not None]
        means[name] = float(np.mean(values_of)) if values_of else None
        if missing and len(parts) == 1:
            notes[name] = why_undefined(missing[0])
        elif missing:
            names = ", ".join(repr(part.name) for part in missing[:5]) + (", …" if len(missing) > 5 else "")
            notes[name] = f"undefined for {len(missing)} of {len(parts)} tasks ({names}): {why_undefined(missing[0])}"
    entries = sum(len(part.y) for part in parts)
    return {"kind": kind, "graphs": graphs, "entries": entries, **means, "tasks": tasks, "notes": notes}


class WrongAnswer(NamedTuple):
    """A wrong prediction.

    Args:
        place: index of the graph.
        output: the task that is wrong; None = the class that was predicted.
        text: a short description.
    """

    place: int
    output: int | None
    text: str


def most_confident_errors(y: Ints, probability: npt.NDArray[Any], count: int) -> list[int]:
    """Indices of the wrong predictions, highest probability first; graphs without a label (y = −1) do not count.

    >>> most_confident_errors(np.array([0, 0, 1, -1]), np.array([[0.4, 0.6], [0.9, 0.1], [0.8, 0.2], [0.0, 1.0]]), 9)
    [2, 0]
    """
    wrong = np.flatnonzero((probability.argmax(axis=1) != y) & (y >= 0))
    order = np.argsort(-probability[wrong].max(axis=1), kind="stable") if len(wrong) else wrong
    places: list[int] = wrong[order][:count].tolist()
    return places


def why_undefined(part: Part) -> str:
    """The reason why a score of a task is undefined."""
    if len(part.y) == 0:
        return f"no graph has a value of {part.name!r}"
    if len(part.y) == 1:
        return f"only one graph has a value of {part.name!r}"
    if len(np.unique(part.y)) == 1:
        return f"all {len(part.y)} values of {part.name!r} are equal"
    return f"the model predicts the same value of {part.name!r} for all graphs"
