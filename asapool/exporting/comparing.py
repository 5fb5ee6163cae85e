"""Compare an exported program with its model, graph by graph, and choose the graphs for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from asapool.data import GraphSet, Split, load
from asapool.errors import AsapoolError, ConfigError
from asapool.models.batches import cut
from asapool.models.checkpoint import LoadedModel
from asapool.models.classifier import GraphModel
from asapool.training.predictions import logits_of
from asapool.training.settings import RunSettings, read_graphs

LARGEST = 400  # nodes: a padded batch needs their square


@dataclass(frozen=True)
class Sample:
    """Graphs, and where they come from."""

    graphs: GraphSet
    source: str


def sample_graphs(loaded: LoadedModel, most: int) -> Sample:
    """At most `most` graphs: from the run's validation and training parts, the data set it names, or generated."""
    for find in (_of_run, _of_summary, _molecules):
        try:
            reading = find(loaded)
            if reading is not None:
                loaded.check(reading.graphs)
                small = np.flatnonzero(np.diff(reading.graphs.ptr) <= LARGEST)[:most]
                if len(small):
                    return Sample(reading.graphs.subset(small), reading.source)
        except (AsapoolError, OSError, ValueError):  # the data may have been moved
            continue
    return Sample(generated(loaded, most), "generated graphs")


def _of_run(loaded: LoadedModel) -> Sample | None:
    """The validation graphs of the run folder, then its training graphs."""
    folder = loaded.path.parent
    if not (folder / "config.toml").exists() or not (folder / "split.json").exists():
        return None
    settings, split = RunSettings.from_file(folder / "config.toml"), Split.load(folder / "split.json")
    graphs = read_graphs(settings.data, settings.split)
    split.check(graphs)
    order = np.concatenate([split.val, split.train])
    return Sample(graphs.subset(order), f"the validation and training graphs of {settings.data.source}")


def _of_summary(loaded: LoadedModel) -> Sample | None:
    """The data set that the model file names."""
    source = loaded.summary.get("source")
    if not isinstance(source, str):
        return None
    return Sample(load(source, recipe=loaded.recipe, labels="ignored"), f"the graphs of {source}")


def _molecules(loaded: LoadedModel) -> Sample | None:
    """The molecules that come with rdkit, for a model that reads molecules."""
    if loaded.recipe.get("kind") != "smiles":
        return None
    smiles = list(load("nci-alerts").source_text or ())
    return Sample(load(smiles[:1000], recipe=loaded.recipe, labels="ignored"), "the NCI molecules that come with rdkit")


def generated(loaded: LoadedModel, count: int, seed: int = 0) -> GraphSet:
    """Random connected graphs of 1 to 40 nodes with random features of the width that the model reads."""
    rng = np.random.default_rng(seed)
    model = loaded.model
    rows: list[npt.NDArray[np.int64]] = []
    cols: list[npt.NDArray[np.int64]] = []
    sizes = rng.integers(1, 41, count)
    start = np.concatenate([[0], np.cumsum(sizes)])
    for first, n in zip(start[:-1], sizes, strict=True):
        child = np.arange(1, n)
        parent = (rng.random(n - 1) * child).astype(np.int64)  # a random tree, plus some edges
        a, b = rng.integers(0, n, (2, n // 3))
        i, j = np.concatenate([child, a]), np.concatenate([parent, b])
        i, j = i[i != j], j[i != j]
        key = np.unique(np.concatenate([i * n + j, j * n + i]))
        rows.append(key // n + first)
        cols.append(key % n + first)
    row, col, N = np.concatenate(rows), np.concatenate(cols), int(start[-1])
    extra: dict[str, Any] = {}
    if model.shape.edge_channels:
        pair = np.minimum(row, col) * N + np.maximum(row, col)  # both directions have the same features
        kinds = rng.integers(0, model.shape.edge_channels, int(pair.max(initial=0)) % 9973 + 9973)
        extra["edge_attr"] = np.eye(model.shape.edge_channels, dtype=np.float32)[kinds[pair % len(kinds)]]
    if model.shape.graph_channels:
        extra["descriptors"] = rng.normal(size=(count, model.shape.graph_channels)).astype(np.float32)
    return GraphSet(
        x=np.eye(model.in_channels, dtype=np.float32)[rng.integers(0, model.in_channels, N)], ptr=start,
        rowptr=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=N))]), col=col, name="generated", **extra,
    )  # fmt: skip


TOLERANCE = 1e-5  # of logits, relative to the largest logit of the graph if that is above 1
RENUMBERINGS = 8
Answer = Callable[[GraphSet, npt.NDArray[np.int64]], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Comparison:
    """The largest difference between logits, and how many graphs were left out because of ties in the model itself."""

    difference: float
    ties: int


def compare(model: GraphModel, graphs: GraphSet, answer: Answer, where: str) -> Comparison:
    """Compare on single graphs and on batches, whose padding must not matter; a difference is an error.

    If clusters are equally fit, such as those around equivalent atoms, rounding decides which of them is kept, in the
    model as in the program. Such a graph is left out and counted if the two differ.
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
                    f"the exported program differs from the model by {error[place]:.2g} on graph {graph} of {where}; "
                    f"at most {TOLERANCE:g} is allowed. Nothing was written; please report this model"
                )
            ties.add(graph)
        fine = error[error <= TOLERANCE]
        worst = max(worst, float(fine.max(initial=0.0)))
    if G and len(ties) == G:
        raise ConfigError(
            f"the exported program cannot be checked: in each of the {G} graphs of {where} some clusters are equally "
            "fit, and the program keeps others than the model. Nothing was written; train on less regular graphs"
        )
    return Comparison(worst, len(ties))


def has_tie(model: GraphModel, graphs: GraphSet, graph: int) -> bool:
    """Whether rounding decides which clusters of a graph are kept.

    A kept and a dropped cluster are equally fit, or the logits depend on the numbering of the nodes; the second test is
    for methods without clusters, and finds a tie only by chance.
    """
    if fitness_margin(model, graphs, graph) <= TOLERANCE:
        return True
    rng, one = np.random.default_rng(0), np.array([graph])
    expected = _logits(model, graphs, one)
    first = np.array([0])
    for _ in range(RENUMBERINGS):
        other = renumbered(graphs, graph, rng.permutation(int(np.diff(graphs.ptr)[graph])))
        if not _error(_logits(model, other, first), expected).max() <= TOLERANCE:
            return True
    return False


def fitness_margin(model: GraphModel, graphs: GraphSet, graph: int) -> float:
    """min φ(kept) − max φ(dropped), the smallest of all levels; infinite if nothing is dropped or ranked by fitness."""
    batch, network, margin = cut(model, graphs, np.array([graph])), cast(Any, model.eval()), np.inf
    with torch.no_grad(), suppress(ConfigError):  # a method without clusters has no hierarchy
        for step in network.hierarchy(*batch.inputs, **model.more(batch)):
            dropped = torch.ones_like(step.phi, dtype=torch.bool).index_fill(0, step.perm, False)
            if dropped.any():
                margin = min(margin, float(step.phi[~dropped].min() - step.phi[dropped].max()))
    return margin


def renumbered(graphs: GraphSet, graph: int, order: npt.NDArray[np.int64]) -> GraphSet:
    """One graph of a set as its own set, with its nodes permuted: node k is the former node order[k]."""
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
    """The largest difference for each graph, (G,)."""
    error: npt.NDArray[np.float32] = np.abs(given - expected).max(axis=1) / np.maximum(1, np.abs(expected).max(axis=1))
    return error
