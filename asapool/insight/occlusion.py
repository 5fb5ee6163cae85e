"""How much the answer loses without a node: one node at a time, many copies of the graph in a batch."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from asapool.data.batch import Batch
from asapool.errors import choose
from asapool.insight.level import Floats
from asapool.insight.log_odds import answer, log_odds
from asapool.models import GraphClassifier

PIECE = 16_384  # nodes that go through the model at once


def occlusion_importance(
    model: GraphClassifier, batch: Batch, c: int, occlude: Literal["remove", "zero"] = "remove"
) -> Floats:
    """o_i = log odds_c of the graph − log odds_c without node i, (N,); call it within `judging`.

    occlude: "remove" takes the node and its edges out, "zero" leaves it in place without features.
    """
    choose("occlude", occlude, ("remove", "zero"))
    N = batch.x.size(0)
    # nothing is left of a single node: then an empty one takes its place
    change = without if occlude == "remove" and N > 1 else blanked
    step = max(1, PIECE // max(N, 1))
    with torch.no_grad():
        whole = log_odds(answer(model, batch), c)
        pieces = [torch.arange(first, min(first + step, N)) for first in range(0, N, step)]
        parts = [log_odds(answer(model, change(batch, nodes)), c) for nodes in pieces]
    found: Floats = (whole - torch.cat(parts) if parts else whole[:0]).double().numpy()
    return found


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
        y=batch.y.repeat(B),
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
        y=batch.y.repeat(B),
    )
