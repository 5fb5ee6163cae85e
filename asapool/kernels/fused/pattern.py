"""Builds the packed structure from edges by counting sorts, and h-hop clusters by breadth-first search."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, Structure, fake_structure, register
from asapool.kernels.fused.checks import check_edges, check_rows, leaves_graph
from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.graph import Pattern
from asapool.kernels.reference.pattern import check_reach

StructureAndSlot = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


@Loop
def _transpose(rowptr, col, rowptr_t, col_t, edge_t, diag):  # type: ignore[no-untyped-def]
    """Entries by column, rows ascending within each (a counting sort), and the positions of the diagonal."""
    N = rowptr.size - 1
    for e in range(col.size):
        rowptr_t[col[e] + 1] += 1
    for i in range(N):
        rowptr_t[i + 1] += rowptr_t[i]
    place = rowptr_t[:N].copy()
    for i in range(N):
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            col_t[place[j]] = i
            edge_t[place[j]] = e
            place[j] += 1
            if i == j:
                diag[i] = e


@Loop
def _mirror(rowptr, col, edge_t, diag):  # type: ignore[no-untyped-def]
    """The position of every entry's mirror image, and of the diagonal; False if an entry has no mirror image.

    place[j] is the first entry of row j that has not met its mirror image. When the walk comes to row i, the entries
    before its diagonal have met theirs, and those behind it meet the next entry of row j.
    """
    N = rowptr.size - 1
    place = rowptr[:N].copy()
    for i in range(N):
        first = place[i]
        if first >= rowptr[i + 1] or col[first] != i:
            return False
        diag[i], edge_t[first] = first, first
        for e in range(first + 1, rowptr[i + 1]):
            j = col[e]
            k = place[j]
            if k >= rowptr[j + 1] or col[k] != i:
                return False
            edge_t[e], edge_t[k] = k, e
            place[j] = k + 1
    return True


@Loop
def _pack(source, target, N, slot, rowptr):  # type: ignore[no-untyped-def]
    """Counting sort by source, then by target; repeated edges are merged, and missing diagonal entries added."""
    E = source.size
    first = np.zeros(N + 1, np.int64)
    for e in range(E):
        first[source[e] + 1] += 1
    for i in range(N):
        first[i + 1] += first[i]
    by_source = np.empty(E, np.int64)
    for e in range(E):
        by_source[first[source[e]]] = e
        first[source[e]] += 1
    begin = np.zeros(N + 1, np.int64)
    for e in range(E):
        begin[target[e] + 1] += 1
    for i in range(N):
        begin[i + 1] += begin[i]
    place = begin[:N].copy()
    order = np.empty(E, np.int64)
    for k in range(E):
        e = by_source[k]
        order[place[target[e]]] = e
        place[target[e]] += 1
    col = np.empty(E + N, np.int64)
    n = 0
    for i in range(N):
        waiting, last = True, -1
        for k in range(begin[i], begin[i + 1]):
            e = order[k]
            j = source[e]
            if waiting and j >= i:
                waiting = False
                if j > i:
                    col[n] = i
                    n += 1
            if j != last:
                col[n] = j
                n += 1
                last = j
            slot[e] = n - 1
        if waiting:
            col[n] = i
            n += 1
        rowptr[i + 1] = n
    return col[:n].copy()


@Loop
def _merge(rowptr, col, slot, new_rowptr, new_col):  # type: ignore[no-untyped-def]
    """Insert the diagonal into sorted rows; returns the number of entries."""
    n = 0
    for i in range(rowptr.size - 1):
        waiting = True
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            if waiting and j >= i:
                waiting = False
                if j > i:
                    new_col[n] = i
                    n += 1
            new_col[n] = j
            slot[e] = n
            n += 1
        if waiting:
            new_col[n] = i
            n += 1
        new_rowptr[i + 1] = n
    return n


@Loop
def _reach_rows(start, stop, rowptr, col, hops, counts):  # type: ignore[no-untyped-def]
    """Breadth-first search from every row's node, `hops` deep; columns come out sorted."""
    seen = np.full(rowptr.size - 1, -1, np.int64)
    reached = np.empty(rowptr.size - 1, np.int64)
    out = np.empty(4 * (rowptr[stop] - rowptr[start]) + 16, np.int64)
    size = 0
    for i in range(start, stop):
        seen[i], reached[0] = i, i
        lo, n = 0, 1
        for _ in range(hops):
            hi = n
            for k in range(lo, hi):
                for e in range(rowptr[reached[k]], rowptr[reached[k] + 1]):
                    j = col[e]
                    if seen[j] != i:
                        seen[j] = i
                        reached[n] = j
                        n += 1
            lo = hi
        if size + n > out.size:
            wider = np.empty(2 * (size + n), np.int64)
            wider[:size] = out[:size]
            out = wider
        out[size : size + n] = np.sort(reached[:n])
        size += n
        counts[i] = n
    return out[:size]


def complete(rowptr: Tensor, col: Tensor) -> Structure:
    """Compute the rest of a structure from its rows and columns: the diagonal and the entries by column.

    The columns of a symmetric structure are its rows, and share their memory.
    """
    N, as_tensor = rowptr.numel() - 1, torch.from_numpy
    diag, edge_t = np.empty(N, np.int64), np.empty(col.numel(), np.int64)  # numpy uses huge pages
    if _mirror(rowptr.numpy(), col.numpy(), edge_t, diag):
        return rowptr, col, as_tensor(diag), rowptr.detach(), col.detach(), as_tensor(edge_t)
    rowptr_t, col_t = np.zeros(N + 1, np.int64), np.empty_like(edge_t)
    _transpose(rowptr.numpy(), col.numpy(), rowptr_t, col_t, edge_t, diag)
    return rowptr, col, as_tensor(diag), as_tensor(rowptr_t), as_tensor(col_t), as_tensor(edge_t)


def rows_from(counts: Tensor, pieces: list[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> tuple[Tensor, Tensor]:
    """Row pointer and columns from row lengths and the pieces of columns that the threads computed."""
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    col = torch.from_numpy(np.concatenate(pieces)) if pieces else counts.new_empty(0)
    return rowptr, col


def _run_pack(edge_index: Tensor, ptr: Tensor, N: int) -> StructureAndSlot:
    source, target = edge_index.contiguous()
    check_edges(source.numpy(), target.numpy(), N)
    slot, rowptr = torch.empty_like(source), source.new_zeros(N + 1)
    col = _pack(source.numpy(), target.numpy(), N, slot.numpy(), rowptr.numpy())
    check_rows(ptr.numpy(), rowptr.numpy(), col)
    return (*complete(rowptr, torch.from_numpy(col)), slot)


def _run_pack_rows(rowptr: Tensor, col: Tensor, ptr: Tensor) -> StructureAndSlot:
    check_rows(ptr.numpy(), rowptr.numpy(), col.numpy())
    N = rowptr.numel() - 1
    slot, new_rowptr, new_col = torch.empty_like(col), torch.zeros_like(rowptr), col.new_empty(col.numel() + N)
    n = _merge(*(t.numpy() for t in (rowptr, col, slot, new_rowptr, new_col)))
    return (*complete(new_rowptr, new_col[:n].clone()), slot)


def _run_reach(ptr: Tensor, rowptr: Tensor, col: Tensor, hops: int) -> Structure:
    check_reach(ptr, rowptr, col, hops)
    N = rowptr.numel() - 1
    counts = rowptr.new_empty(N)
    work = 100 * hops * col.numel()
    pieces = run_rows(_reach_rows, N, work, rowptr.numpy(), col.numpy(), hops, counts.numpy())
    return complete(*rows_from(counts, pieces))


_pack_op = register(
    "pack",
    _run_pack,
    lambda edge_index, ptr, N: (*fake_structure(N, edge_index), torch.empty_like(edge_index[0])),
    inputs="Tensor edge_index, Tensor ptr, SymInt N",
    outputs=f"({STRUCTURE}, Tensor)",
)
_pack_rows_op = register(
    "pack_rows",
    _run_pack_rows,
    lambda rowptr, col, ptr: (*fake_structure(rowptr.numel() - 1, rowptr), torch.empty_like(col)),
    inputs="Tensor rowptr, Tensor col, Tensor ptr",
    outputs=f"({STRUCTURE}, Tensor)",
)
_reach_op = register(
    "reach",
    _run_reach,
    lambda ptr, rowptr, col, hops: fake_structure(rowptr.numel() - 1, rowptr),
    inputs="Tensor ptr, Tensor rowptr, Tensor col, int hops",
    outputs=f"({STRUCTURE})",
)


def edges_valid(edge_index: Tensor, batch: Tensor | None, N: int) -> bool:
    """As reference.edges_valid."""
    source, target = edge_index.contiguous().numpy()
    graphs = source[:0] if batch is None else batch.contiguous().numpy()
    return bool(leaves_graph(source, target, graphs, N) < 0)


def pack(edge_index: Tensor, ptr: Tensor, N: int) -> tuple[Pattern, Tensor]:
    """As reference.pack."""
    *six, slot = _pack_op(edge_index, ptr, N)
    return Pattern(ptr, *six), slot


def pack_rows(rowptr: Tensor, col: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """As reference.pack_rows."""
    *six, slot = _pack_rows_op(rowptr, col, ptr)
    return Pattern(ptr, *six), slot


def reach(pattern: Pattern, hops: int) -> Pattern:
    """As reference.reach."""
    return Pattern(pattern.ptr, *_reach_op(pattern.ptr, pattern.rowptr, pattern.col, hops))
