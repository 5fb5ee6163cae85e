"""Conformal answers: sets of classes and intervals of values that hold the truth with a stated probability.

Scores s_1 … s_n say how badly the model's answers to the validation graphs missed. If a new graph is exchangeable with
them, its own score is at most the ⌈(n + 1) · coverage⌉-th smallest of them with probability ≥ coverage, whatever the
model is (Vovk et al., Algorithmic Learning in a Random World, 2005).

classes    s = 1 − p(true class)    answer: the classes with 1 − p ≤ q (least ambiguous sets, Sadinle et al., JASA 2019)
values     s = |y − ŷ|              answer: ŷ − q to ŷ + q
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.errors import ConfigError

Floats = npt.NDArray[np.float64]
BETWEEN = " | "  # between the classes of a set in a file
ROUNDING = 1e-9  # probabilities of one graph may differ by this much between batches


def check_coverage(coverage: float) -> None:
    """Refuse what is no coverage."""
    if not 0 < coverage < 1:
        raise ConfigError(f"coverage must lie between 0 and 1, such as 0.9, got {coverage}")


def conformal_quantile(scores: npt.ArrayLike, coverage: float) -> float:
    """The score that a new graph stays below with probability ≥ coverage; infinite where too few graphs are known.

    q = s_(k), k = ⌈(n + 1) · coverage⌉, and ∞ for k > n.

    Args:
        scores: of the validation graphs, (n,), in any order.
        coverage: share of answers that shall hold the truth, in (0, 1).

    Returns:
        q.

    >>> conformal_quantile([4.0, 1.0, 3.0, 2.0], 0.6), conformal_quantile([1.0, 2.0, 3.0, 4.0], 0.9)
    (3.0, inf)
    """
    check_coverage(coverage)
    known = np.sort(np.asarray(scores, np.float64))
    k = math.ceil((len(known) + 1) * Decimal(str(coverage)))  # exact: 10 · 0.9 is 9, also where floats say 9.000…01
    return float(known[k - 1]) if k <= len(known) else math.inf


def needed_graphs(coverage: float) -> int:
    """How many validation graphs a finite answer takes: the smallest n with ⌈(n + 1) · coverage⌉ ≤ n.

    >>> needed_graphs(0.9), needed_graphs(0.5)
    (9, 1)
    """
    share = Decimal(str(coverage))
    return math.ceil(share / (1 - share))


def nonconformity(y: npt.NDArray[Any], p: npt.NDArray[Any]) -> Floats:
    """How badly answers miss the truth, (n,).

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
    return [BETWEEN.join(name for name, here in zip(classes, row, strict=True) if here) for row in members.tolist()]


def covered(y: npt.NDArray[Any], p: npt.NDArray[Any], q: float) -> npt.NDArray[np.bool_]:
    """Whether the conformal answer to each graph holds the truth, (n,)."""
    holds: npt.NDArray[np.bool_] = nonconformity(y, p) <= q + ROUNDING
    return holds
