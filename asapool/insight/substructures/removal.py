"""Graphs with some nodes or edges taken out, packed into batches, and what the model answers to them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asapool.data import GraphSet
from asapool.data.batch import Batch
from asapool.data.targets import Target
from asapool.insight.copies import drop_nodes
from asapool.insight.levels import Floats, Ints
from asapool.models import GraphModel
from asapool.models.batches import cut
from asapool.training.predictions import pieces

PIECE = 16_384  # nodes that go through the model at once


def answers(model: GraphModel, batch: Batch) -> Tensor:
    """The model's answer to a batch, (B, C)."""
    logits: Tensor = model(*batch.inputs, **model.more(batch))
    return logits.double()


def answers_of(model: GraphModel, graphs: GraphSet) -> Floats:
    """The model's answers to all graphs of a set, (G, C)."""
    with torch.no_grad():
        rows = [answers(model, cut(model, graphs, some)).numpy() for some in pieces(graphs)]
    return np.concatenate([np.zeros((0, model.num_classes)), *rows])


def answers_without(
    model: GraphModel, graphs: GraphSet, graph: Ints, ptr: Ints, node: Ints, *, keep: bool = False
) -> Floats:
    """The answer to one graph per removal, without the nodes of that removal.

    Args:
        model: In evaluation mode.
        graphs: The set.
        graph: The graph of each removal, (R,).
        ptr: Where the nodes of each removal begin, (R+1,).
        node: The nodes to remove, numbered through the whole set; some nodes of every graph must be left.
        keep: Keep these nodes and remove all others instead.

    Returns:
        Logits (R, C).
    """
    sizes = np.diff(graphs.ptr)[graph]
    number = (np.cumsum(sizes) - 1) // PIECE if len(graph) else sizes
    rows: list[npt.NDArray[np.float64]] = [np.zeros((0, model.num_classes))]
    with torch.no_grad():
        for part in np.split(np.arange(len(graph)), np.flatnonzero(np.diff(number)) + 1):
            if not len(part):
                continue
            batch = cut(model, graphs, graph[part])
            a, b = int(ptr[part[0]]), int(ptr[part[-1] + 1])
            owner = np.repeat(np.arange(len(part)), np.diff(ptr[part[0] : part[-1] + 2]))
            inside = node[a:b] - graphs.ptr[graph[part]][owner] + batch.ptr.numpy()[owner]
            mask = torch.full((batch.x.size(0),), not keep)
            mask[torch.from_numpy(inside)] = keep
            rows.append(answers(model, drop_nodes(batch, mask)).numpy())
    return np.concatenate(rows)


def effects(outputs: Floats, target: Target) -> Floats:
    """What a change is measured in, (B, C): log odds of classes and of yes, measured values in their units."""
    if target.kind == "classification":
        return all_log_odds(outputs)
    if target.kind == "regression" and target.scale:
        values: Floats = outputs * np.array(target.scale) + np.array(target.mean)
        return values
    return outputs


def target_of(model: GraphModel, names: tuple[str, ...]) -> Target:
    """What the outputs of a model mean; a network without a note about it answers with classes."""
    return model.target or Target(classes=names)


def all_log_odds(logits: Floats) -> Floats:
    """ln p_c/(1 − p_c) of every class, (B, C); with a single output it is that output.

    >>> all_log_odds(np.array([[0.5, 2.0]])).tolist()
    [[-1.5, 1.5]]
    """
    C = logits.shape[1]
    if C == 1:
        return logits
    columns = []
    for c in range(C):
        others = np.delete(logits, c, axis=1)
        top = others.max(axis=1, keepdims=True)
        columns.append(logits[:, c] - (top[:, 0] + np.log(np.exp(others - top).sum(axis=1))))
    return np.stack(columns, axis=1)
