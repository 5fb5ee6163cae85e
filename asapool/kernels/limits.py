"""How many edges a pooled graph may have: SᵀAS of a hub with n neighbours has about (kn)² of them.

The number is estimated before anything is formed, so that one such graph ends in an error that names it, and not in a
process without memory. With max_neighbours only the strongest edges are formed.
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
REFERENCE_BYTES = 384  # the same where it is formed by sparse products of torch
FALLBACK = 10**8  # edges, where the size of the memory is unknown
CGROUP = "/sys/fs/cgroup/memory.max"  # what a container may use
FULL = 10**7  # edges of one graph with rows of more than LONG_ROW entries: the next level takes their number times K
LONG_ROW = 1000
MANY = 2**20  # pooled edges that are formed and thinned afterwards, whatever max_neighbours is
_limit: int | None = None


def max_pooled_edges(bytes_each: int = BYTES) -> int:
    """The largest number of edges that a pooled graph may have, and all graphs of a batch together.

    It is what set_max_pooled_edges set, else $ASAPOOL_MAX_POOLED_EDGES, else what half of the memory holds.

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
    """Bytes of memory of this machine or container, 0 where that is unknown."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 0
    with suppress(OSError, ValueError):
        memory = min(memory, int(Path(CGROUP).read_text()))  # "max" where there is no limit
    return max(memory, 0)


def limit_of_graph(clusters: int, limit: int) -> int:
    """The largest number of edges of one pooled graph; a limit that was set is the only one.

    Args:
        clusters: rows of A^p.
        limit: max_pooled_edges of the backend.
    """
    if _limit is not None or os.environ.get(VARIABLE):
        return limit
    return min(limit, max(FULL, LONG_ROW * clusters))


def is_thinned(edges: int, clusters: int, most: int, limit: int) -> bool:
    """Whether just the strongest edges of a graph are formed.

    Args:
        edges: entries of A^p, estimated from above.
        clusters: rows of A^p.
        most: entries to be kept of each row; 0 = all.
        limit: max_pooled_edges of the backend.
    """
    return most > 0 and (edges > limit or edges > max(MANY, 64 * clusters * (most + 1)))


def set_max_pooled_edges(edges: int | None) -> None:
    """Set the largest number of edges of a pooled graph, for this process; None: what half of the memory holds."""
    global _limit
    if edges is not None and (isinstance(edges, bool) or not isinstance(edges, int) or edges < 1):
        raise ConfigError(f"max_pooled_edges must be None or a whole number of at least 1, got {edges!r}")
    _limit = edges


@contextmanager
def limit_pooled_edges(edges: int) -> Iterator[None]:
    """Another limit inside a with block.

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
    """Raise the error about the largest graph of a batch with too many pooled edges.

    Args:
        graph: its position.
        nodes: of this graph.
        edges: that it would have after pooling, at most.
        batch: edges of all graphs together.
        limit: max_pooled_edges of the backend.
        what: what is counted.
    """
    number, advice = (
        f"{edges:,} {what}",
        "set max_neighbours (for example 32)" if what == "pooled edges" else "use hops=1",
    )
    if edges <= limit:
        number += f" ({batch:,} with the other graphs of the batch; smaller batches may do)"
    raise GraphTooLargeError(
        graph,
        f"({nodes:,} nodes) would have up to {number}, more than the limit of {limit:,}; {advice}, leave "
        f"the graph out, or raise the limit with asapool.kernels.limits.set_max_pooled_edges or ${VARIABLE}",
    )
