"""Copies of graphs that lack something: features of a node, nodes, edges."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from asapool.data.batch import Batch


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
    """One copy of the graph per node of `nodes` (B,), which lacks that node and its edges.

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
