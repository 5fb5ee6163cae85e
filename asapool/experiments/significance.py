"""Is one method better than another, given the same folds? Paired tests, and tests of trends, deviations and gains.

Folds share most of their training graphs, so their differences are not independent and the ordinary t-test finds
spurious differences. Nadeau and Bengio (2003) correct the variance for the shared part.

A test returns an effect, positive if it has the claimed direction, and its two-sided p value.
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
    """Two methods on the same n folds; a p-value is None if the test is impossible, and `note` says why."""

    n: int
    difference: float  # mean of first − second
    margin: float | None  # difference ± margin is its 95 % interval, by the corrected t-test
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
    >>> round(test.margin, 4)  # 4.3027 · √((1/3 + 1/2) · 0.01); 4.3027 = 97.5 % quantile of t, two degrees of freedom
    0.3928
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"a paired test takes two lists of the same length, got shapes {a.shape} and {b.shape}")
    if not test_share > 0:
        raise InputError(f"test_share must be greater than 0 (test part / training part), got {test_share}")
    d, n = a - b, len(a)
    if n < 2:
        return PairedTest(
            n=n, difference=_mean(d), margin=None, t=None, p_corrected_t=None, p_wilcoxon=None,
            note="fewer than two folds",
        )  # fmt: skip
    if not np.any(np.abs(d) > 1e-12):
        return PairedTest(
            n=n, difference=0.0, margin=None, t=None, p_corrected_t=None, p_wilcoxon=None, note="no fold differs"
        )
    margin, t, p = _corrected_t(d, test_share)
    return PairedTest(
        n=n, difference=_mean(d), margin=margin, t=t, p_corrected_t=p, p_wilcoxon=_wilcoxon(d),
        note="" if t is not None else "every fold differs by the same amount, so t is infinite",
    )  # fmt: skip


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjustment for m tests: the k-th smallest p is multiplied by m − k + 1, then made monotone.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    adjusted, least = [0.0] * len(p), 0.0
    for k, i in enumerate(order):
        least = max(least, min(1.0, (len(p) - k) * p[i]))
        adjusted[i] = least
    return adjusted


def _corrected_t(d: npt.NDArray[np.float64], test_share: float) -> tuple[float | None, float | None, float | None]:
    """Margin of the 95 % interval, t and p; None for each if all differences are equal."""
    from scipy.stats import t as students_t

    n, variance = len(d), float(d.var(ddof=1))
    if variance < 1e-24:
        return None, None, None
    error = np.sqrt((1 / n + test_share) * variance)
    t = float(d.mean() / error)
    return float(students_t.ppf(0.975, n - 1) * error), t, float(2 * students_t.sf(abs(t), n - 1))


def _wilcoxon(d: npt.NDArray[np.float64]) -> float:
    """Wilcoxon's signed-rank test; zero differences are left out, and ties share their mean rank."""
    from scipy.stats import wilcoxon

    nonzero = np.round(d[np.abs(d) > 1e-12], 12)  # rounding errors must not order equal differences
    ties = len(np.unique(np.abs(nonzero))) < len(nonzero)
    # the exact distribution for few folds without ties, otherwise the normal approximation
    return float(wilcoxon(nonzero, method="approx" if ties or len(nonzero) > 50 else "exact").pvalue)


def _mean(d: npt.NDArray[np.float64]) -> float:
    return float(d.mean()) if len(d) else 0.0


Values = np.ndarray[Any, np.dtype[np.float64]]


def test_share(folds: int) -> float:
    """Size of the test part over that of the training part: one fold to test, one to validate, the rest to train.

    >>> test_share(10)
    0.125
    """
    return 1 / max(1, folds - 2)


def higher(first: Values, second: Values) -> tuple[float, float, float]:
    """Difference of the means, the margin of its 95 % interval, and p of the corrected paired t-test over all folds.

    first, second (seeds, folds). If every fold differs by the same amount, even zero, margin and p are 0.

    >>> higher(np.full((2, 3), 70.0), np.full((2, 3), 60.0))
    (10.0, 0.0, 0.0)
    """
    test = paired_test(first.ravel(), second.ravel(), test_share=test_share(first.shape[1]))
    return round(test.difference, 6), test.margin or 0.0, 0.0 if test.p_corrected_t is None else test.p_corrected_t


def steadier(first: Values, second: Values) -> tuple[float, float]:
    """How much smaller the first deviation over seeds is, and p of the Pitman-Morgan test.

    Two variances are equal exactly if sum and difference are uncorrelated: r = corr(a + b, a − b), n − 2 degrees of
    freedom. Unlike the F-test, it takes into account that a and b are means over the same seeds and folds.

    first, second (seeds, folds), at least three seeds.

    >>> a, b = np.array([[1.0], [2], [3]]), np.array([[0.0], [9], [3]])  # sums 1, 11, 6; differences 1, −7, 0
    >>> gap, p = steadier(a, b)  # deviations 1 and √21; r = −40 / √(50 · 38), one degree of freedom
    >>> round(gap, 4), round(p, 4)
    (3.5826, 0.2601)
    """
    from scipy.stats import pearsonr

    a, b = first.mean(axis=1), second.mean(axis=1)
    gap = float(np.std(b, ddof=1) - np.std(a, ddof=1))
    if min(np.ptp(a + b), np.ptp(a - b)) < 1e-9:  # same values up to a constant or sign: same deviation
        return 0.0, 1.0
    return gap, float(pearsonr(a + b, a - b).pvalue)


def rising(values: Values) -> tuple[float, float]:
    """Mean over the folds of the rank correlation of accuracy and row, and p of the corrected t-test against 0.

    values (rows, seeds, folds). It is Page's test for a trend, with the variance of folds that share training graphs.

    >>> rising(np.array([60.0, 61, 70, 69]).reshape(4, 1, 1).repeat(3, axis=2))  # 1 − 6·2 / (4·15) in every fold
    (0.8, 0.0)
    """
    ranks = np.apply_along_axis(_rank_correlation, 0, values)  # (seeds, folds)
    rank, _, p = higher(ranks, np.zeros_like(ranks))
    return rank, p


def interval(values: Values) -> tuple[float, float]:
    """The 95 % interval of a mean by Student's t: m ± t · s / √n, n − 1 degrees of freedom; values (n,), n ≥ 2.

    >>> low, high = interval(np.array([3.0, 5.0]))  # 4 ± 12.706 · √2 / √2
    >>> round(low, 3), round(high, 3)
    (-8.706, 16.706)
    """
    from scipy.stats import t as students_t

    half = float(students_t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def _rank_correlation(values: Values) -> float:
    """Spearman's rank correlation of the values with their positions; 0 if all are equal."""
    from scipy.stats import rankdata

    rank = rankdata(np.round(values, 9))
    return 0.0 if np.ptp(rank) == 0 else float(np.corrcoef(rank, np.arange(len(rank)))[0, 1])
