"""Measure substructures: effect of removal with intervals, enrichment, and variants of stronger ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from asapool.data import GraphSet
from asapool.data.targets import Target
from asapool.insight.copies import answers_of, answers_without, effects, target_of
from asapool.insight.levels import Floats, Ints
from asapool.insight.substructures.cutting import Pieces
from asapool.insight.substructures.results import Example, Motif
from asapool.models import GraphModel


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
        present: Labelled graphs that contain each substructure, (M,).
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
        target: The target of the model.
        kind: Substructure of every pair of a substructure and a graph that contains it.
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
    """1 and 0 for inside and outside of class c, or the values of task c; NaN if missing, (G,)."""
    if target.kind == "classification":
        name = target.classes[c]
        class_number = graphs.class_names.index(name) if name in graphs.class_names else -2
        return np.where(graphs.y < 0, np.nan, graphs.y == class_number)
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


COVERED = 0.5  # share of occurrences that must overlap a stronger substructure
OVERLAP = 0.5  # share of the nodes of the smaller one that they must have in common


def variants_of(rows: Sequence[Motif], where: Sequence[Pieces], first: Ints) -> list[Motif]:
    """Mark each substructure most of whose occurrences overlap those of one stronger substructure.

    Args:
        rows: Strongest first.
        where: The occurrences of each, one per graph.
        first: The first node of every graph of the set.
    """
    strong: dict[int, list[tuple[int, int]]] = {}  # graph → (number of the substructure, its nodes as bits)
    marked: list[Motif] = []
    for number, (row, pieces) in enumerate(zip(rows, where, strict=True)):
        sign = _direction(row)
        hits: dict[int, int] = {}
        occurrences = []
        for p, g in enumerate(pieces.graph.tolist()):
            start, bits = int(first[g]), 0
            for v in pieces.nodes(p):
                bits |= 1 << (v - start)
            occurrences.append((g, bits))
            for other, other_bits in strong.get(g, ()):
                small = min(bits.bit_count(), other_bits.bit_count())
                if (bits & other_bits).bit_count() >= OVERLAP * small and _direction(rows[other]) == sign:
                    hits[other] = hits.get(other, 0) + 1
        best = max(hits, key=lambda other: (hits[other], -other), default=None)
        if best is not None and hits[best] >= COVERED * len(pieces):
            marked.append(replace(row, variant_of=rows[best].name))
            continue
        marked.append(row)
        for g, bits in occurrences:
            strong.setdefault(g, []).append((number, bits))
    return marked


def _direction(row: Motif) -> tuple[int, bool]:
    """The output that it raises most, and whether it raises it."""
    return row.main, row.contribution[row.main] > 0


EXAMPLES = 3


class Named(NamedTuple):
    """Pieces of graphs, with the number of their substructure."""

    pieces: Pieces
    kind: Ints  # (P,) in 0 … M−1
    names: list[str]  # (M,)


def graphs_with(pieces: Pieces, kind: Ints) -> Ints:
    """In how many graphs each kind occurs, (M,)."""
    M = int(kind.max(initial=-1)) + 1
    G = int(pieces.graph.max(initial=0)) + 1
    counts: Ints = np.bincount(np.unique(kind * G + pieces.graph) // G, minlength=M)
    return counts


def measure(
    model: GraphModel, graphs: GraphSet, classes: tuple[str, ...], named: Named, least: int, samples: int, seed: int
) -> list[Motif]:
    """Remove, count and test every substructure; the rows of the result, strongest first."""
    pieces, kind, _ = named
    target = target_of(model, classes)
    base = answers_of(model, graphs)
    count = graphs_with(pieces, kind)
    rng = np.random.default_rng(seed)
    # one occurrence per graph, from the lowest level, so that the averaged values are independent
    order = np.lexsort((pieces.level, pieces.graph, kind))
    first = np.ones(len(order), bool)
    first[1:] = (kind[order][1:] != kind[order][:-1]) | (pieces.graph[order][1:] != pieces.graph[order][:-1])
    one = order[first]
    one = one[count[kind[one]] >= least]
    part = pieces.sizes[one] < np.diff(graphs.ptr)[pieces.graph[one]]  # some of the graph must remain
    drawn = _sample(one[part], kind, samples, rng)
    drawn = drawn[np.argsort(pieces.graph[drawn], kind="stable")]
    removed = pieces.take(drawn)
    after = effects(answers_without(model, graphs, removed.graph, removed.ptr, removed.node), target)
    change = effects(base, target)[removed.graph] - after
    tests = enrichments(graphs, target, kind[one], pieces.graph[one], len(count))
    group = np.argsort(kind[drawn], kind="stable")
    ends = np.searchsorted(kind[drawn][group], np.arange(len(count) + 1))
    rows: list[Motif] = []
    kept: list[Pieces] = []
    for m in np.flatnonzero(count >= least).tolist():
        own = group[ends[m] : ends[m + 1]]
        if not len(own):
            continue
        mean, low, high = interval(change[own])
        typical = own[np.argsort(np.abs(change[own] - mean).sum(axis=1), kind="stable")[:EXAMPLES]]
        rows.append(
            Motif(
                name=named.names[m], nodes=int(removed.sizes[own[0]]), level=int(removed.level[own].min()),
                graphs=int(count[m]), measured=len(own), contribution=tuple(mean.tolist()), low=tuple(low.tolist()),
                high=tuple(high.tolist()), enrichment=tuple(tests[0][m].tolist()), p_value=tuple(tests[1][m].tolist()),
                variant_of=None,
                examples=tuple(_example(graphs, target, base, removed, change, i) for i in typical.tolist()),
            )
        )  # fmt: skip
        kept.append(removed.take(own))
    best = [max(abs(row.strength(c)) for c in range(len(classes))) for row in rows]
    order = np.lexsort(([-row.graphs for row in rows], [-value for value in best]))
    return variants_of([rows[i] for i in order.tolist()], [kept[i] for i in order.tolist()], graphs.ptr)


def _sample(one: Ints, kind: Ints, most: int, rng: np.random.Generator) -> Ints:
    """At most `most` occurrences of each kind, drawn at random."""
    shuffled = one[rng.permutation(len(one))]
    order = np.argsort(kind[shuffled], kind="stable")
    group = kind[shuffled][order]
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    return shuffled[order][rank < most]


def _example(graphs: GraphSet, target: Target, base: Floats, removed: Pieces, change: Floats, i: int) -> Example:
    g = int(removed.graph[i])
    y = graphs.y[g]
    return Example(
        graph=int(graphs.places[g]), id=graphs.ids[g],
        text=None if graphs.source_text is None else graphs.source_text[g],
        label=_label(y, graphs), predicted=_answer(base[g], target),
        nodes=tuple(v - int(graphs.ptr[g]) for v in removed.nodes(i)), change=tuple(change[i].tolist()),
    )  # fmt: skip


def _label(y: Any, graphs: GraphSet) -> str | None:
    """The label of a graph as text; None if it has none."""
    if graphs.target.kind == "classification":
        return graphs.class_names[int(y)] if y >= 0 else None
    return None if np.isnan(y).all() else ", ".join("missing" if np.isnan(v) else f"{v:.4g}" for v in y.tolist())


def _answer(outputs: Floats, target: Target) -> str:
    """The prediction for a graph as text."""
    if target.kind == "classification":
        return target.classes[int(outputs.argmax())]
    if target.kind == "multilabel":
        return ", ".join(name for name, v in zip(target.names, outputs, strict=True) if v > 0) or "none"
    return ", ".join(f"{v:.4g}" for v in effects(outputs[None], target)[0].tolist())
