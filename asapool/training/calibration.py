"""Calibrated probabilities: of all answers of 70 %, about 70 % shall be right. Fitted on validation graphs.

temperature   p' ∝ p^(1/T), with the T of the lowest log loss (Guo et al., ICML 2017): one number, keeps the ranking
isotonic      p' = a step function of p that only rises (scikit-learn's), one per class: needs many graphs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.errors import choose

Floats = npt.NDArray[np.float64]
KINDS = ("temperature", "isotonic")
SMALLEST = 1e-12  # of a probability, before its logarithm is taken
SPAN = (0.05, 20.0)  # of the temperature


def fit_calibration(y: npt.NDArray[Any], p: npt.NDArray[Any]) -> dict[str, Any] | None:
    """Both calibrations of one task.

    Args:
        y: class numbers, (n,).
        p: probabilities, (n, C).

    Returns:
        Plain data for `calibrate`; None where there are no two classes to compare.
    """
    if p.ndim != 2 or len(np.unique(y)) < 2:
        return None
    classes = y.astype(np.int64)
    return {"temperature": temperature(classes, p), "isotonic": [_isotonic(classes == c, p[:, c]) for c in _shown(p)]}


def calibrate(fitted: Mapping[str, Any] | None, p: npt.NDArray[Any], kind: str = "temperature") -> Floats:
    """Calibrated probabilities, (G, C); those given where nothing could be fitted.

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

    >>> p = np.array([[0.9, 0.1]] * 4)  # right three times out of four, so 0.75 is calibrated: T = 2
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
    """The classes that are fitted; of two the second decides the first."""
    return [1] if p.shape[1] == 2 else list(range(p.shape[1]))


def _isotonic(is_class: npt.NDArray[np.bool_], p: npt.NDArray[Any]) -> list[list[float]]:
    """The corners of the step function: probabilities before and after."""
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(p, is_class.astype(np.float64))
    return [fitted.X_thresholds_.tolist(), fitted.y_thresholds_.tolist()]
