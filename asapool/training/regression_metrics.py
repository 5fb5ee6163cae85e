"""Scores of measured values: RMSE, MAE, R², Pearson's and Spearman's correlation, in one table."""

from __future__ import annotations

from typing import Any

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
    """Share of the variance that is explained, 1 − Σ (y − p)² / Σ (y − ȳ)²; None where all y are equal.

    >>> r2(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    0.5
    """
    if len(y) == 0:
        return None
    spread = float(np.average((y - np.average(y, weights=w)) ** 2, weights=w))
    return 1 - float(np.average((y - p) ** 2, weights=w)) / spread if spread > 0 else None


def pearson(y: Floats, p: Floats, w: Ints | None = None) -> float | None:
    """Correlation of measured and predicted values; None where either are all equal.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])).__round__(4)
    1.0
    """
    if len(y) < 2:
        return None
    a, b = y - np.average(y, weights=w), p - np.average(p, weights=w)
    size = np.sqrt(np.average(a * a, weights=w) * np.average(b * b, weights=w))
    # rounding leaves a little spread in numbers that are all equal
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


# the table of metrics of measured values, as METRICS in asapool.training.metrics is that of classes
REGRESSION_METRICS = {
    metric.name: metric
    for metric in (
        Metric(name="rmse", label="RMSE", compute=rmse, greater=False, compares=False),
        Metric(name="mae", label="MAE", compute=mae, greater=False, compares=False),
        Metric(name="r2", label="R²", compute=r2),
        Metric(name="pearson", label="Pearson r", compute=pearson),
        Metric(name="spearman", label="Spearman ρ", compute=spearman),
    )
}
