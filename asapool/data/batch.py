"""A mini-batch: some graphs of a packed set as torch tensors, with nodes numbered from 0 within the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.data.csr import Floats, Ints, pointer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from asapool.data.graphset import GraphSet


@dataclass(frozen=True, eq=False)
class Batch:
    """B graphs with N nodes and E edges in total; row i of the CSR lists the neighbours j of the edges j -> i."""

    x: Tensor  # (N, F) float32
    ptr: Tensor  # (B+1,) int64, first node of each graph
    rowptr: Tensor  # (N+1,) int64
    col: Tensor  # (E,) int64
    weight: Tensor | None  # (E,) float32, None = all ones
    y: Tensor  # (B,) int64, -1 = no label; or (B, T) float32, NaN = missing
    edge_attr: Tensor | None = None  # (E, D) float32, if requested
    graph_attr: Tensor | None = None  # (B, D) float32, features of a whole graph

    def __len__(self) -> int:
        return int(self.ptr.shape[0]) - 1

    @property
    def batch(self) -> Tensor:
        """The graph of every node, (N,): what PyG calls batch."""
        import torch

        return torch.repeat_interleave(torch.arange(len(self), device=self.ptr.device), self.ptr.diff())

    @property
    def edge_index(self) -> Tensor:
        """The edges as PyG lists them, (2, E): row 0 = source j, row 1 = target i."""
        import torch

        nodes = torch.arange(self.rowptr.shape[0] - 1, device=self.rowptr.device)
        return torch.stack([self.col, torch.repeat_interleave(nodes, self.rowptr.diff())])

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        weight = None if self.weight is None else self.weight.to(device)
        return Batch(
            self.x.to(device), self.ptr.to(device), self.rowptr.to(device), self.col.to(device), weight,
            self.y.to(device), *(None if t is None else t.to(device) for t in (self.edge_attr, self.graph_attr)),
        )  # fmt: skip

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """The tensors that every model takes."""
        return self.x, self.ptr, self.rowptr, self.col, self.weight


class Cutter:
    """Cuts batches out of one set; what all batches need is computed once.

    Node numbers count within their graph and take as few bytes as they need: the graphs of a batch are scattered over
    the set, so cutting one mostly takes the time to fetch them from memory.
    """

    def __init__(self, graphs: GraphSet) -> None:
        begin = graphs.rowptr[graphs.ptr]
        self.first, self.sizes = graphs.ptr[:-1], np.diff(graphs.ptr)  # (G,) first node, nodes
        self.begin, self.counts = begin[:-1], np.diff(begin)  # (G,) first edge, edges
        self.degree = _narrow(np.diff(graphs.rowptr))  # (N,)
        self.local = _narrow(graphs.col - self.first.repeat(self.counts))  # (E,) columns, counted within the graph
        self.x, self.weight, self.edge_attr = graphs.x, graphs.weight, graphs.edge_attr
        self.y = graphs.y if graphs.y.ndim == 1 else graphs.y.astype(np.float32)
        self.hot = _hot(graphs.x)

    def cut(self, indices: Ints, edge_attr: bool = False) -> Batch:
        """The graphs at indices (B,), in that order; the tensors share no memory with the set."""
        from torch import from_numpy

        sizes, counts = self.sizes.take(indices), self.counts.take(indices)
        ptr, eptr = pointer(sizes), pointer(counts)
        nodes = np.arange(int(ptr[-1]))
        nodes += (self.first.take(indices) - ptr[:-1]).repeat(sizes)
        entries = np.arange(int(eptr[-1]))
        entries += (self.begin.take(indices) - eptr[:-1]).repeat(counts)
        return Batch(
            x=from_numpy(self._rows(nodes)),
            ptr=from_numpy(ptr),
            rowptr=from_numpy(pointer(self.degree.take(nodes))),
            col=from_numpy(ptr[:-1].repeat(counts) + self.local.take(entries)),
            weight=None if self.weight is None else from_numpy(self.weight.take(entries)),
            y=self.targets(indices),
            edge_attr=from_numpy(self.edge_attr.take(entries, axis=0))
            if edge_attr and self.edge_attr is not None
            else None,
        )

    def targets(self, indices: Ints) -> Tensor:
        """y of the graphs at indices."""
        from torch import from_numpy

        return from_numpy(self.y.take(indices, axis=0))

    def _rows(self, nodes: Ints) -> Floats:
        """The rows of x, (N, F); one-hot rows are rebuilt, which moves half the bytes of copying them."""
        if self.hot is None:
            return self.x.take(nodes, axis=0)
        N, F = len(nodes), self.x.shape[1]
        x = np.zeros(N * F, np.float32)
        x[np.arange(0, N * F, F) + self.hot.take(nodes)] = 1
        return x.reshape(N, F)


def _narrow(values: Ints) -> npt.NDArray[Any]:
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _hot(x: Floats) -> npt.NDArray[Any] | None:
    """The column of the 1 in every row of x (N,), or None unless all rows are one-hot."""
    if not x.size or np.count_nonzero(x) != len(x) or bool((x.max(axis=1) != 1).any()):
        return None
    return _narrow(x.argmax(axis=1))
