"""Validates the input of the compiled loops, which do not check bounds.

The layers report problems of a user's tensors in more detail, but a compiled or exported program cannot inspect values
before it runs, and packed graphs skip those checks. So the operations that pack check again.
"""

from __future__ import annotations

from asapool.errors import InputError
from asapool.kernels.fused.compiled import Loop
from asapool.kernels.graph import Array


@Loop
def _invalid_edge(source, target, N):  # type: ignore[no-untyped-def]
    """The first edge with a node outside 0 … N − 1; -1 if there is none."""
    for e in range(source.size):
        if min(source[e], target[e]) < 0 or max(source[e], target[e]) >= N:
            return e
    return -1


@Loop
def leaves_graph(source, target, batch, N):  # type: ignore[no-untyped-def]
    """The first edge with a node outside 0 … N − 1, or with nodes of two graphs; -1 if there is none."""
    for e in range(source.size):
        j, i = source[e], target[e]
        if min(j, i) < 0 or max(j, i) >= N or (batch.size and batch[j] != batch[i]):
            return e
    return -1


@Loop
def _invalid_row(ptr, rowptr, col):  # type: ignore[no-untyped-def]
    """The first row that is not a list of nodes of its own graph, ascending; -1 if all are."""
    for b in range(ptr.size - 1):
        for i in range(ptr[b], ptr[b + 1]):
            if rowptr[i + 1] < rowptr[i] or rowptr[i + 1] > col.size:
                return i
            last = ptr[b] - 1
            for e in range(rowptr[i], rowptr[i + 1]):
                if col[e] <= last or col[e] >= ptr[b + 1]:
                    return i
                last = col[e]
    return -1


def check_edges(source: Array, target: Array, N: int) -> None:
    """Check that every edge connects two of the N nodes."""
    e = _invalid_edge(source, target, N)
    if e >= 0:
        raise InputError(f"edge_index must name nodes 0 to {N - 1}, got {source[e]} → {target[e]} at edge {e}")


def check_pointer(name: str, pointer: Array, end: int) -> None:
    """Check that a pointer array ascends from 0 to `end`."""
    if pointer.size == 0 or pointer[0] != 0 or pointer[-1] != end or (pointer[1:] < pointer[:-1]).any():
        raise InputError(f"{name} must ascend from 0 to {end}, got {_shortened(pointer)}")


def check_rows(ptr: Array, rowptr: Array, col: Array) -> None:
    """Check that rows list neighbours in the same graph, in ascending order."""
    check_pointer("ptr", ptr, rowptr.size - 1)
    check_pointer("rowptr", rowptr[[0, -1]], col.size)  # the loop below checks the values in between
    i = _invalid_row(ptr, rowptr, col)
    if i >= 0:
        got = _shortened(col[rowptr[i] : rowptr[i + 1]])
        raise InputError(f"node {i} must list nodes of its own graph, ascending, each once; got {got}")


def _shortened(numbers: Array) -> str:
    return f"[{', '.join(map(str, numbers[:6]))}{', ...' if numbers.size > 6 else ''}]"
