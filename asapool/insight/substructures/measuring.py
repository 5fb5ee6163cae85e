"""Remove, count and test substructures: from pieces with names to the rows of the result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from asapool.data import GraphSet
from asapool.insight.levels import Floats, Ints
from asapool.insight.substructures.cutting import Pieces
from asapool.insight.substructures.removal import all_log_odds, answers_of, answers_without
from asapool.insight.substructures.results import Example, Motif
from asapool.insight.substructures.statistics import adjusted, enrichment, interval
from asapool.insight.substructures.variants import variants_of
from asapool.models import GraphModel

EXAMPLES = 3


class Named(NamedTuple):
    """Pieces of graphs with the number of the substructure that each is."""

    pieces: Pieces
    kind: Ints  # (P,) in 0 … M−1
    names: list[str]  # (M,)


def graphs_with(some: Pieces, kind: Ints) -> Ints:
    """In how many graphs each kind occurs, (M,)."""
    M = int(kind.max(initial=-1)) + 1
    G = int(some.graph.max(initial=0)) + 1
    counts: Ints = np.bincount(np.unique(kind * G + some.graph) // G, minlength=M)
    return counts


def measure(
    model: GraphModel, graphs: GraphSet, classes: tuple[str, ...], named: Named, least: int, samples: int, seed: int
) -> list[Motif]:
    """Remove, count and test every substructure; the rows of the result, strongest first."""
    some, kind, _ = named
    base = answers_of(model, graphs)
    count = graphs_with(some, kind)
    rng = np.random.default_rng(seed)
    # one occurrence per graph, so that what is averaged is independent; those of the lowest level first
    order = np.lexsort((some.level, some.graph, kind))
    first = np.ones(len(order), bool)
    first[1:] = (kind[order][1:] != kind[order][:-1]) | (some.graph[order][1:] != some.graph[order][:-1])
    one = order[first]
    one = one[count[kind[one]] >= least]
    part = some.sizes[one] < np.diff(graphs.ptr)[some.graph[one]]  # something must be left of the graph
    drawn = _sample(one[part], kind, samples, rng)
    drawn = drawn[np.argsort(some.graph[drawn], kind="stable")]
    removed = some.take(drawn)
    after = all_log_odds(answers_without(model, graphs, removed.graph, removed.ptr, removed.node))
    change = all_log_odds(base)[removed.graph] - after
    tests = _enrichments(graphs, classes, kind[one], some.graph[one], len(count))
    group = np.argsort(kind[drawn], kind="stable")
    ends = np.searchsorted(kind[drawn][group], np.arange(len(count) + 1))
    rows: list[Motif] = []
    kept: list[Pieces] = []
    for m in np.flatnonzero(count >= least).tolist():
        mine = group[ends[m] : ends[m + 1]]
        if not len(mine):
            continue
        mean, low, high = interval(change[mine])
        typical = mine[np.argsort(np.abs(change[mine] - mean).sum(axis=1), kind="stable")[:EXAMPLES]]
        rows.append(
            Motif(
                name=named.names[m], nodes=int(removed.sizes[mine[0]]), level=int(removed.level[mine].min()),
                graphs=int(count[m]), measured=len(mine), contribution=tuple(mean.tolist()), low=tuple(low.tolist()),
                high=tuple(high.tolist()), odds_ratio=tuple(tests[0][m].tolist()), p_value=tuple(tests[1][m].tolist()),
                variant_of=None,
                examples=tuple(_example(graphs, classes, base, removed, change, i) for i in typical.tolist()),
            )
        )  # fmt: skip
        kept.append(removed.take(mine))
    best = [max(abs(row.strength(c)) for c in range(len(classes))) for row in rows]
    order = np.lexsort(([-row.graphs for row in rows], [-value for value in best]))
    return variants_of([rows[i] for i in order.tolist()], [kept[i] for i in order.tolist()], graphs.ptr)


def _sample(one: Ints, kind: Ints, most: int, rng: np.random.Generator) -> Ints:
    """At most so many of each kind, drawn at random."""
    shuffled = one[rng.permutation(len(one))]
    order = np.argsort(kind[shuffled], kind="stable")
    group = kind[shuffled][order]
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    return shuffled[order][rank < most]


def _enrichments(graphs: GraphSet, classes: tuple[str, ...], kind: Ints, graph: Ints, M: int) -> tuple[Floats, Floats]:
    """Odds ratios and adjusted p-values of every substructure in every class, each (M, C); NaN without labels."""
    C = len(classes)
    ratio, p = np.full((M, C), np.nan), np.full((M, C), np.nan)
    y = graphs.y
    if y.ndim > 1 or not (y >= 0).any():
        return ratio, p
    kind, graph = kind[y[graph] >= 0], graph[y[graph] >= 0]
    total = np.bincount(kind, minlength=M)
    tested = np.flatnonzero(total)
    for c in range(C):
        if C == 2 and c == 1:  # the table of the second class is that of the first, turned over
            ratio[:, 1], p[:, 1] = 1 / ratio[:, 0], p[:, 0]
            continue
        inside = np.bincount(kind[y[graph] == c], minlength=M)
        ratio[tested, c], p[tested, c] = enrichment(
            total[tested], inside[tested], int((y >= 0).sum()), int((y == c).sum())
        )
        p[tested, c] = adjusted(p[tested, c])
    return ratio, p


def _example(
    graphs: GraphSet, classes: tuple[str, ...], base: Floats, removed: Pieces, change: Floats, i: int
) -> Example:
    g = int(removed.graph[i])
    label = int(graphs.y[g]) if graphs.y.ndim == 1 else -1
    return Example(
        graph=int(graphs.places[g]), id=graphs.ids[g],
        text=None if graphs.source_text is None else graphs.source_text[g],
        label=graphs.class_names[label] if label >= 0 else None, predicted=classes[int(base[g].argmax())],
        nodes=tuple(v - int(graphs.ptr[g]) for v in removed.nodes(i)), change=tuple(change[i].tolist()),
    )  # fmt: skip
