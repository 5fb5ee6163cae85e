"""Calibrated probabilities, conformal sets and conformal intervals, all fitted on validation graphs.

temperature   p' ∝ p^(1/T), with the T of the lowest log loss (Guo et al., ICML 2017): one number, keeps the ranking
isotonic      p' = an increasing step function of p (scikit-learn's), one per class: needs many graphs

Scores s_1 … s_n measure how far the predictions for the validation graphs are from the truth. If a new graph is
exchangeable with them, its own score is at most the ⌈(n + 1) · coverage⌉-th smallest of them with probability
≥ coverage, whatever the model (Vovk et al., Algorithmic Learning in a Random World, 2005).

classes    s = 1 − p(true class)    set: the classes with 1 − p ≤ q (least ambiguous sets, Sadinle et al., JASA 2019)
values     s = |y − ŷ|              interval: ŷ − q to ŷ + q
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data.targets import Target
from asapool.errors import ConfigError, choose

Floats = npt.NDArray[np.float64]
KINDS = ("temperature", "isotonic")
SMALLEST = 1e-12  # lower bound of a probability before its logarithm is taken
SPAN = (0.05, 20.0)  # range of the temperature


def fit_calibration(y: npt.NDArray[Any], p: npt.NDArray[Any]) -> dict[str, Any] | None:
    """Both calibrations of one task.

    Args:
        y: class numbers, (n,).
        p: probabilities, (n, C).

    Returns:
        Plain data for `calibrate`; None without two classes to compare.
    """
    if p.ndim != 2 or len(np.unique(y)) < 2:
        return None
    classes = y.astype(np.int64)
    return {"temperature": temperature(classes, p), "isotonic": [_isotonic(classes == c, p[:, c]) for c in _shown(p)]}


def calibrate(fitted: Mapping[str, Any] | None, p: npt.NDArray[Any], kind: str = "temperature") -> Floats:
    """Calibrated probabilities, (G, C); unchanged if nothing could be fitted.

    Args:
        fitted: from fit_calibration.
        p: probabilities, (G, C).
        kind: "temperature" or "isotonic".
    """
    choose("calibration", kind, KINDS)
    if fitted is None:
        return p.astype(np.float64)
    if kind == "temperature":
        return tempered(p, float(fitted["temperature"]))
    corners: list[tuple[list[float], list[float]]] = fitted["isotonic"]
    columns = [np.interp(p[:, c], before, after) for c, (before, after) in zip(_shown(p), corners, strict=True)]
    if p.shape[1] == 2:
        return np.stack([1 - columns[0], columns[0]], axis=1)
    q = np.stack(columns, axis=1)
    total = q.sum(axis=1, keepdims=True)
    return np.where(total > 0, q / np.where(total > 0, total, 1), 1 / p.shape[1])


def is_calibration(value: Any) -> bool:
    """Whether a value of a model file is what fit_calibration returns."""
    if value is None:
        return True
    try:
        corners = [np.asarray(pair, np.float64) for pair in value["isotonic"]]
        numbers = all(c.ndim == 2 and len(c) == 2 and c.size and np.isfinite(c).all() for c in corners)
        return numbers and len(corners) > 0 and SPAN[0] / 2 < float(value["temperature"]) < 2 * SPAN[1]
    except (KeyError, TypeError, ValueError):
        return False


def temperature(y: npt.NDArray[np.int64], p: npt.NDArray[Any]) -> float:
    """The T of the lowest log loss of p^(1/T).

    >>> p = np.array([[0.9, 0.1]] * 4)  # correct three times out of four, so 0.75 is calibrated: T = 2
    >>> round(temperature(np.array([0, 0, 0, 1]), p), 4)
    2.0
    """
    from scipy.optimize import minimize_scalar

    z, rows = np.log(np.maximum(p, SMALLEST)), np.arange(len(y))

    def loss(log_t: float) -> float:
        scaled = z / np.exp(log_t)
        return float((np.logaddexp.reduce(scaled, axis=1) - scaled[rows, y]).mean())

    low, high = np.log(SPAN)
    return float(np.exp(minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-8}).x))


def tempered(p: npt.NDArray[Any], T: float) -> Floats:
    """p^(1/T), normalised.

    >>> tempered(np.array([[0.9, 0.1]]), 2.0)
    array([[0.75, 0.25]])
    """
    z = np.log(np.maximum(p, SMALLEST)) / T
    q: Floats = np.exp(z - np.logaddexp.reduce(z, axis=1, keepdims=True))
    return q


def _shown(p: npt.NDArray[Any]) -> list[int]:
    """The classes that are fitted; of two, only the second."""
    return [1] if p.shape[1] == 2 else list(range(p.shape[1]))


def _isotonic(is_class: npt.NDArray[np.bool_], p: npt.NDArray[Any]) -> list[list[float]]:
    """The corners of the step function: probabilities before and after."""
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(p, is_class.astype(np.float64))
    return [fitted.X_thresholds_.tolist(), fitted.y_thresholds_.tolist()]


BETWEEN = " | "  # separates the classes of a set in a file
ROUNDING = 1e-9  # probabilities of one graph may differ by this much between batches


def check_coverage(coverage: float) -> None:
    """Check that a coverage lies between 0 and 1."""
    if not 0 < coverage < 1:
        raise ConfigError(f"coverage must lie between 0 and 1, such as 0.9, got {coverage}")


def conformal_quantile(scores: npt.ArrayLike, coverage: float) -> float:
    """The score that a new graph stays below with probability ≥ coverage; infinite if there are too few graphs.

    q = s_(k), k = ⌈(n + 1) · coverage⌉, and ∞ for k > n.

    Args:
        scores: of the validation graphs, (n,), in any order.
        coverage: desired probability that a set or interval contains the truth, in (0, 1).

    Returns:
        q.

    >>> conformal_quantile([4.0, 1.0, 3.0, 2.0], 0.6), conformal_quantile([1.0, 2.0, 3.0, 4.0], 0.9)
    (3.0, inf)
    """
    check_coverage(coverage)
    known = np.sort(np.asarray(scores, np.float64))
    k = math.ceil((len(known) + 1) * Decimal(str(coverage)))  # exact: 10 · 0.9 is 9, not 9.000…01
    return float(known[k - 1]) if k <= len(known) else math.inf


def needed_graphs(coverage: float) -> int:
    """The number of validation graphs needed for a finite quantile: the smallest n with ⌈(n + 1) · coverage⌉ ≤ n.

    >>> needed_graphs(0.9), needed_graphs(0.5)
    (9, 1)
    """
    share = Decimal(str(coverage))
    return math.ceil(share / (1 - share))


def too_few_graphs(conformal: Mapping[str, Any] | None, target: Target, coverage: float = 0.9) -> str:
    """One line if the validation part of a run is too small for this coverage; "" if it is not, or is unknown.

    Args:
        conformal: the entry of metrics.json; None for runs of older versions.
        target: of the run.
        coverage: one of the levels of `conformal`.

    >>> conformal = {"validation": 4, "levels": [{"coverage": 0.9, "covered": 1.0, "size": 2.0}]}
    >>> too_few_graphs(conformal, Target(classes=("no", "yes")))
    '90 % sets need at least 9 validation graphs, there are 4'
    """
    measured = [level for level in (conformal or {}).get("levels", ()) if level["coverage"] == coverage]
    if not conformal or not any(level["covered"] is not None for level in measured):
        return ""
    graphs, need = conformal["validation"], needed_graphs(coverage)
    if graphs >= need:
        return ""
    what = "intervals" if target.kind == "regression" else "sets"
    there = f"there {'is' if graphs == 1 else 'are'} {graphs}" + (
        " in the task with the fewest" if target.tasks > 1 else ""
    )
    return f"{100 * coverage:g} % {what} need at least {need} validation graphs, {there}"


def nonconformity(y: npt.NDArray[Any], p: npt.NDArray[Any]) -> Floats:
    """How far predictions are from the truth, (n,).

    Args:
        y: class numbers or values, (n,).
        p: probabilities (n, C), or values (n,).

    >>> nonconformity(np.array([1, 0]), np.array([[0.25, 0.75], [0.5, 0.5]])), nonconformity(np.ones(1), np.zeros(1))
    (array([0.25, 0.5 ]), array([1.]))
    """
    if p.ndim == 2:
        score: Floats = 1.0 - p[np.arange(len(y)), y.astype(np.int64)]
    else:
        score = np.abs(y - p)
    return score


def class_sets(p: npt.NDArray[Any], q: float) -> npt.NDArray[np.bool_]:
    """Which classes are in the set of each graph, (G, C): those with 1 − p ≤ q; a set may be empty.

    >>> class_sets(np.array([[0.75, 0.25], [0.5, 0.5]]), 0.5).tolist()
    [[True, False], [True, True]]
    """
    members: npt.NDArray[np.bool_] = 1.0 - p <= q + ROUNDING
    return members


def set_texts(members: npt.NDArray[np.bool_], classes: Sequence[str]) -> list[str]:
    """The sets as text, one per graph.

    >>> set_texts(np.array([[True, True], [False, False]]), ["no", "yes"])
    ['no | yes', '']
    """
    return [BETWEEN.join(name for name, inside in zip(classes, row, strict=True) if inside) for row in members.tolist()]


def covered(y: npt.NDArray[Any], p: npt.NDArray[Any], q: float) -> npt.NDArray[np.bool_]:
    """Whether the conformal set or interval of each graph contains the truth, (n,)."""
    inside: npt.NDArray[np.bool_] = nonconformity(y, p) <= q + ROUNDING
    return inside
