"""Numbers about a substructure: intervals of means, odds ratios, Fisher's exact test, adjusted p-values."""

from __future__ import annotations

import numpy as np

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
