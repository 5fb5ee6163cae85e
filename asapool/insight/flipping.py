"""The smallest change that flips a prediction: a beam search over removals of nodes, edges and branches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from asapool.data import GraphSet
from asapool.insight.copies import answers, drop_edges, drop_nodes
from asapool.insight.importance import gradient_importance
from asapool.insight.levels import Floats, Ints, connectivity
from asapool.models import GraphModel
from asapool.models.batches import cut

DEPTH = 4  # maximum number of removals
BRANCH = 6  # nodes of the largest branch that is removed at once, such as a nitro group
SEARCHED = 300  # nodes of the largest graph that is searched for branches
BEAM = 6  # changes kept after each step
WIDE = 64  # nodes that are tried; in larger graphs those with the largest gradient × input
PIECE = 16_384  # nodes per forward pass


@dataclass(frozen=True, kw_only=True)
class Flip:
    """A graph without some nodes and edges, and the prediction for it."""

    nodes: tuple[int, ...]  # removed
    edges: tuple[tuple[int, int], ...]  # removed, the smaller end first
    probability: tuple[float, ...]  # of every class afterwards
    connected: bool  # whether the rest has no more components than the graph
    flipped: bool


@dataclass(frozen=True)
class _State:
    nodes: frozenset[int]
    edges: frozenset[tuple[int, int]]


def flip(model: GraphModel, one: GraphSet, c: int, against: int) -> Flip:
    """The fewest removals after which class `against` is more probable than class c.

    A removal takes a node, an edge, or a branch: up to six nodes joined to the rest by one edge. Among
    changes of equal size, those that keep the graph connected come first, then those with the clearest prediction.
    If no four removals flip the prediction, the change that comes closest is returned.

    Args:
        model: Within `frozen`.
        one: A set of one graph.
        c: The class that the model predicts.
        against: The class that it should predict.
    """
    N = len(one.x)
    row = np.repeat(np.arange(N), np.diff(one.rowptr))
    batch = cut(model, one, np.zeros(1, np.int64))
    strength = np.abs(gradient_importance(model, batch, c))
    tried = set(np.argsort(-strength, kind="stable")[:WIDE].tolist())
    pairs = {(int(a), int(b)) for a, b in zip(one.col, row, strict=True) if a < b and (a in tried or b in tried)}
    pieces = connectivity(N, one.col, row).components
    groups = [frozenset([v]) for v in sorted(tried)] + branches(N, one.col, row)
    beam = [_State(frozenset(), frozenset())]
    best: tuple[float, Flip] | None = None
    for _ in range(DEPTH):
        states = list(dict.fromkeys(s for state in beam for s in _next(state, sorted(pairs), groups, N)))
        if not states:
            break
        p = _answers(model, one, states, row)
        margin = np.log(np.maximum(p[:, against], 1e-300)) - np.log(np.maximum(p[:, c], 1e-300))
        order = np.argsort(-margin, kind="stable")
        won = [int(k) for k in order if margin[k] > 0]
        changes = [_describe(states[k], p[k], one, row, pieces, True) for k in won[:50]]
        if changes:
            return next((change for change in changes if change.connected), changes[0])
        first = int(order[0])
        if best is None or margin[first] > best[0]:
            best = float(margin[first]), _describe(states[first], p[first], one, row, pieces, False)
        beam = [states[k] for k in order[:BEAM].tolist()]
    if best is None:  # a single node: nothing can be removed
        nothing = answers(model, batch).softmax(dim=1)[0].tolist()
        return Flip(nodes=(), edges=(), probability=tuple(nothing), connected=True, flipped=False)
    return best[1]


def branches(N: int, source: Ints, target: Ints) -> list[frozenset[int]]:
    """Sets of two to six nodes that are joined to a larger rest by one edge.

    >>> path = np.array([0, 1, 1, 2, 2, 3, 3, 4]), np.array([1, 0, 2, 1, 3, 2, 4, 3])
    >>> [sorted(branch) for branch in branches(5, *path)]
    [[0, 1], [3, 4]]
    """
    if N > SEARCHED:
        return []
    around: list[set[int]] = [set() for _ in range(N)]
    for a, b in zip(source.tolist(), target.tolist(), strict=True):
        if a != b:
            around[a].add(b)
            around[b].add(a)
    branches = set()
    for a in range(N):
        for b in around[a]:
            side, frontier = {a}, [a]
            while frontier and len(side) <= BRANCH:
                v = frontier.pop()
                for w in around[v] - side:
                    if (v, w) != (a, b):
                        side.add(w)
                        frontier.append(w)
            if b not in side and 1 < len(side) <= BRANCH and 2 * len(side) < N:
                branches.add(frozenset(side))
    return sorted(branches, key=sorted)


def _next(state: _State, edges: list[tuple[int, int]], groups: list[frozenset[int]], N: int) -> list[_State]:
    """All states with one more removal."""
    more = [
        _State(state.nodes | group, frozenset(e for e in state.edges if not group & set(e)))
        for group in groups
        if not group & state.nodes and N - len(state.nodes | group) > 0
    ]
    more += [_State(state.nodes, state.edges | {e}) for e in edges if e not in state.edges and not state.nodes & set(e)]
    return more


def _answers(model: GraphModel, one: GraphSet, states: list[_State], row: Ints) -> Floats:
    """Probabilities of every class for every state, (S, C)."""
    N, E = len(one.x), len(row)
    low, high = np.minimum(one.col, row), np.maximum(one.col, row)
    place: dict[tuple[int, int], list[int]] = {}
    for e, pair in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        place.setdefault(pair, []).append(e)
    probabilities = []
    step = max(1, PIECE // N)
    with torch.no_grad():
        for first in range(0, len(states), step):
            part = states[first : first + step]
            batch = cut(model, one, np.zeros(len(part), np.int64))
            nodes, edges = torch.ones(len(part) * N, dtype=torch.bool), torch.ones(len(part) * E, dtype=torch.bool)
            for k, state in enumerate(part):
                nodes[[k * N + v for v in state.nodes]] = False
                edges[[k * E + e for pair in state.edges for e in place[pair]]] = False
            cutoff = drop_edges(batch, edges)
            probabilities.append(answers(model, drop_nodes(cutoff, nodes)).softmax(dim=1).numpy())
    return np.concatenate(probabilities)


def _describe(state: _State, p: Floats, one: GraphSet, row: Ints, pieces: int, flipped: bool) -> Flip:
    left = [v for v in range(len(one.x)) if v not in state.nodes]
    place = {v: k for k, v in enumerate(left)}
    ends = [
        (place[a], place[b])
        for a, b in zip(one.col.tolist(), row.tolist(), strict=True)
        if a in place and b in place and (min(a, b), max(a, b)) not in state.edges
    ]
    table = np.array(ends, dtype=np.int64).reshape(-1, 2)
    whole = connectivity(len(left), table[:, 0], table[:, 1]).components <= pieces
    return Flip(
        nodes=tuple(sorted(state.nodes)), edges=tuple(sorted(state.edges)), probability=tuple(p.tolist()),
        connected=whole, flipped=flipped,
    )  # fmt: skip
