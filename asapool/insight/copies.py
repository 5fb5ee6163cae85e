"""Copies of graphs without some features, nodes or edges, packed into batches, and the model's outputs for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asapool.data import GraphSet
from asapool.data.batch import Batch
from asapool.data.targets import Target
from asapool.insight.levels import Floats, Ints
from asapool.models import GraphModel
from asapool.models.batches import cut
from asapool.training.device import on_device_of
from asapool.training.predictions import pieces


def blanked(batch: Batch, nodes: Tensor) -> Batch:
    """One copy of the graph per node of `nodes` (B,), in which that node has no features."""
    B, N, E = nodes.numel(), batch.x.size(0), batch.col.numel()
    x = batch.x.repeat(B, 1)
    x[torch.arange(B) * N + nodes] = 0
    shift = torch.arange(B).repeat_interleave(E)
    return Batch(
        x=x,
        ptr=torch.arange(B + 1) * N,
        rowptr=torch.cat([batch.rowptr[:1], batch.rowptr.diff().repeat(B).cumsum(0)]),
        col=batch.col.repeat(B) + shift * N,
        weight=None if batch.weight is None else batch.weight.repeat(B),
        y=batch.y.repeat(B, *[1] * (batch.y.dim() - 1)),
        edge_attr=None if batch.edge_attr is None else batch.edge_attr.repeat(B, 1),
        graph_attr=None if batch.graph_attr is None else batch.graph_attr.repeat(B, 1),
    )


def without(batch: Batch, nodes: Tensor) -> Batch:
    """One copy of the graph per node of `nodes` (B,), without that node and its edges.

    >>> path = Batch(torch.eye(3), torch.tensor([0, 3]), torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1]),
    ...              None, torch.tensor([0]))
    >>> ends = without(path, torch.tensor([0, 1]))  # an edge is left, or nothing but two nodes
    >>> ends.ptr.tolist(), ends.rowptr.tolist(), ends.col.tolist()
    ([0, 2, 4], [0, 1, 2, 2, 2], [1, 0])
    """
    B, N = nodes.numel(), batch.x.size(0)
    row = torch.arange(N).repeat_interleave(batch.rowptr.diff())
    kept = torch.arange(N) != nodes[:, None]  # (B, N)
    copy, entry = ((row != nodes[:, None]) & (batch.col != nodes[:, None])).nonzero(as_tuple=True)
    gone = nodes[copy]
    new_row = row[entry] - (row[entry] > gone).long() + copy * (N - 1)
    new_col = batch.col[entry] - (batch.col[entry] > gone).long() + copy * (N - 1)
    count = torch.bincount(new_row, minlength=B * (N - 1))
    return Batch(
        x=batch.x.repeat(B, 1)[kept.view(-1)],
        ptr=torch.arange(B + 1) * (N - 1),
        rowptr=torch.cat([count.new_zeros(1), count.cumsum(0)]),
        col=new_col,
        weight=None if batch.weight is None else batch.weight[entry],
        y=batch.y.repeat(B, *[1] * (batch.y.dim() - 1)),
        edge_attr=None if batch.edge_attr is None else batch.edge_attr[entry],
        graph_attr=None if batch.graph_attr is None else batch.graph_attr.repeat(B, 1),  # fingerprints stay as they are
    )


def drop_nodes(batch: Batch, keep: Tensor) -> Batch:
    """The batch without the nodes where keep (N,) is False, and without their edges.

    Fingerprints that belong to a whole graph (graph_attr) stay as they are.

    >>> path = Batch(torch.eye(3), torch.tensor([0, 3]), torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1]),
    ...              None, torch.tensor([0]))
    >>> edge = drop_nodes(path, torch.tensor([False, True, True]))
    >>> edge.ptr.tolist(), edge.rowptr.tolist(), edge.col.tolist()
    ([0, 2], [0, 1, 2], [1, 0])
    """
    row = torch.repeat_interleave(batch.rowptr.diff())
    rest = drop_edges(batch, keep[row] & keep[batch.col])
    before = torch.cat([keep.new_zeros(1, dtype=torch.long), keep.long().cumsum(0)])  # nodes kept before each node
    degree = rest.rowptr.diff()[keep]
    return replace(
        rest,
        x=batch.x[keep],
        ptr=before[batch.ptr],
        rowptr=torch.cat([degree.new_zeros(1), degree.cumsum(0)]),
        col=before[rest.col],
    )


def drop_edges(batch: Batch, keep: Tensor) -> Batch:
    """The batch without the entries where keep (E,) is False; every node stays."""
    before = torch.cat([keep.new_zeros(1, dtype=torch.long), keep.long().cumsum(0)])
    return replace(
        batch,
        rowptr=before[batch.rowptr],
        col=batch.col[keep],
        weight=None if batch.weight is None else batch.weight[keep],
        edge_attr=None if batch.edge_attr is None else batch.edge_attr[keep],
    )


PIECE = 16_384  # nodes per forward pass


def logits_of(model: GraphModel, batch: Batch, x: Tensor | None = None) -> Tensor:
    """Logits (B, C) of a batch, with other node features if given; computed where the model is, returned on the CPU."""
    batch = on_device_of(model, batch if x is None else replace(batch, x=x))
    logits: Tensor = model(*batch.inputs, **model.more(batch))
    return logits.cpu()


def answers(model: GraphModel, batch: Batch) -> Tensor:
    """The model's logits for a batch in float64, (B, C)."""
    return logits_of(model, batch).double()


def answers_of(model: GraphModel, graphs: GraphSet) -> Floats:
    """The model's logits for all graphs of a set, (G, C)."""
    with torch.no_grad():
        rows = [answers(model, cut(model, graphs, piece)).numpy() for piece in pieces(graphs)]
    return np.concatenate([np.zeros((0, model.num_classes)), *rows])


def answers_without(
    model: GraphModel, graphs: GraphSet, graph: Ints, ptr: Ints, node: Ints, *, keep: bool = False
) -> Floats:
    """The logits for one graph per removal, without the nodes of that removal.

    Args:
        model: In evaluation mode.
        graphs: The set.
        graph: The graph of each removal, (R,).
        ptr: Where the nodes of each removal begin, (R+1,).
        node: The nodes to remove, numbered through the whole set; at least one node of every graph must remain.
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
    """The quantity in which a change is measured, (B, C): log odds of classes and of yes, or values in their units."""
    if target.kind == "classification":
        return all_log_odds(outputs)
    if target.kind == "regression" and target.scale:
        values: Floats = outputs * np.array(target.scale) + np.array(target.mean)
        return values
    return outputs


def target_of(model: GraphModel, names: tuple[str, ...]) -> Target:
    """The target of a model; classes if the network does not have one."""
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
