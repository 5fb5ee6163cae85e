"""The comparison of an exported program with its model, graph by graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet
from asapool.errors import ConfigError
from asapool.models.batches import cut
from asapool.models.classifier import GraphModel
from asapool.training.predictions import logits_of

TOLERANCE = 1e-5  # between two logits, relative to the largest logit of the graph where that is above 1
RENUMBERINGS = 8
Answer = Callable[[GraphSet, npt.NDArray[np.int64]], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Comparison:
    """The largest difference of two logits, and how many graphs were left out because the model itself has a tie."""

    difference: float
    ties: int


def compare(model: GraphModel, graphs: GraphSet, answer: Answer, where: str) -> Comparison:
    """Compare on graphs alone and in batches, whose padding must not matter; a difference is an error.

    Where clusters are equally fit, as those around equivalent atoms are, rounding decides which of them is kept, in
    the model as in the program. Such a graph is left out and counted: it is one whose logits change in the model
    itself when its nodes are renumbered.
    """
    G, worst, ties = len(graphs), 0.0, set()
    alone = [np.array([i]) for i in range(min(G, 20))]
    together = np.array_split(np.arange(G), max(1, G // 16))
    for indices in [*alone, *together]:
        error = _error(answer(graphs, indices), _logits(model, graphs, indices))
        for place in np.flatnonzero(~(error <= TOLERANCE)):  # NaN compares false
            graph = int(indices[place])
            if not has_tie(model, graphs, graph):
                raise ConfigError(
                    f"the exported program differs from the model by {error[place]:.2g} on graph {graph} of {where}, "
                    f"and {TOLERANCE:g} is allowed. Nothing was written; please report this model"
                )
            ties.add(graph)
        fine = error[error <= TOLERANCE]
        worst = max(worst, float(fine.max(initial=0.0)))
    return Comparison(worst, len(ties))


def has_tie(model: GraphModel, graphs: GraphSet, graph: int) -> bool:
    """Whether the logits of a graph depend on the numbers of its nodes, which they do only through ties."""
    rng, one = np.random.default_rng(0), np.array([graph])
    expected = _logits(model, graphs, one)
    first = np.array([0])
    for _ in range(RENUMBERINGS):
        other = renumbered(graphs, graph, rng.permutation(int(np.diff(graphs.ptr)[graph])))
        if not _error(_logits(model, other, first), expected).max() <= TOLERANCE:
            return True
    return False


def renumbered(graphs: GraphSet, graph: int, order: npt.NDArray[np.int64]) -> GraphSet:
    """One graph of a set as a set of its own, whose node k is the node order[k] of before."""
    one = graphs.subset(np.array([graph]))
    place = np.argsort(order)
    row = place[np.repeat(np.arange(len(order)), np.diff(one.rowptr))]
    col = place[one.col]
    by_row = np.lexsort((col, row))
    return one.with_fields(
        x=one.x[order],
        rowptr=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(order)))]),
        col=col[by_row],
        weight=None if one.weight is None else one.weight[by_row],
        edge_attr=None if one.edge_attr is None else one.edge_attr[by_row],
        truth=None,
    )


def _logits(model: GraphModel, graphs: GraphSet, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    logits: npt.NDArray[np.float32] = logits_of(model, cut(model, graphs, indices)).numpy()
    return logits


def _error(given: npt.NDArray[np.float32], expected: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The largest difference of every graph, (G,)."""
    error: npt.NDArray[np.float32] = np.abs(given - expected).max(axis=1) / np.maximum(1, np.abs(expected).max(axis=1))
    return error
