"""The packed batch of graphs that every kernel works on.

All graphs of a batch are concatenated in one CSR structure: row i lists the neighbourhood of node i, columns are
sorted, and the entry (i, i) is always present (with weight 0 if the graph has no self-loop). A cluster c_1(i) is then
exactly row i, and the assignment S shares its structure with A.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

Loops = Literal["add", "fill"]


Array = np.ndarray[Any, np.dtype[Any]]


class Rows(NamedTuple):
    """A pattern as plain arrays, for compiled loops: by row, and by column with the position of each entry in `col`."""

    rowptr: Array
    col: Array
    rowptr_t: Array
    col_t: Array
    edge_t: Array


class Pattern:
    """The sparsity pattern of a matrix, by row and by column.

    ptr (B+1,) first node of each graph; rowptr (N+1,), col (E,) the rows, columns ascending; diag (N,) positions of the
    entries (i, i); rowptr_t (N+1,), col_t (E,), edge_t (E,) the same entries by column, where edge_t is the position of
    each one in `col`.
    """

    def __init__(
        self, ptr: Tensor, rowptr: Tensor, col: Tensor, diag: Tensor, rowptr_t: Tensor, col_t: Tensor, edge_t: Tensor
    ) -> None:
        self.ptr, self.rowptr, self.col, self.diag = ptr, rowptr, col, diag
        self.rowptr_t, self.col_t, self.edge_t = rowptr_t, col_t, edge_t
        self._rows: Rows | None = None

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The tensors that a compiled loop needs: rowptr, col, rowptr_t, col_t, edge_t."""
        return self.rowptr, self.col, self.rowptr_t, self.col_t, self.edge_t

    @property
    def structure(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The arguments of a Pattern after ptr: rowptr, col, diag, rowptr_t, col_t, edge_t."""
        return self.rowptr, self.col, self.diag, self.rowptr_t, self.col_t, self.edge_t

    @property
    def rows(self) -> Rows:
        """`tensors` as arrays; cached, since every step on a graph uses them."""
        if self._rows is None:
            self._rows = Rows(*(t.numpy() for t in self.tensors))
        return self._rows

    @property
    def row(self) -> Tensor:
        """Row of each entry, (E,)."""
        return torch.repeat_interleave(self.rowptr.diff(), output_size=self.col.numel())

    def ones(self, dtype: torch.dtype) -> Tensor:
        """A weight of 1 for every entry, (E,)."""
        return torch.ones_like(self.col, dtype=dtype)

    def shares(self, weight: Tensor) -> Tensor:
        """w_ij / Σ_j w_ij, (E,): every row sums to 1, or to 0 if it has no weight."""
        row = self.row
        wide = weight.to(torch.promote_types(weight.dtype, torch.float32))  # a sum of ones in bfloat16 stops at 256
        total = wide.new_zeros(self.diag.numel()).index_add(0, row, wide)
        return (wide / torch.where(total > 0, total, torch.ones_like(total))[row]).to(weight.dtype)

    def fill_diagonal(self, weight: Tensor, value: float) -> Tensor:
        """The weights (E,) with another value on the diagonal."""
        return weight.index_fill(0, self.diag, value)

    @property
    def batch(self) -> Tensor:
        """Graph of each node, (N,)."""
        return torch.repeat_interleave(self.ptr.diff(), output_size=self.diag.numel())


class Graph:
    """A packed batch with its edge weights and, if it has them, edge features.

    Entry (i, j) of weight (E,) is the weight A_ij of the edge j → i, that of edge_attr (E, D) its features e_ij; an
    entry that is not an edge, such as that of an absent self-loop, has zeros.

    Â and GCN's weights are used by convolution, attention and coarsening, so each is computed once per graph, and again
    after the weights were changed in place.
    """

    def __init__(self, pattern: Pattern, weight: Tensor, edge_attr: Tensor | None = None) -> None:
        self.pattern = pattern
        self.weight = weight
        self.edge_attr = edge_attr
        self._cache: dict[tuple[str, str], tuple[object, Tensor]] = {}

    def hat(self, loops: Loops) -> Tensor:
        """Â: A + I ("add"), or A with 1 on the diagonal only if the entry there is 0 ("fill"), (E,)."""
        return self.cached("hat", loops, self._hat)

    def _hat(self, loops: Loops) -> Tensor:
        diag, weight = self.pattern.diag, self.weight
        extra = weight.new_ones(diag.numel()) if loops == "add" else (weight[diag] == 0).to(weight.dtype)
        return weight.index_add(0, diag, extra)

    def cached(self, name: str, loops: Loops, make: Callable[[Loops], Tensor]) -> Tensor:
        """make(loops), computed once as long as the weights do not change."""
        weight, state = self.weight, None
        if not torch.compiler.is_compiling():
            if weight.requires_grad and weight.is_leaf:
                return make(loops)  # trained weights: every backward pass needs its own forward pass
            # a result computed without gradients or in inference mode cannot be used in training
            version = 0 if weight.is_inference() else weight._version
            state = (version, torch.is_grad_enabled() or not weight.requires_grad, torch.is_inference_mode_enabled())
        entry = self._cache.get((name, loops))
        if entry is None or entry[0] != state:
            entry = self._cache[name, loops] = (state, make(loops))
        return entry[1]


def list_features(graph: Graph) -> Tensor | None:
    """The edge features (E, D) of the edges in the order of `list_edges`, None if the graph has none."""
    if graph.edge_attr is None:
        return None
    listed = (graph.pattern.row != graph.pattern.col) | (graph.weight.detach() != 0)
    return graph.edge_attr[listed]
