"""Scores of a classifier: one object, the same for train, cv, compare, evaluate and reports.

A score that has no meaning for a part of the data (ROC-AUC where only one class occurs) is None, and `notes` says why.
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
BINS = 15  # of the calibration error, as in Guo et al. 2017


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How well probabilities fit the labels of G graphs."""

    graphs: int  # graphs with a label
    accuracy: float | None  # share of graphs whose most probable class is right
    balanced_accuracy: float | None  # mean over the classes of the share of their graphs that is right
    roc_auc: float | None  # of either class of two; of more the mean over the classes, each against the rest
    pr_auc: float | None  # average precision, of pr_auc_class; of more than two the mean over the classes
    calibration_error: float | None  # expected difference between the probability of the answer and its being right
    majority: float | None  # accuracy of always answering with the most frequent class of this part
    confusion: list[list[int]]  # (C, C), row = true class, column = answer
    class_names: list[str]
    pr_auc_class: str | None = None  # the second of two classes; None = the mean over all
    notes: dict[str, str] = field(default_factory=dict)  # name of a score that is None or partial -> reason

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def score(y: npt.ArrayLike, probability: npt.ArrayLike, class_names: Sequence[str]) -> Scores:
    """Work out all scores; graphs without a label (y = -1) are left out.

    y (G,) class numbers; probability (G, C), rows sum to 1.

    >>> s = score([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], ["no", "yes"])
    >>> s.confusion, s.balanced_accuracy, s.roc_auc, s.pr_auc_class
    ([[1, 0], [1, 1]], 0.75, 1.0, 'yes')
    >>> score([1, 1], [[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]).notes["roc_auc"]
    "all 2 graphs are of the class 'yes', and the score compares classes"
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
    answer = p.argmax(axis=1)
    np.add.at(confusion, (truth, answer), 1)
    support = confusion.sum(axis=1)
    present, notes = np.flatnonzero(support), {}
    balanced: float | None = float((np.diag(confusion)[present] / support[present]).mean())
    if len(present) == 1:
        balanced = None
        only = f"all {G} graphs are of the class {class_names[present[0]]!r}, and the score compares classes"
        notes = dict.fromkeys(("balanced_accuracy", "roc_auc", "pr_auc"), only)
    roc_auc, pr_auc = _ranking(truth, p, present)
    if 1 < len(present) < C:
        absent = ", ".join(repr(class_names[c]) for c in range(C) if support[c] == 0)
        said = f"no graph is of the class {absent}, and the mean is over the other classes"
        notes = dict.fromkeys(("balanced_accuracy", "roc_auc", "pr_auc"), said)
    return Scores(
        graphs=G,
        accuracy=float((answer == truth).mean()),
        balanced_accuracy=balanced,
        roc_auc=roc_auc,
        pr_auc=pr_auc,
        calibration_error=calibration_error(p.max(axis=1), answer == truth),
        majority=float(support.max() / G),
        confusion=confusion.tolist(),
        notes=notes,
        **named,
    )


_NAMES = ("accuracy", "balanced_accuracy", "roc_auc", "pr_auc", "calibration_error", "majority")


def calibration_error(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error: Σ_b |b|/G · |mean confidence of bin b − share of right answers in b|.

    confidence (G,) in [0, 1]; right (G,) booleans; bins of equal width, each with its upper bound.

    >>> calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    0.0
    >>> calibration_error([1.0, 1.0], [True, False])
    0.5
    """
    _, c, r = _bin_sums(confidence, right, bins)
    return float(np.abs(c - r).sum() / np.size(confidence))


class CalibrationBins(NamedTuple):
    """The bins that hold graphs: how many, their mean confidence, and the share that is right."""

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
    """Graphs, sum of confidence and number of right answers of every bin."""
    c, r = np.asarray(confidence, np.float64), np.asarray(right, np.float64)
    place = np.clip(np.ceil(c * bins).astype(np.int64) - 1, 0, bins - 1)
    sums = [np.asarray(np.bincount(place, weights, bins), np.float64) for weights in (c, r)]
    return np.bincount(place, minlength=bins), sums[0], sums[1]


def _ranking(truth: Ints, p: Floats, present: Ints) -> tuple[float | None, float | None]:
    """ROC-AUC and average precision: of class 1 of two, else the mean over the classes, each against the rest."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    if len(present) < 2:
        return None, None
    classes: Sequence[int] = [1] if p.shape[1] == 2 else present.tolist()

    def mean(rank: Callable[..., float]) -> float:
        return float(np.mean([rank(truth == c, p[:, c]) for c in classes]))

    return mean(roc_auc_score), mean(average_precision_score)


def percent(share: float | None) -> str:
    """A share of graphs in percent with two decimals; a dash where there is none.

    >>> percent(0.73968), percent(None)
    ('73.97', '–')
    """
    return "–" if share is None else f"{100 * share:.2f}"
