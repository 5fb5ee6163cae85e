"""Vectors of graphs: what a network's head reads, and the features of the clusters that it pooled to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from asapool.data import GraphSet
from asapool.errors import ConfigError
from asapool.models import GraphModel, method
from asapool.models.batches import check_extras, cut
from asapool.training.predictions import pieces

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class NodeVectors(NamedTuple):
    """The pooled nodes of some graphs at one level.

    Args:
        graph: the graph of every pooled node, its number in the set, (K,).
        node: the node of the original graph at the centre of the cluster, counted from 0 within its graph, (K,).
        x: features, (K, F).
    """

    graph: Ints
    node: Ints
    x: Floats


def embed(model: GraphModel, graphs: GraphSet, indices: npt.ArrayLike | None = None) -> Floats:
    """The vector of every graph (or of those named), as it enters the head of the network.

    Args:
        model: a network, from asapool.models.build or a checkpoint.
        graphs: with the features that the model was made for.
        indices: numbers of graphs; None = all.

    Returns:
        Vectors (G, W), rows in the order of the graphs.

    >>> from asapool.data import load
    >>> from asapool.models import ModelConfig, build
    >>> graphs = load("synthetic:cycles?graphs=4")
    >>> embed(build(ModelConfig(hidden=8), graphs.num_features, 2, seed=0), graphs).shape
    (4, 16)
    """
    model.eval()
    check_extras(model, graphs)
    rows = []
    with torch.inference_mode():
        for piece in pieces(graphs, indices):
            batch = cut(model, graphs, piece)
            rows.append(model.embed(*batch.inputs, **model.more(batch)).float().numpy())
    if not rows:  # the width is known from a graph only
        raise ConfigError(f"{graphs.name}: there are no graphs to embed")
    return np.concatenate(rows)


def embed_nodes(model: GraphModel, graphs: GraphSet, level: int, indices: npt.ArrayLike | None = None) -> NodeVectors:
    """The pooled nodes of every graph at a level: the clusters that were kept, with their features.

    Args:
        model: a network that pools by keeping nodes or clusters.
        graphs: with the features that the model was made for.
        level: 1 = after the first pooling, up to the number of poolings.
        indices: numbers of graphs; None = all.

    Returns:
        One row per kept cluster, graph by graph.
    """
    steps = _steps(model)
    model.eval()
    check_extras(model, graphs)
    parts = []
    with torch.inference_mode():
        for piece in pieces(graphs, indices):
            batch = cut(model, graphs, piece)
            parts.append(_level_of(steps(batch.x, model.pack(*batch.inputs, batch.edge_attr)), batch, level, piece))
    return NodeVectors(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _steps(model: GraphModel) -> Any:
    """The function that gives the poolings of a batch, or the reason why there are none."""
    why = method(model.config.method).no_levels
    steps = getattr(getattr(model, "encoder", None), "steps", None)
    if why is not None or steps is None:
        why = why or f"The method {model.config.method} does not report its levels"
        raise ConfigError(f"{why}, so it has no pooled nodes. Leave --level out to get one vector per graph")
    return steps


def _level_of(steps: Any, batch: Any, level: int, piece: Ints) -> NodeVectors:
    origin = torch.arange(batch.x.size(0))  # original node of every node of the level before
    number = 0
    for number, step in enumerate(steps, start=1):
        origin = origin[step.perm]
        if number == level:
            batch_of = np.repeat(np.arange(len(piece)), step.ptr.diff().numpy())
            node = origin.numpy() - batch.ptr.numpy()[batch_of]
            return NodeVectors(piece[batch_of], node, step.x.float().numpy())
    raise ConfigError(f"level must lie in 1 to {number}, the poolings of this model, got {level}")
