"""A padded batch of graphs: (B, N, N) matrices instead of packed rows.

Real nodes come first in every graph; the rest is padding. Rows and columns of padding are zero in every matrix, so the
features of padding (a bias, for example) reach no real node and no readout.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from asapool.kernels.graph import Graph, Loops
from asapool.kernels.ratio import kept_count


class Padding:
    """The number of real nodes of each graph; used in place of the pointer `ptr` of a packed batch.

    Args:
        sizes: number of real nodes of each graph, (B,).
        nodes: padded number of nodes N, the same for all graphs.

    >>> Padding(torch.tensor([2, 1]), 3).mask.int().tolist()
    [[1, 1, 0], [1, 0, 0]]
    """

    def __init__(self, sizes: Tensor, nodes: int) -> None:
        self.sizes, self.nodes = sizes, nodes

    def diff(self) -> Tensor:
        """The sizes (B,), as `ptr.diff()` of a packed batch."""
        return self.sizes

    def kept(self, ratio: float | int) -> Padding:
        """The sizes after pooling: ⌈kN⌉ of every graph and of the padded size, without waiting for the device."""
        if isinstance(ratio, int):
            return Padding(self.sizes.clip(max=ratio), torch.sym_min(self.nodes, ratio))  # type: ignore[no-untyped-call]
        return Padding(kept_count(self.sizes, ratio), kept_count(self.nodes, ratio))

    @cached_property
    def mask(self) -> Tensor:
        """True for real nodes, (B, N)."""
        return torch.arange(self.nodes, device=self.sizes.device) < self.sizes[:, None]


class DensePattern:
    """The sparsity pattern of the adjacency of a padded batch.

    Args:
        ptr: the sizes of the graphs.
        entries: (b, i, j) is True if graph b has the edge j → i, and on the diagonal of real nodes, (B, N, N).
    """

    def __init__(self, ptr: Padding, entries: Tensor) -> None:
        self.ptr, self.entries = ptr, entries

    def ones(self, dtype: torch.dtype) -> Tensor:
        """A weight of 1 for every entry, (B, N, N)."""
        return self.entries.to(dtype)

    def shares(self, weight: Tensor) -> Tensor:
        """w_ij / Σ_j w_ij, (B, N, N): every row sums to 1, or to 0 if it has no weight."""
        total = weight.sum(2, keepdim=True)
        return weight / torch.where(total > 0, total, torch.ones_like(total))

    def fill_diagonal(self, weight: Tensor, value: float) -> Tensor:
        """The weights (B, N, N) with another value on the diagonal of the real nodes."""
        return torch.where(self.eye, value, weight)

    @cached_property
    def eye(self) -> Tensor:
        """The diagonal of the real nodes, (B, N, N)."""
        return torch.diag_embed(self.ptr.mask)


class DenseGraph(Graph):
    """A padded batch with its edge weights (B, N, N) and, if it has them, edge features (B, N, N, D).

    Entry (b, i, j) belongs to the edge j → i of graph b.
    """

    pattern: DensePattern  # type: ignore[assignment]

    def __init__(self, pattern: DensePattern, weight: Tensor, edge_attr: Tensor | None = None) -> None:
        super().__init__(pattern, weight, edge_attr)  # type: ignore[arg-type]

    def _hat(self, loops: Loops) -> Tensor:
        eye = self.pattern.eye
        if loops == "add":
            return self.weight + eye.to(self.weight.dtype)
        return torch.where(eye & (self.weight == 0), 1.0, self.weight)


def pad(
    x: Tensor,
    ptr: Tensor,
    rowptr: Tensor,
    col: Tensor,
    weight: Tensor | None = None,
    edge_attr: Tensor | None = None,
    nodes: int | None = None,
) -> tuple[Tensor, DenseGraph]:
    """Pad a batch in CSR rows, as a data set stores it.

    Args:
        x: node features, (ΣN, F).
        ptr: first node of each graph, (B+1,).
        rowptr: first edge of each node, (ΣN+1,).
        col: neighbours j of the edges j → i of each row i, (E,).
        weight: edge weights, (E,); None = all ones.
        edge_attr: edge features, (E, D), if any.
        nodes: padded number of nodes; None = that of the largest graph, which synchronises with the device.

    Returns:
        The features (B, N, F) and the graph.

    >>> x, graph = pad(torch.ones(3, 1), torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2, 2]), torch.tensor([1, 0]))
    >>> x.squeeze(2).tolist(), graph.weight[0].tolist()
    ([[1.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]])
    """
    sizes, total = ptr.diff(), x.size(0)
    B, N = sizes.numel(), int(sizes.max()) if nodes is None and sizes.numel() else (nodes or 0)
    batch = torch.repeat_interleave(sizes, output_size=total)
    local = torch.arange(total, device=x.device) - ptr[batch]
    place = batch * N + local
    padded = x.new_zeros(B * N, x.size(1)).index_copy(0, place, x).view(B, N, x.size(1))
    row = torch.repeat_interleave(rowptr.diff(), output_size=col.numel())
    entry = place[row] * N + local[col]
    values: Any = x.new_ones(col.numel()) if weight is None else weight.to(x.dtype)
    A = x.new_zeros(B * N * N).index_add(0, entry, values).view(B, N, N)
    present = torch.zeros(B * N * N, dtype=torch.bool, device=x.device)
    present = present.index_fill(0, entry, True).view(B, N, N)
    padding = Padding(sizes, N)
    if edge_attr is not None:
        D = edge_attr.size(1)
        edge_attr = x.new_zeros(B * N * N, D).index_add(0, entry, edge_attr.to(x.dtype)).view(B, N, N, D)
    return padded, DenseGraph(DensePattern(padding, present | torch.diag_embed(padding.mask)), A, edge_attr)


def reach(pattern: DensePattern, hops: int) -> DensePattern:
    """Structure of (A + I)^h: row i lists every node from which i is at most h hops away."""
    step = pattern.entries.to(torch.float32)
    reached = step
    for _ in range(hops - 1):
        reached = (reached @ step > 0).to(torch.float32)
    return DensePattern(pattern.ptr, reached > 0)
