"""Graphs to compare an exported model on: those of its training data, or generated ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet, Split, load
from asapool.errors import AsapoolError
from asapool.models.checkpoint import LoadedModel
from asapool.training.settings import RunSettings, read_graphs

LARGEST = 400  # nodes: a padded batch needs their square


@dataclass(frozen=True)
class Sample:
    """Graphs, and where they come from."""

    graphs: GraphSet
    source: str


def sample_graphs(loaded: LoadedModel, most: int) -> Sample:
    """At most that many graphs: of the run's validation and training parts, of the data it names, or generated."""
    for find in (_of_run, _of_summary, _molecules):
        try:
            found = find(loaded)
            if found is not None:
                loaded.check(found.graphs)
                small = np.flatnonzero(np.diff(found.graphs.ptr) <= LARGEST)[:most]
                if len(small):
                    return Sample(found.graphs.subset(small), found.source)
        except (AsapoolError, OSError, ValueError):  # the data may have moved since
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
        parent = (rng.random(n - 1) * child).astype(np.int64)  # a random tree, and some edges more
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
