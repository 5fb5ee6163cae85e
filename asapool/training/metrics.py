"""Scores of a classifier: one table of metrics, and one record that train, cv, compare, evaluate and reports share.

A score that is undefined for a part of the data (ROC-AUC if only one class occurs) is None, and `notes` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asapool.errors import InputError

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]
BINS = 15  # for the calibration error, as in Guo et al. 2017


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One entry of the table of metrics.

    Args:
        name: key in Scores, in JSON and of train.select_by.
        label: name for tables and pages.
        compute: `compute(y, p, w)` of class numbers (G,), probabilities (G, C) and counts (G,): how often each graph
            occurs, None = once; returns None if the metric is undefined.
        greater: whether greater is better.
        compares: it compares classes, so it is undefined if only one occurs.
        resampled: a bootstrap over graphs gives an interval of it.
        unit: it is in the unit of the target, so it may be of any size.
    """

    name: str
    label: str
    compute: Callable[[npt.NDArray[Any], npt.NDArray[Any], Ints | None], float | None]
    greater: bool = True
    compares: bool = True
    resampled: bool = True
    unit: bool = False

    def text(self, value: float | None) -> str:
        """Four decimals; four digits for large numbers, and for tiny ones in a unit; a dash for None.

        >>> METRICS["mcc"].text(0.5), METRICS["mcc"].text(-8.6e-6), METRICS["mcc"].text(None)
        ('0.5000', '0.0000', '–')
        """
        if value is None:
            return "–"
        tiny = self.unit and 0 < abs(value) < 1e-3
        return f"{value:.4g}" if tiny or abs(value) >= 1e4 else f"{value:z.4f}"


def confusion_matrix(y: Ints, p: Floats, w: Ints | None = None) -> npt.NDArray[np.int64]:
    """Graphs per true class (row) and predicted class (column), (C, C).

    >>> confusion_matrix(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])).tolist()
    [[1, 0], [1, 1]]
    """
    C = p.shape[1]
    counts = np.bincount(y * C + p.argmax(axis=1), weights=w, minlength=C * C)
    return counts.astype(np.int64).reshape(C, C)


def accuracy(y: Ints, p: Floats, w: Ints | None = None) -> float | None:
    """Share of graphs whose most probable class is correct."""
    M = confusion_matrix(y, p, w)
    return float(np.trace(M) / M.sum()) if M.sum() else None


def balanced_accuracy(y: Ints, p: Floats, w: Ints | None = None) -> float | None:
    """Mean over the classes of the accuracy on their graphs (recall)."""
    M = confusion_matrix(y, p, w)
    support = M.sum(axis=1)
    present = np.flatnonzero(support)
    return float((np.diag(M)[present] / support[present]).mean()) if len(present) > 1 else None


def mcc(y: Ints, p: Floats, w: Ints | None = None) -> float | None:
    """Matthews correlation: (s·c − Σ_k t_k a_k) / √((s² − Σ t_k²)(s² − Σ a_k²)); 0 if one class is predicted for all.

    c of s graphs are correct, t_k are of class k, a_k are predicted as k.

    >>> mcc(np.array([0, 0, 1, 1]), np.array([[1, 0], [1, 0], [0, 1], [1, 0.0]])).__round__(4)
    0.5774
    """
    M = confusion_matrix(y, p, w).astype(np.float64)
    t, a, s = M.sum(axis=1), M.sum(axis=0), M.sum()
    if np.count_nonzero(t) < 2:
        return None
    spread = (s * s - (t * t).sum()) * (s * s - (a * a).sum())
    return float((s * np.trace(M) - (t * a).sum()) / np.sqrt(spread)) if spread > 0 else 0.0


def f1(y: Ints, p: Floats, w: Ints | None = None) -> float | None:
    """F1 = 2·TP / (2·TP + FP + FN): for the second class of two, else the mean over the classes that occur."""
    M = confusion_matrix(y, p, w).astype(np.float64)
    t, a, right = M.sum(axis=1), M.sum(axis=0), np.diag(M)
    if np.count_nonzero(t) < 2:
        return None
    chosen = np.array([1]) if len(t) == 2 else np.flatnonzero(t)
    return float((2 * right[chosen] / (t + a)[chosen]).mean())


def log_loss(y: Ints, p: Floats, w: Ints | None = None) -> float | None:
    """Mean of −ln p of the true class; a probability of 0 counts as 1e-12."""
    if len(y) == 0:
        return None
    return float(np.average(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)), weights=w))


def roc_auc(y: Ints, p: Floats, w: Ints | None = None) -> float | None:
    """ROC-AUC: for either class of two; for more, the mean over the classes that occur, each against the rest."""
    return _mean_over_classes(_area_under_roc, y, p, w)


def pr_auc(y: Ints, p: Floats, w: Ints | None = None) -> float | None:
    """Average precision: for the second class of two; for more, the mean over the classes that occur."""
    return _mean_over_classes(_average_precision, y, p, w)


def calibration(y: Ints, p: Floats, w: Ints | None = None) -> float | None:
    """Expected calibration error of the predicted class, see calibration_error."""
    if len(y) == 0:
        return None
    if w is not None:
        y, p = np.repeat(y, w), np.repeat(p, w, axis=0)
    return calibration_error(p.max(axis=1), p.argmax(axis=1) == y)


# the one table of metrics: scores, intervals, train.select_by, tables and pages iterate over it
METRICS = {
    metric.name: metric
    for metric in (
        Metric(name="accuracy", label="accuracy", compute=accuracy, compares=False),
        Metric(name="balanced_accuracy", label="balanced accuracy", compute=balanced_accuracy),
        Metric(name="roc_auc", label="ROC AUC", compute=roc_auc),
        Metric(name="pr_auc", label="PR AUC", compute=pr_auc),
        Metric(name="mcc", label="MCC", compute=mcc),
        Metric(name="f1", label="F1", compute=f1),
        Metric(name="log_loss", label="log loss", compute=log_loss, greater=False, compares=False),
        # no interval: graphs that are drawn twice raise the error, often above that of the graphs themselves
        Metric(
            name="calibration_error",
            label="calibration error",
            compute=calibration,
            greater=False,
            compares=False,
            resampled=False,
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How well predicted probabilities match the labels of G graphs."""

    graphs: int  # graphs with a label
    accuracy: float | None  # share of graphs whose most probable class is correct
    balanced_accuracy: float | None  # mean over the classes of the accuracy on their graphs
    roc_auc: float | None  # for either class of two; for more, the mean over the classes, each against the rest
    pr_auc: float | None  # average precision, for pr_auc_class; for more than two, the mean over the classes
    calibration_error: float | None  # expected difference between confidence and accuracy
    majority: float | None  # accuracy of always predicting the most frequent class of this part
    confusion: list[list[int]]  # (C, C), row = true class, column = predicted class
    class_names: list[str]
    pr_auc_class: str | None = None  # the second of two classes; None = the mean over all
    mcc: float | None = None  # Matthews correlation coefficient
    f1: float | None = None  # for pr_auc_class; for more than two, the mean over the classes
    log_loss: float | None = None  # mean of −ln p of the true class
    notes: dict[str, str] = field(default_factory=dict)  # name of a score that is None or partial -> reason

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def score(y: npt.ArrayLike, probability: npt.ArrayLike, class_names: Sequence[str]) -> Scores:
    """Compute all scores; graphs without a label (y = -1) are left out.

    Args:
        y: class numbers, (G,).
        probability: (G, C), rows sum to 1.
        class_names: of the C classes.

    Returns:
        The scores; one that is undefined is None, and `notes` has the reason.

    >>> s = score([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], ["no", "yes"])
    >>> s.confusion, s.balanced_accuracy, s.roc_auc, s.pr_auc_class
    ([[1, 0], [1, 1]], 0.75, 1.0, 'yes')
    >>> score([1, 1], [[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]).notes["roc_auc"]
    "all 2 graphs are of class 'yes', but the score compares classes"
    """
    truth, p, C = np.asarray(y, np.int64), np.asarray(probability, np.float64), len(class_names)
    if p.ndim != 2 or p.shape != (len(truth), C):
        raise InputError(f"probability must have shape ({len(truth)}, {C}), graphs by classes, got {p.shape}")
    truth, p = truth[truth >= 0], p[truth >= 0]
    G = len(truth)
    named: dict[str, Any] = {"class_names": list(class_names), "pr_auc_class": class_names[1] if C == 2 else None}
    confusion = np.zeros((C, C), np.int64)
    if G == 0:
        nothing = dict.fromkeys(_NAMES, "no graph of this part has a label")
        return Scores(graphs=0, confusion=confusion.tolist(), notes=nothing, **named | dict.fromkeys(_NAMES))
    confusion = confusion_matrix(truth, p)
    support = confusion.sum(axis=1)
    present, notes = np.flatnonzero(support), {}
    if len(present) == 1:
        which = "the only graph is" if G == 1 else f"all {G} graphs are"
        only = f"{which} of class {class_names[present[0]]!r}, but the score compares classes"
        notes = dict.fromkeys(_COMPARING, only)
    if 1 < len(present) < C:
        absent = ", ".join(repr(class_names[c]) for c in range(C) if support[c] == 0)
        partial = f"no graph is of class {absent}, so the mean is over the other classes"
        notes = dict.fromkeys(_COMPARING, partial)
    return Scores(
        graphs=G,
        majority=float(support.max() / G),
        confusion=confusion.tolist(),
        notes=notes,
        **named | {metric.name: metric.compute(truth, p, None) for metric in METRICS.values()},
    )


_NAMES = (*METRICS, "majority")
_COMPARING = tuple(metric.name for metric in METRICS.values() if metric.compares)


def calibration_error(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error: Σ_b |b|/G · |mean confidence of bin b − share of correct predictions in b|.

    confidence (G,) in [0, 1]; right (G,) booleans; bins of equal width, each with its upper bound.

    >>> calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    0.0
    >>> calibration_error([1.0, 1.0], [True, False])
    0.5
    """
    _, c, r = _bin_sums(confidence, right, bins)
    return float(np.abs(c - r).sum() / np.size(confidence))


class CalibrationBins(NamedTuple):
    """The non-empty bins: number of graphs, their mean confidence, and their accuracy."""

    graphs: Ints
    confidence: Floats
    accuracy: Floats


def calibration_bins(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = BINS) -> CalibrationBins:
    """The points of a calibration curve, in the bins of calibration_error.

    >>> calibration_bins([0.75, 0.75, 1.0], [True, False, True])
    CalibrationBins(graphs=array([2, 1]), confidence=array([0.75, 1.  ]), accuracy=array([0.5, 1. ]))
    """
    count, c, r = _bin_sums(confidence, right, bins)
    present = count > 0
    return CalibrationBins(count[present], c[present] / count[present], r[present] / count[present])


def _bin_sums(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int) -> tuple[Ints, Floats, Floats]:
    """Graphs, sum of confidence and number of correct predictions per bin."""
    c, r = np.asarray(confidence, np.float64), np.asarray(right, np.float64)
    place = np.clip(np.ceil(c * bins).astype(np.int64) - 1, 0, bins - 1)
    sums = [np.asarray(np.bincount(place, weights, bins), np.float64) for weights in (c, r)]
    return np.bincount(place, minlength=bins), sums[0], sums[1]


def percent(share: float | None) -> str:
    """A share of graphs in percent with two decimals; a dash for None.

    >>> percent(0.73968), percent(None)
    ('73.97', '–')
    """
    return "–" if share is None else f"{100 * share:.2f}"


def _mean_over_classes(rank: Callable[..., float], y: Ints, p: Floats, w: Ints | None) -> float | None:
    present = np.unique(y if w is None else y[w > 0])
    if len(present) < 2:
        return None
    classes: Sequence[int] = [1] if p.shape[1] == 2 else present.tolist()
    return sum(rank(y == c, p[:, c], w) for c in classes) / len(classes)


def _steps(right: npt.NDArray[np.bool_], s: Floats, w: Ints | None) -> tuple[Floats, Floats]:
    """Positives and negatives with a score of at least each distinct score, highest first."""
    order = np.argsort(-s, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(s[order])), len(s) - 1)
    count = np.ones(len(s)) if w is None else w.astype(np.float64)
    positive = np.cumsum((right * count)[order])[ends]
    return positive, np.cumsum((~right * count)[order])[ends]


def _area_under_roc(right: npt.NDArray[np.bool_], s: Floats, w: Ints | None = None) -> float:
    """Probability that a positive scores higher than a negative, ties count one half."""
    positive, negative = _steps(right, s, w)
    below = np.append(0.0, negative[:-1])
    gain = np.diff(positive, prepend=0.0)
    won = (gain * (negative[-1] - negative + (negative - below) / 2)).sum()
    return float(won / (positive[-1] * negative[-1]))


def _average_precision(right: npt.NDArray[np.bool_], s: Floats, w: Ints | None = None) -> float:
    """Σ_n (R_n − R_{n−1}) P_n over the distinct scores."""
    positive, negative = _steps(right, s, w)
    total = positive + negative
    precision = np.divide(positive, total, out=np.zeros_like(total), where=total > 0)
    return float((np.diff(positive, prepend=0.0) * precision).sum() / positive[-1])
