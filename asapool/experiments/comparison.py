"""From fold results to one table: mean, the two deviations kept apart, and a paired test against the first method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from asapool.experiments.significance import PairedTest, paired_test

SCORES = ("accuracy", "balanced_accuracy", "roc_auc", "pr_auc", "calibration_error")


@dataclass(frozen=True, kw_only=True)
class FoldResult:
    """The scores of one training, or the reason why there are none."""

    method: str
    seed: int
    fold: int
    validation: dict[str, Any] | None = None  # Scores as plain data
    test: dict[str, Any] | None = None
    best_epoch: int | None = None
    epochs: int | None = None
    stopped: str | None = None
    seconds: float | None = None
    failure: str | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method over all its folds; a deviation is None where there is nothing to deviate from.

    over_seeds: deviation of the means of the seeds of which all folds are finished (what the paper prints after ±).
    over_folds: deviation of the folds of one seed, averaged over the seeds. Both with n − 1.
    """

    method: str
    mean: float | None
    over_seeds: float | None
    over_folds: float | None
    seeds: int  # with at least one finished fold
    folds: int  # finished ones
    failed: int
    validation: float | None  # mean validation accuracy
    scores: dict[str, float | None]  # mean of every score over the folds where it exists
    seconds: float | None  # mean per fold


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The table, best method first, and the tests of every other method against the reference, by name."""

    score: str
    rows: list[Row]
    reference: str
    tests: dict[str, dict[str, Any]]  # method → PairedTest as plain data, with p_holm
    failures: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: what --json prints and reports read."""
        return asdict(self)


def compare(results: Sequence[FoldResult], folds: int, score: str = "accuracy") -> Comparison:
    """Sum up fold results; the first method that occurs is the reference of the paired tests.

    folds: number of folds of the protocol, of which one is the test part, one the validation part, the rest train.
    """
    methods = list(dict.fromkeys(result.method for result in results))
    rows = [_row(method, [r for r in results if r.method == method], folds, score) for method in methods]
    reference, tests = methods[0], {}
    for method in methods[1:]:
        first, second = _paired(results, reference, method, score)
        tests[method] = paired_test(first, second, test_share=1 / (folds - 2))
    return Comparison(
        score=score,
        rows=sorted(rows, key=lambda row: -1.0 if row.mean is None else row.mean, reverse=True),
        reference=reference,
        tests=_with_holm(tests),
        failures=[f"{r.method}, seed {r.seed}, fold {r.fold}: {r.failure}" for r in results if r.failure is not None],
    )


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


def _row(method: str, results: list[FoldResult], folds: int, score: str) -> Row:
    finished = [r for r in results if r.test is not None]
    by_seed: dict[int, list[float]] = {}
    for r in finished:
        assert r.test is not None
        if r.test[score] is not None:
            by_seed.setdefault(r.seed, []).append(r.test[score])
    within = [np.std(v, ddof=1) for v in by_seed.values() if len(v) > 1]
    means = [float(np.mean(v)) for v in by_seed.values() if len(v) == folds]  # a part of a seed deviates by its folds
    return Row(
        method=method,
        mean=_mean([x for v in by_seed.values() for x in v]),
        over_seeds=float(np.std(means, ddof=1)) if len(means) > 1 else None,
        over_folds=_mean(within),
        seeds=len(by_seed),
        folds=len(finished),
        failed=len(results) - len(finished),
        validation=_mean([r.validation["accuracy"] for r in finished if r.validation is not None]),
        scores={name: _mean([r.test[name] for r in finished if r.test is not None]) for name in SCORES},
        seconds=_mean([r.seconds for r in finished]),
    )


def _paired(results: Sequence[FoldResult], first: str, second: str, score: str) -> tuple[list[float], list[float]]:
    """Scores of the folds that both methods finished."""

    def of(method: str) -> dict[tuple[int, int], float]:
        kept = [r for r in results if r.method == method and r.test is not None and r.test[score] is not None]
        return {(r.seed, r.fold): r.test[score] for r in kept if r.test is not None}

    a, b = of(first), of(second)
    both = [key for key in a if key in b]
    return [a[key] for key in both], [b[key] for key in both]


def _with_holm(tests: dict[str, PairedTest]) -> dict[str, dict[str, Any]]:
    tested = {name: t.p_corrected_t for name, t in tests.items() if t.p_corrected_t is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {name: t.to_dict() | {"p_holm": adjusted.get(name)} for name, t in tests.items()}


def _mean(values: Sequence[Any]) -> float | None:
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None
