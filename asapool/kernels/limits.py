"""Limits the number of edges of a pooled graph: SᵀAS of a hub with n neighbours has about (kn)² of them.

The number is estimated before anything is formed, so that such a graph raises an error that names it instead of running
out of memory. With max_neighbours only the strongest edges are formed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from asapool.errors import ConfigError, GraphTooLargeError

VARIABLE = "ASAPOOL_MAX_POOLED_EDGES"
BYTES = 128  # of memory per pooled edge while it is formed, with its gradient
REFERENCE_BYTES = 384  # the same for the sparse products of torch
FALLBACK = 10**8  # edges, if the size of the memory is unknown
CGROUP = "/sys/fs/cgroup/memory.max"  # memory limit of a container
FULL = 10**7  # limit for a graph with more than LONG_ROW edges per row: the next level takes their number times K
LONG_ROW = 1000
MANY = 2**20  # up to this many pooled edges are all formed and thinned afterwards, for any max_neighbours
_limit: int | None = None


def max_pooled_edges(bytes_each: int = BYTES) -> int:
    """The largest allowed number of edges of a pooled graph, and of all graphs of a batch together.

    It is the value of set_max_pooled_edges, else $ASAPOOL_MAX_POOLED_EDGES, else what fits into half of the memory.

    Args:
        bytes_each: memory that an edge takes while it is formed.
    """
    if _limit is not None:
        return _limit
    given = os.environ.get(VARIABLE, "")
    if given:
        if not given.isdecimal() or int(given) < 1:
            raise ConfigError(f"{VARIABLE} must be a whole number of at least 1, got {given!r}")
        return int(given)
    memory = _memory()
    return memory // 2 // bytes_each if memory else FALLBACK


@cache
def _memory() -> int:
    """Bytes of memory of this machine or container, 0 if unknown."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 0
    with suppress(OSError, ValueError):
        memory = min(memory, int(Path(CGROUP).read_text()))  # "max" if there is no limit
    return max(memory, 0)


def limit_of_graph(clusters: int, limit: int) -> int:
    """The largest number of edges of one pooled graph; an explicit limit is used unchanged.

    Args:
        clusters: rows of A^p.
        limit: max_pooled_edges of the backend.
    """
    if _limit is not None or os.environ.get(VARIABLE):
        return limit
    return min(limit, max(FULL, LONG_ROW * clusters))


def is_thinned(edges: int, clusters: int, most: int, limit: int) -> bool:
    """Whether only the strongest edges of a graph are formed.

    Args:
        edges: upper bound on the entries of A^p.
        clusters: rows of A^p.
        most: entries to keep of each row; 0 = all.
        limit: max_pooled_edges of the backend.
    """
    return most > 0 and (edges > limit or edges > max(MANY, 64 * clusters * (most + 1)))


def set_max_pooled_edges(edges: int | None) -> None:
    """Set the largest number of edges of a pooled graph, for this process; None restores the default."""
    global _limit
    if edges is not None and (isinstance(edges, bool) or not isinstance(edges, int) or edges < 1):
        raise ConfigError(f"max_pooled_edges must be None or a whole number of at least 1, got {edges!r}")
    _limit = edges


@contextmanager
def limit_pooled_edges(edges: int) -> Iterator[None]:
    """Use another limit inside a with block.

    >>> with limit_pooled_edges(1000):
    ...     print(max_pooled_edges())
    1000
    """
    before = _limit
    set_max_pooled_edges(edges)
    try:
        yield
    finally:
        set_max_pooled_edges(before)


def refuse(graph: int, nodes: int, edges: int, batch: int, limit: int, what: str = "pooled edges") -> None:
    """Raise the error for the largest graph of a batch with too many pooled edges.

    Args:
        graph: its position in the batch.
        nodes: nodes of this graph.
        edges: upper bound on its edges after pooling.
        batch: edges of all graphs together.
        limit: max_pooled_edges of the backend.
        what: what is counted.
    """
    number, advice = (
        f"{edges:,} {what}",
        "set max_neighbours (for example 32)" if what == "pooled edges" else "use hops=1",
    )
    if edges <= limit:
        number += f" ({batch:,} with the other graphs of the batch; smaller batches may help)"
    raise GraphTooLargeError(
        graph,
        f"({nodes:,} nodes) would have up to {number}, more than the limit of {limit:,}; {advice}, leave "
        f"the graph out, or raise the limit with asapool.kernels.limits.set_max_pooled_edges or ${VARIABLE}",
    )
