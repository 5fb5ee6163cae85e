"""Packed arrays: edge lists become CSR rows, and many graphs one structure, without a loop over graphs."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.int8]
Repeats = Literal["sum", "drop"]


class Edges(NamedTuple):
    """CSR rows: row i lists the neighbours j of the edges j -> i, in ascending order, each once."""

    rowptr: Ints  # (N+1,)
    col: Ints  # (E,)
    weight: Floats | None  # (E,), None = all ones
    edge_attr: Floats | None  # (E, Fe)


def pointer(lengths: npt.NDArray[Any]) -> Ints:
    """Turn the lengths of segments into the offsets at which they begin.

    ptr_0 = 0, ptr_{k+1} = ptr_k + lengths_k; lengths (K,); returns (K+1,).

    >>> pointer(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    lengths.cumsum(dtype=np.int64, out=ptr[1:])
    return ptr


def spans(starts: Ints, lengths: Ints) -> Ints:
    """List the numbers start, start+1, … of every span, one span after the other.

    starts (K,); lengths (K,); returns (Σ lengths,).

    >>> spans(np.array([10, 0]), np.array([3, 2])).tolist()
    [10, 11, 12, 0, 1]
    """
    ptr = pointer(lengths)
    return np.repeat(starts - ptr[:-1], lengths) + np.arange(ptr[-1], dtype=np.int64)


def owners(ptr: Ints) -> Ints:
    """The segment that every element belongs to: the inverse of pointer.

    ptr (K+1,); returns (ptr[-1],).

    >>> owners(np.array([0, 2, 2, 5])).tolist()
    [0, 0, 2, 2, 2]
    """
    return np.repeat(np.arange(len(ptr) - 1, dtype=np.int64), np.diff(ptr))


def pack_edges(
    source: Ints,
    target: Ints,
    nodes: int,
    weight: Floats | None = None,
    edge_attr: Floats | None = None,
    repeats: Repeats = "sum",
) -> Edges:
    """Sort edges source -> target into CSR rows of targets; edges listed more than once become one.

    Args:
        source, target: the ends of every edge, (E',).
        nodes: number of nodes.
        weight: (E',) or None.
        edge_attr: (E', Fe) or None.
        repeats: "sum" adds up the weights and attributes of equal edges, "drop" keeps the first of them.

    Returns:
        Edges with E <= E'.

    >>> pack_edges(np.array([2, 0, 0]), np.array([1, 1, 1]), 3)[:3]
    (array([0, 0, 2, 2]), array([0, 2]), array([2., 1.], dtype=float32))
    """
    key = target * nodes + source  # one number per entry (i, j): sorting it sorts rows, then columns
    if len(key) > 1 and not bool((key[1:] > key[:-1]).all()):
        if weight is None and edge_attr is None:
            key = np.sort(key)
        else:
            order = np.argsort(key, kind="stable")  # stable: sums of duplicates do not depend on the sort
            key = key[order]
            weight = None if weight is None else weight[order]
            edge_attr = None if edge_attr is None else edge_attr[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        if len(first) < len(key) and repeats == "drop":
            weight = None if weight is None else weight[first]
            edge_attr = None if edge_attr is None else edge_attr[first]
            key = key[first]
        elif len(first) < len(key):
            weight = np.ones(len(key), np.float32) if weight is None else weight
            weight = np.add.reduceat(weight, first)
            edge_attr = None if edge_attr is None else np.add.reduceat(edge_attr, first, axis=0)
            key = key[first]
    row, col = np.divmod(key, max(nodes, 1))
    return Edges(pointer(np.bincount(row, minlength=nodes)), col, weight, edge_attr)


def mirrored(
    source: Ints,
    target: Ints,
    weight: Floats | None = None,
    edge_attr: Floats | None = None,
    chosen: npt.NDArray[np.bool_] | None = None,
) -> tuple[Ints, Ints, Floats | None, Floats | None]:
    """Add the reverse of every (chosen) edge; a self-loop is its own reverse and stays one entry.

    >>> mirrored(np.array([0, 2]), np.array([1, 2]))[:2]
    (array([0, 2, 1]), array([1, 2, 0]))
    """
    back = np.flatnonzero(source != target if chosen is None else chosen & (source != target))
    return (
        np.concatenate([source, target[back]]),
        np.concatenate([target, source[back]]),
        None if weight is None else np.concatenate([weight, weight[back]]),
        None if edge_attr is None else np.concatenate([edge_attr, edge_attr[back]]),
    )


def transposed(rowptr: Ints, col: Ints, weight: Floats | None, edge_attr: Floats | None) -> Edges:
    """Reverse every edge: the rows of the transposed matrix.

    >>> transposed(np.array([0, 1, 1]), np.array([1]), None, None)[:2]
    (array([0, 0, 1]), array([0]))
    """
    return pack_edges(owners(rowptr), col, len(rowptr) - 1, weight, edge_attr)


def is_symmetric(rowptr: Ints, col: Ints, weight: Floats | None = None, edge_attr: Floats | None = None) -> bool:
    """Whether every edge is present in both directions, with the same weight and attributes.

    >>> is_symmetric(np.array([0, 1, 2]), np.array([1, 0])), is_symmetric(np.array([0, 1, 1]), np.array([1]))
    (True, False)
    """
    back = transposed(rowptr, col, weight, edge_attr)
    return (
        np.array_equal(back.rowptr, rowptr)
        and np.array_equal(back.col, col)
        and (weight is None or np.array_equal(weight, back.weight))  # type: ignore[arg-type]
        and (edge_attr is None or np.array_equal(edge_attr, back.edge_attr))  # type: ignore[arg-type]
    )
