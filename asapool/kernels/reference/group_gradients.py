"""Gradients of A^p = Ŝᵀ Â Ŝ for groups of graphs, where rows of the pooled graph are dense."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from asapool.kernels.reference.propagate import entry_products, row_sums

GROUP = 128  # kept clusters of a group of small graphs


class Entries(NamedTuple):
    """A sparse matrix by row."""

    rowptr: Tensor
    col: Tensor
    value: Tensor

    def part(self, n: slice, first: int) -> tuple[Entries, slice]:
        """Rows n of the matrix, with columns counted from `first`, and which entries these are."""
        e = slice(*self.rowptr[[n.start, n.stop]].tolist())
        rowptr = self.rowptr[n.start : n.stop + 1] - e.start
        return Entries(rowptr, self.col[e] - first, self.value[e]), e

    @property
    def row(self) -> Tensor:
        """Row of every entry."""
        return torch.repeat_interleave(self.rowptr.diff(), output_size=self.col.numel())


class Factors(NamedTuple):
    """Ŝ by node and Â by row and by column, with the positions of their entries in the inputs of coarsen.

    Args:
        S: (N, K), only the kept clusters.
        S_at: position of every entry of S in alpha.
        A: (N, N).
        A_t: (N, N) transposed.
        alpha: (E_c,), as wide as the gradients.
        hat: (E,).
    """

    S: Entries
    S_at: Tensor
    A: Entries
    A_t: Entries
    alpha: Tensor
    hat: Tensor

    @classmethod
    def of(cls, inputs: tuple[Tensor, ...], wide: torch.dtype) -> Factors:
        """From the inputs of coarsen; wide: dtype of the products."""
        c_rowptr, c_col, alpha, rowptr, col, hat, perm = inputs
        N, alpha, hat = rowptr.numel() - 1, alpha.to(wide), hat.to(wide)
        place = perm.new_full((N,), -1).index_copy(0, perm, torch.arange(perm.numel(), device=perm.device))
        p = place[torch.repeat_interleave(c_rowptr.diff(), output_size=c_col.numel())]
        kept = (p >= 0).nonzero().view(-1)
        S_at = kept[torch.argsort(c_col[kept], stable=True)]
        S = Entries(_pointers(c_col[S_at], N), p[S_at], alpha[S_at])
        A = Entries(rowptr, col, hat)
        by_column = torch.argsort(col, stable=True)
        A_t = Entries(_pointers(col, N), A.row[by_column], hat[by_column])
        return cls(S, S_at, A, A_t, alpha, hat)


def graph_groups(nodes: Sequence[int], kept: Sequence[int], without: Collection[int]) -> Iterator[tuple[slice, slice]]:
    """Split a batch into groups of neighbouring graphs with about GROUP kept clusters: their nodes, and their clusters.

    nodes, kept: first node and first kept cluster of every graph, and the end; without: graphs in no group.

    >>> list(graph_groups([0, 200, 400, 700], [0, 100, 200, 350], {2}))
    [(slice(0, 400, None), slice(0, 200, None))]
    """
    first, graphs = 0, len(kept) - 1
    for b in range(graphs):
        if b in without:
            first = b + 1
        elif b + 1 == graphs or b + 1 in without or kept[b + 1] - kept[first] >= GROUP:
            yield slice(nodes[first], nodes[b + 1]), slice(kept[first], kept[b + 1])
            first = b + 1


def add_group_gradients(factors: Factors, G: Entries, n: slice, k: slice, dalpha: Tensor, dhat: Tensor) -> None:
    """Write ∂Ŝ = Â Ŝ Gᵀ + Âᵀ Ŝ G and ∂Â = Ŝ G Ŝᵀ at the entries of nodes n into dalpha (E_c,) and dhat (E,).

    G: ∂A^p (K, K); k: the kept clusters of the nodes n.
    """
    N, K = n.stop - n.start, k.stop - k.start
    S, s = factors.S.part(n, k.start)
    (A, a), (A_t, _), (entries, _) = factors.A.part(n, n.start), factors.A_t.part(n, n.start), G.part(k, k.start)
    dense = G.value.new_zeros(K, K).index_put((entries.row, entries.col), entries.value)
    SG, SG_t = (row_sums(S.rowptr, S.col, S.value, M) for M in (dense, dense.t().contiguous()))
    dS = row_sums(A.rowptr, A.col, A.value, SG_t) + row_sums(A_t.rowptr, A_t.col, A_t.value, SG)
    at = S.row, S.col
    dalpha[factors.S_at[s]] = dS[at]
    dhat[a] = entry_products(SG, G.value.new_zeros(N, K).index_put(at, S.value), A.row, A.col)


def _pointers(row: Tensor, N: int) -> Tensor:
    """First entry of every row, (N+1,), once the entries are sorted by row."""
    return torch.nn.functional.pad(torch.bincount(row, minlength=N).cumsum(0), (1, 0))
