"""Models on padded batches: dense tensors in, logits out; large batches in groups of graphs of similar size.

A group takes a few batched matrix products with static shapes, which are fast on a GPU. The sizes of the graphs are
read once per batch; nothing else synchronises with the device. Graphs that are too large to pad are computed packed,
and so are batches that batch normalisation would force into one padded group that is too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from asapool.errors import ConfigError
from asapool.kernels import DenseGraph, DensePattern, Padding
from asapool.kernels.dense import pad
from asapool.kernels.shards import current_shard
from asapool.nn.norms import NodeNorm

if TYPE_CHECKING:
    from asapool.models.classifier import GraphModel


class PaddedModel(nn.Module):
    """The logits of a trained model for a padded batch, equal to those of the model up to rounding.

    Entry (b, i, j) of the adjacency is the weight A_ij of the edge j → i of graph b, 0 if there is none. Real nodes
    come first in every graph; the values in rows of padding are ignored.

    Args:
        model: a trained model, whose weights are shared.

    >>> from asapool.models import ModelConfig, build
    >>> padded = PaddedModel(build(ModelConfig(hidden=8, levels=1), in_channels=3, num_classes=2, seed=0).eval())
    >>> adjacency = torch.tensor([[[0., 1., 0.], [1., 0., 0.], [0., 0., 0.]]])  # one edge, and one row of padding
    >>> padded(torch.ones(1, 3, 3), adjacency, sizes=torch.tensor([2])).shape
    torch.Size([1, 2])
    """

    def __init__(self, model: GraphModel) -> None:
        super().__init__()
        reason = model.why_not_padded()
        if reason is not None:
            raise ConfigError(f"{reason}, so a model of the method {model.config.method!r} cannot read padded batches")
        self.model = model

    def forward(
        self, x: Tensor, adjacency: Tensor, sizes: Tensor, edge_attr: Tensor | None = None,
        graph_attr: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """The logits (B, C).

        Args:
            x: node features (B, N, F).
            adjacency: weights (B, N, N).
            sizes: nodes of each graph (B,), int64.
            edge_attr: edge features (B, N, N, D), for a model that reads them.
            graph_attr: features of each graph (B, D), for a model that reads them.
        """
        padding = Padding(sizes, x.size(1))
        real = padding.mask[:, :, None] & padding.mask[:, None, :]
        weight = torch.where(real, adjacency, 0.0)
        if edge_attr is not None:
            edge_attr = torch.where((weight != 0)[..., None], edge_attr, 0.0)
        x = torch.where(padding.mask[:, :, None], x, 0.0)
        pattern = DensePattern(padding, (weight != 0) | torch.diag_embed(padding.mask))
        return self.model.padded(x, DenseGraph(pattern, weight, edge_attr), graph_attr=graph_attr)


Ints = npt.NDArray[np.int64]
# numbers of nodes that graphs are padded to: few enough that every shape soon has been seen
WIDTHS = (*range(8, 64, 8), *range(64, 128, 16), *range(128, 256, 32), *range(256, 513, 64))
ENTRIES = 1 << 26  # limit on the entries of a padded adjacency, (B, N, N)
# time of a training step in units of one entry of the adjacency, fitted to those of PROTEINS and NCI1 on a CPU
GROUP = 100_000  # of a group, however small
NODE = 40  # of a padded node


class PaddedGroup(NamedTuple):
    """Graphs that are padded to the same number of nodes."""

    graphs: Ints
    nodes: int


class PackedBatch(NamedTuple):
    """A packed batch, with the tensors that a model takes."""

    x: Tensor
    ptr: Tensor
    rowptr: Tensor
    col: Tensor
    weight: Tensor | None
    edge_attr: Tensor | None
    graph_attr: Tensor | None


def groups(sizes: Ints, together: bool = False) -> tuple[list[PaddedGroup], Ints]:
    """The groups of a batch, and the graphs that are computed packed.

    Args:
        sizes: nodes of each graph, (B,).
        together: put all graphs into one group, as batch normalisation requires.

    The groups minimise the time of a step: one that takes in smaller graphs is larger, but every group has a cost.

    >>> [(group.graphs.tolist(), group.nodes) for group in groups(np.array([30, 7, 31, 290, 600, 32]))[0]]
    [([0, 1, 2, 5], 32), ([3], 320)]
    >>> groups(np.array([30, 600]), together=True)
    ([], array([0, 1]))
    """
    if together:
        width = _width(int(sizes.max(initial=0)))
        if width is None or len(sizes) * width**2 > ENTRIES:
            return [], np.arange(len(sizes))
        return [PaddedGroup(np.arange(len(sizes)), width)], np.zeros(0, np.int64)
    place = np.searchsorted(WIDTHS, sizes)
    padded, first = list[PaddedGroup](), 0
    for last in _cuts(np.bincount(place, minlength=len(WIDTHS) + 1)[:-1]):
        graphs, width = np.flatnonzero((place >= first) & (place <= last)), WIDTHS[last]
        most = max(1, ENTRIES // width**2)
        padded += [PaddedGroup(graphs[start : start + most], width) for start in range(0, len(graphs), most)]
        first = last + 1
    return padded, np.flatnonzero(place == len(WIDTHS))


def _cuts(counts: Ints) -> list[int]:
    """The last width of each group of the cheapest division of graphs; counts (W,): how many need each width.

    The cheapest division of the graphs up to width k ends with a group of the widths j + 1 … k, for the best j.
    """
    widths = np.array(WIDTHS)
    upto = np.concatenate([[0], np.cumsum(counts)])
    best, before = np.zeros(len(counts) + 1), np.zeros(len(counts) + 1, np.int64)
    for k, width in enumerate(widths, 1):
        graphs = upto[k] - upto[:k]
        cost = best[:k] + np.where(graphs > 0, GROUP + graphs * width * (width + NODE), 0)
        before[k] = len(cost) - 1 - int(np.argmin(cost[::-1]))  # in a tie the narrowest group
        best[k] = cost[before[k]]
    cuts, k = [], len(counts)
    while k > 0:
        if upto[k] > upto[before[k]]:
            cuts.append(k - 1)
        k = int(before[k])
    return cuts[::-1]


def dense_logits(model: GraphModel, batch: PackedBatch) -> Tensor | None:
    """The logits (B, C) of a packed batch, computed group by group; None if all of it should be computed packed."""
    if current_shard() is not None:  # processes that share a batch must take the same steps
        return None
    # the only synchronisation with the device
    ptr, eptr = torch.stack([batch.ptr, batch.rowptr[batch.ptr]]).cpu().numpy()
    together = model.training and any(isinstance(module, NodeNorm) for module in model.modules())
    padded, packed = groups(np.diff(ptr), together)
    if not padded:
        return None
    parts = []
    for graphs, nodes in padded:
        part = take_graphs(batch, graphs, ptr, eptr)
        x, graph = pad(*part[:6], nodes=nodes)
        parts.append(model.padded(x, graph, graph_attr=part.graph_attr))
    if len(packed):
        part = take_graphs(batch, packed, ptr, eptr)
        parts.append(model.packed(*part[:5], **{name: getattr(part, name) for name in model.reads}))
    order = np.concatenate([*(group.graphs for group in padded), packed])
    return torch.cat(parts)[torch.from_numpy(np.argsort(order)).to(batch.x.device)]


def take_graphs(batch: PackedBatch, graphs: Ints, ptr: Ints, eptr: Ints) -> PackedBatch:
    """Some graphs of a packed batch; ptr and eptr (B+1,) are where the nodes and edges of each graph begin."""
    device, sizes, counts = batch.x.device, np.diff(ptr)[graphs], np.diff(eptr)[graphs]
    new_ptr, new_eptr = (np.concatenate([[0], np.cumsum(lengths)]) for lengths in (sizes, counts))

    def on_device(values: Ints) -> Tensor:
        return torch.from_numpy(values).to(device)

    nodes = on_device(np.arange(new_ptr[-1]) + np.repeat(ptr[graphs] - new_ptr[:-1], sizes))
    entries = on_device(np.arange(new_eptr[-1]) + np.repeat(eptr[graphs] - new_eptr[:-1], counts))
    rowptr = batch.rowptr[nodes] + on_device(np.repeat(new_eptr[:-1] - eptr[graphs], sizes))
    return PackedBatch(
        x=batch.x[nodes],
        ptr=on_device(new_ptr),
        rowptr=torch.cat([rowptr, on_device(new_eptr[-1:])]),
        col=batch.col[entries] + on_device(np.repeat(new_ptr[:-1] - ptr[graphs], counts)),
        weight=None if batch.weight is None else batch.weight[entries],
        edge_attr=None if batch.edge_attr is None else batch.edge_attr[entries],
        graph_attr=None if batch.graph_attr is None else batch.graph_attr[on_device(graphs)],
    )


def _width(nodes: int) -> int | None:
    return next((width for width in WIDTHS if nodes <= width), None)
