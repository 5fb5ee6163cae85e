"""Sizes of strata: merges the small ones, and shares each stratum among the parts of a split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asapool.data.csr import Ints

TOLERANCE = 0.05  # relative deviation of a part from its fraction


def merge_small(groups: Ints, fewest: int) -> Ints:
    """The stratum of every graph (G,), after strata with fewer than `fewest` graphs joined the next one.

    >>> merge_small(np.array([0, 0, 1, 2, 2]), 2).tolist()
    [0, 0, 1, 1, 1]
    """
    numbers, counts = np.unique(groups, return_counts=True)
    merged, size, current = {}, 0, 0
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        merged[number] = current
        size += count
        if size >= fewest:
            current, size = current + 1, 0
    if size and current:  # the remainder joins the stratum before it
        merged = {number: min(group, current - 1) for number, group in merged.items()}
    return np.array([merged[number] for number in groups.tolist()], np.int64)


def part_sizes(counts: Sequence[int], val: float, test: float, fit_total: bool) -> list[tuple[int, int]]:
    """How many graphs of every stratum go into the test and the validation part.

    Each part gets its fraction of every stratum, rounded, and at least one graph. With fit_total, if these add up to
    a part that is too small or too large, the sums over the first k strata are rounded instead.

    Args:
        counts: number of graphs in every stratum.
        val: fraction of the validation part.
        test: fraction of the test part.
        fit_total: the parts must have about the right size; every stratum needs at least 1/val and 1/test graphs.

    >>> part_sizes([15, 15, 15, 15], 0.1, 0.1, fit_total=False)
    [(2, 2), (2, 2), (2, 2), (2, 2)]
    >>> part_sizes([15, 15, 15, 15], 0.1, 0.1, fit_total=True)
    [(2, 1), (1, 2), (1, 2), (2, 1)]
    """
    sizes = [(max(1, round(test * n)), max(1, round(val * n))) for n in counts]
    n = sum(counts)
    fits = all(
        abs(sum(part) - share * n) <= TOLERANCE * share * n
        for part, share in zip(zip(*sizes, strict=True), (test, val), strict=True)
    )
    if not fit_total or len(counts) < 2 or fits:
        return sizes
    ends = np.cumsum([0, *counts])
    in_test = np.diff(np.rint(test * ends).astype(np.int64))
    in_both = np.diff(np.rint((test + val) * ends).astype(np.int64))
    return list(zip(in_test.tolist(), (in_both - in_test).tolist(), strict=True))
