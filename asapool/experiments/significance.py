"""Is one method better than another, given the same folds? Two paired tests.

Folds share most of their training graphs, so their differences are not independent and the ordinary t-test finds
differences that are not there. Nadeau and Bengio (2003) correct the variance for the shared part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.errors import InputError


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """Two methods on the same n folds; a p-value is None where the test cannot be made, and `note` says why."""

    n: int
    difference: float  # mean of first − second
    t: float | None
    p_corrected_t: float | None
    p_wilcoxon: float | None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def paired_test(first: npt.ArrayLike, second: npt.ArrayLike, test_share: float) -> PairedTest:
    """Compare two methods fold by fold, two-sided.

    t = d̄ / √((1/n + n_test/n_train) · s²), n − 1 degrees of freedom, d = first − second; and Wilcoxon's signed ranks.

    first, second (n,) scores of the same folds; test_share = n_test/n_train.

    >>> test = paired_test([0.8, 0.7, 0.9], [0.7, 0.7, 0.7], test_share=0.5)  # d = 0.1, 0, 0.2
    >>> round(test.t, 4)  # 0.1 / √((1/3 + 1/2) · 0.01)
    1.0954
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"a paired test takes two lists of the same length, got shapes {a.shape} and {b.shape}")
    if not test_share > 0:
        raise InputError(f"test_share is the size of the test part over that of the training part, got {test_share}")
    d, n = a - b, len(a)
    if n < 2:
        return PairedTest(
            n=n, difference=_mean(d), t=None, p_corrected_t=None, p_wilcoxon=None, note="fewer than two folds"
        )
    if not np.any(np.abs(d) > 1e-12):
        return PairedTest(n=n, difference=0.0, t=None, p_corrected_t=None, p_wilcoxon=None, note="no fold differs")
    t, p = _corrected_t(d, test_share)
    return PairedTest(
        n=n, difference=_mean(d), t=t, p_corrected_t=p, p_wilcoxon=_wilcoxon(d),
        note="" if t is not None else "every fold differs by the same amount, so t is infinite",
    )  # fmt: skip


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjustment for several tests at once: the k-th smallest of m counts m − k + 1 times, and none falls.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    adjusted, least = [0.0] * len(p), 0.0
    for k, i in enumerate(order):
        least = max(least, min(1.0, (len(p) - k) * p[i]))
        adjusted[i] = least
    return adjusted


def _corrected_t(d: npt.NDArray[np.float64], test_share: float) -> tuple[float | None, float | None]:
    from scipy.stats import t as students_t

    n, variance = len(d), float(d.var(ddof=1))
    if variance < 1e-24:
        return None, None
    t = float(d.mean() / np.sqrt((1 / n + test_share) * variance))
    return t, float(2 * students_t.sf(abs(t), n - 1))


def _wilcoxon(d: npt.NDArray[np.float64]) -> float:
    """Folds without a difference are left out, as Wilcoxon did; equal sizes share their mean rank."""
    from scipy.stats import wilcoxon

    there = np.round(d[np.abs(d) > 1e-12], 12)  # accuracies of equal folds: rounding must not order equal differences
    ties = len(np.unique(np.abs(there))) < len(there)
    # the exact distribution holds for few folds without ties; the normal one otherwise
    return float(wilcoxon(there, method="approx" if ties or len(there) > 50 else "exact").pvalue)


def _mean(d: npt.NDArray[np.float64]) -> float:
    return float(d.mean()) if len(d) else 0.0
