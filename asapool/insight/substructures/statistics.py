"""Numbers about a substructure: intervals of means, odds ratios, Fisher's exact test, adjusted p-values."""

from __future__ import annotations

from typing import Any

import numpy as np

from asapool.data import GraphSet
from asapool.data.targets import Target
from asapool.insight.levels import Floats, Ints


def interval(values: Floats, confidence: float = 0.95) -> tuple[Floats, Floats, Floats]:
    """Mean of each column of values (n, C) with Student's interval: m ± t s/√n; infinite for a single row.

    >>> mean, low, high = interval(np.array([[1.0], [2.0], [3.0]]))
    >>> mean.tolist(), low.round(3).tolist(), high.round(3).tolist()
    ([2.0], [-0.484], [4.484])
    """
    from scipy.stats import t

    n = len(values)
    mean: Floats = values.mean(axis=0)
    if n < 2:
        return mean, np.full_like(mean, -np.inf), np.full_like(mean, np.inf)
    half = t.ppf(0.5 + confidence / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


def odds_ratio(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """(a + ½)(d + ½) / (b + ½)(c + ½) of tables [[a, b], [c, d]]; the halves keep it finite (Haldane, Anscombe).

    >>> float(odds_ratio(np.array(3), np.array(0), np.array(1), np.array(2)))
    11.666666666666666
    """
    ratio: Floats = (a + 0.5) * (d + 0.5) / ((b + 0.5) * (c + 0.5))
    return ratio


def fisher(a: int, b: int, c: int, d: int) -> float:
    """Two-sided p-value of Fisher's exact test on the table [[a, b], [c, d]].

    The sum of the probabilities of all tables with the same margins that are no more likely than this one.

    >>> round(fisher(3, 0, 1, 2), 6)
    0.4
    """
    from scipy.stats import hypergeom

    low, high = max(0, a - d), min(a + b, a + c)
    p = hypergeom.pmf(np.arange(low, high + 1), a + b + c + d, a + c, a + b)
    return float(min(1.0, p[p <= p[a - low] * (1 + 1e-7)].sum()))


def adjusted(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p-values: q_(i) = min_{j ≥ i} p_(j) m/j.

    >>> adjusted(np.array([0.01, 0.04, 0.03])).round(6).tolist()
    [0.03, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    q: Floats = false_discovery_control(p) if len(p) else p
    return q


def enrichment(present: Ints, inside: Ints, graphs: int, members: int) -> tuple[Floats, Floats]:
    """Odds ratios and p-values, each (M,), of M substructures in one class.

    Args:
        present: Labelled graphs that have each substructure, (M,).
        inside: How many of them are in the class, (M,).
        graphs: Labelled graphs.
        members: Graphs in the class.
    """
    a, b = inside, present - inside
    c, d = members - inside, graphs - members - (present - inside)
    ratio = odds_ratio(a.astype(float), b.astype(float), c.astype(float), d.astype(float))
    known: dict[tuple[int, int], float] = {}  # many rare substructures have the same counts
    p = np.ones(len(a))
    for m, key in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if key not in known:
            known[key] = fisher(*key, int(c[m]), int(d[m]))
        p[m] = known[key]
    return ratio, p


def enrichments(graphs: GraphSet, target: Target, kind: Ints, graph: Ints, M: int) -> tuple[Floats, Floats]:
    """Enrichment and adjusted p-value of every substructure for every output, each (M, C); NaN without labels.

    Classes and yes/no tasks: odds ratio and Fisher's exact test. Measured values: difference of the means of the graphs
    with and without the substructure, and the Mann-Whitney test.

    Args:
        graphs: The set.
        target: What the model's outputs mean.
        kind: Substructure of every pair of a substructure and a graph that has it.
        graph: Graph of every pair.
        M: Number of substructures.
    """
    C = target.outputs
    size, p = np.full((M, C), np.nan), np.full((M, C), np.nan)
    if graphs.target.kind != target.kind or not graphs.labelled.any():
        return size, p
    tested = np.flatnonzero(np.bincount(kind, minlength=M))
    for c in range(C):
        values = _column(graphs, target, c)
        known = ~np.isnan(values)
        kinds, where = kind[known[graph]], graph[known[graph]]
        if target.kind == "regression":
            size[tested, c], p[tested, c] = _differences(values, known, kinds, where, tested)
        else:
            total, inside = np.bincount(kinds, minlength=M), np.bincount(kinds[values[where] == 1], minlength=M)
            size[tested, c], p[tested, c] = enrichment(
                total[tested], inside[tested], int(known.sum()), int((values == 1).sum())
            )
        p[tested, c] = adjusted(p[tested, c])
    return size, p


def _column(graphs: GraphSet, target: Target, c: int) -> Floats:
    """1 and 0 for inside and outside of class c, or the values of task c; NaN where missing, (G,)."""
    if target.kind == "classification":
        name = target.classes[c]
        own = graphs.class_names.index(name) if name in graphs.class_names else -2
        return np.where(graphs.y < 0, np.nan, graphs.y == own)
    column: Floats = graphs.y[:, c].astype(np.float64)
    return column


def _differences(values: Floats, known: Any, kinds: Ints, where: Ints, tested: Ints) -> tuple[Floats, Floats]:
    from scipy.stats import mannwhitneyu

    size, p = np.full(len(tested), np.nan), np.ones(len(tested))
    order = np.argsort(kinds, kind="stable")
    ends = np.searchsorted(kinds[order], np.stack([tested, tested + 1]))
    for k, (a, b) in enumerate(ends.T.tolist()):
        rest = known.copy()
        rest[where[order[a:b]]] = False
        if b > a and rest.any():
            inside = values[where[order[a:b]]]
            size[k] = inside.mean() - values[rest].mean()
            p[k] = mannwhitneyu(inside, values[rest], method="asymptotic").pvalue
    return size, p
