"""Builds the packed structure from edges, and h-hop clusters from one-hop clusters."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, fake_structure, register
from asapool.kernels.graph import Pattern
from asapool.kernels.limits import max_pooled_edges, refuse


def index_of(counts: Tensor) -> Tensor:
    """Row pointer of rows with the given lengths.

    >>> index_of(torch.tensor([2, 0, 1])).tolist()
    [0, 2, 2, 3]
    """
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def from_keys(key: Tensor, ptr: Tensor, N: int) -> Pattern:
    """Structure from keys i·N + j, which must be sorted, unique, and include the diagonal."""
    row, col = (key // N, key % N) if N else (key, key)
    edge_t = torch.argsort(col, stable=True)
    return Pattern(
        ptr=ptr,
        rowptr=index_of(torch.bincount(row, minlength=N)),
        col=col,
        diag=(row == col).nonzero().view(-1),
        rowptr_t=index_of(torch.bincount(col, minlength=N)),
        col_t=row[edge_t],
        edge_t=edge_t,
    )


def edges_valid(edge_index: Tensor, batch: Tensor | None, N: int) -> bool:
    """Whether every edge connects two of the N nodes, which belong to the same graph.

    >>> edges_valid(torch.tensor([[0], [1]]), None, 2), edges_valid(torch.tensor([[0], [1]]), torch.tensor([0, 1]), 2)
    (True, False)
    """
    if edge_index.numel() == 0:
        return True
    low, high = edge_index.aminmax()
    if int(low) < 0 or int(high) >= N:
        return False
    return batch is None or torch.equal(*batch[edge_index])


def pack(edge_index: Tensor, ptr: Tensor, N: int) -> tuple[Pattern, Tensor]:
    """Sort edges into rows, merge repeated ones and add the diagonal entry of every node.

    edge_index (2, E'), row 0 = source j, row 1 = target i; ptr (B+1,).
    Returns the structure and the entry of each given edge, (E',).

    >>> pattern, slot = pack(torch.tensor([[1, 0, 0], [0, 1, 1]]), torch.tensor([0, 2]), 2)
    >>> pattern.rowptr.tolist(), pattern.col.tolist(), slot.tolist()
    ([0, 2, 4], [0, 1, 0, 1], [1, 2, 2])
    """
    *structure, slot = _pack_op(edge_index, ptr, N)
    return Pattern(ptr, *structure), slot


def _pack(edge_index: Tensor, ptr: Tensor, N: int) -> tuple[Tensor, ...]:
    j, i = edge_index
    nodes = torch.arange(N, device=edge_index.device)
    key, slot = torch.unique(torch.cat([i, nodes]) * N + torch.cat([j, nodes]), return_inverse=True)
    return *from_keys(key, ptr, N).structure, slot[: i.numel()].clone()


_pack_op = register(
    "reference_pack",
    _pack,
    lambda edge_index, ptr, N: (*fake_structure(N, edge_index), torch.empty_like(edge_index[0])),
    inputs="Tensor edge_index, Tensor ptr, SymInt N",
    outputs=f"({STRUCTURE}, Tensor)",
    device=None,
)


def pack_rows(rowptr: Tensor, col: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """The same for edges that are already in rows, columns ascending and unique, as in a data set.

    rowptr (N+1,), col (E',), ptr (B+1,); returns the structure and the entry of each edge, (E',).
    """
    row = torch.repeat_interleave(rowptr.diff(), output_size=col.numel())
    return pack(torch.stack([col, row]), ptr, rowptr.numel() - 1)


def reach(pattern: Pattern, hops: int) -> Pattern:
    """Structure of (A + I)^h: row i lists every node from which i is at most h hops away."""
    return Pattern(pattern.ptr, *_reach_op(pattern.ptr, pattern.rowptr, pattern.col, hops))


def check_reach(ptr: Tensor, rowptr: Tensor, col: Tensor, hops: int) -> None:
    """Refuse a graph whose h-hop clusters have more members than allowed: near a hub every node reaches every other."""
    nodes, limit = ptr.diff(), max_pooled_edges()
    if int((nodes * nodes).sum()) <= limit:
        return
    row, batch = torch.repeat_interleave(rowptr.diff(), output_size=col.numel()), torch.repeat_interleave(nodes)
    reached = rowptr.diff()
    for _ in range(hops - 1):
        reached = torch.zeros_like(reached).index_add(0, row, reached[col]).minimum(nodes[batch])
    entries = torch.zeros_like(nodes).index_add(0, batch, reached)
    if int(entries.sum()) > limit:
        b = int(entries.argmax())
        refuse(b, int(nodes[b]), int(entries[b]), int(entries.sum()), limit, f"members in clusters of {hops} hops")


def _reach(ptr: Tensor, rowptr: Tensor, col: Tensor, hops: int) -> tuple[Tensor, ...]:
    check_reach(ptr, rowptr, col, hops)
    N = rowptr.numel() - 1
    row = torch.repeat_interleave(rowptr.diff(), output_size=col.numel())
    step = sparse(row, col, torch.ones_like(col, dtype=torch.float32), (N, N))
    reached = step
    for _ in range(hops - 1):
        reached = times_in_op(reached, step).coalesce()
    i, j = reached.indices()
    return from_keys(i * N + j, rowptr, N).structure


_reach_op = register(
    "reference_reach",
    _reach,
    lambda ptr, rowptr, col, hops: fake_structure(rowptr.numel() - 1, rowptr),
    inputs="Tensor ptr, Tensor rowptr, Tensor col, int hops",
    outputs=f"({STRUCTURE})",
    device=None,
)


def sparse(row: Tensor, col: Tensor, value: Tensor, size: tuple[int, int]) -> Tensor:
    """A sparse matrix from its entries."""
    return torch.sparse_coo_tensor(torch.stack([row, col]), value, size, check_invariants=False)


def times_in_op(A: Tensor, B: Tensor) -> Tensor:
    """The product of two sparse matrices inside a custom op, where torch.sparse.mm (2.13) returns an empty one."""
    A, B = A.coalesce(), B.coalesce()
    (i, k), (row, j), K = A.indices(), B.indices(), B.size(1)
    ptr = index_of(torch.bincount(row, minlength=B.size(0)))
    count = ptr.diff()[k]
    a = torch.repeat_interleave(count)  # every entry of A meets all entries in one row of B
    b = torch.arange(a.numel(), device=a.device) - (count.cumsum(0) - count)[a] + ptr[k[a]]
    key, slot = torch.unique(i[a] * K + j[b], return_inverse=True)
    value = A.values().new_zeros(key.numel()).index_add(0, slot, A.values()[a] * B.values()[b])
    where = torch.stack([key // max(K, 1), key % max(K, 1)])
    return torch.sparse_coo_tensor(where, value, (A.size(0), K), check_invariants=False, is_coalesced=True)


def times(A: Tensor, B: Tensor) -> Tensor:
    """The product of two sparse matrices."""
    with warnings.catch_warnings():  # torch warns once that it uses its CSR format
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        product: Tensor = torch.sparse.mm(A, B)
        return product
