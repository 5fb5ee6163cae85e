"""The tests behind the verdicts: how surely one row is above another, steadier, or rising, and how large a gain is.

A test returns an effect, positive where the first row does as the claim says, and its two-sided p value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from asapool.experiments.significance import paired_test
from asapool.experiments.summary import test_share

Values = np.ndarray[Any, np.dtype[np.float64]]


def higher(first: Values, second: Values) -> tuple[float, float]:
    """Difference of the means, and p of the corrected paired t-test over all folds.

    first, second (seeds, folds). Where every fold differs by the same amount, be it zero, nothing is left to chance.

    >>> higher(np.full((2, 3), 70.0), np.full((2, 3), 60.0))
    (10.0, 0.0)
    """
    test = paired_test(first.ravel(), second.ravel(), test_share=test_share(first.shape[1]))
    return round(test.difference, 6), 0.0 if test.p_corrected_t is None else test.p_corrected_t


def steadier(first: Values, second: Values) -> tuple[float, float]:
    """How much smaller the first deviation over seeds is, and p of the test of Pitman and Morgan.

    Two variances are equal exactly if sum and difference are uncorrelated: r = corr(a + b, a − b), n − 2 degrees of
    freedom. Unlike the F-test it allows for a and b being means of the same seeds, with the same folds.

    first, second (seeds, folds), at least three seeds.

    >>> a, b = np.array([[1.0], [2], [3]]), np.array([[0.0], [9], [3]])  # sums 1, 11, 6; differences 1, −7, 0
    >>> gap, p = steadier(a, b)  # deviations 1 and √21; r = −40 / √(50 · 38), one degree of freedom
    >>> round(gap, 4), round(p, 4)
    (3.5826, 0.2601)
    """
    from scipy.stats import pearsonr

    a, b = first.mean(axis=1), second.mean(axis=1)
    gap = float(np.std(b, ddof=1) - np.std(a, ddof=1))
    if min(np.ptp(a + b), np.ptp(a - b)) < 1e-9:  # the same course over the seeds: the same deviation
        return 0.0, 1.0
    return gap, float(pearsonr(a + b, a - b).pvalue)


def rising(values: Values) -> tuple[float, float]:
    """Mean over the folds of the rank correlation of accuracy and row, and p of the corrected t-test against 0.

    values (rows, seeds, folds). It is Page's test for a trend, with the variance of folds that share training graphs.

    >>> rising(np.array([60.0, 61, 70, 69]).reshape(4, 1, 1).repeat(3, axis=2))  # 1 − 6·2 / (4·15) in every fold
    (0.8, 0.0)
    """
    ranks = np.apply_along_axis(_rank_correlation, 0, values)  # (seeds, folds)
    return higher(ranks, np.zeros_like(ranks))


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
    """Spearman's, of the values with their places; 0 where all are equal."""
    from scipy.stats import rankdata

    rank = rankdata(np.round(values, 9))
    return 0.0 if np.ptp(rank) == 0 else float(np.corrcoef(rank, np.arange(len(rank)))[0, 1])
