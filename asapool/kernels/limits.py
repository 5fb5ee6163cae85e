"""How many edges a pooled graph may have: SᵀAS of a hub with n neighbours has about (kn)² of them.

The number is estimated before anything is formed, so that one such graph ends in an error that names it, and not in a
process without memory. With max_neighbours the strongest edges are kept while the rows are formed, in linear memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from asapool.errors import ConfigError, GraphTooLargeError

BYTES = 64  # of memory per pooled edge while it is formed, with its gradient
FALLBACK = 10**8  # edges, where the size of the memory is unknown
_limit: int | None = None


def max_pooled_edges() -> int:
    """The largest number of edges that a pooled graph may have; by default what half of the memory holds."""
    if _limit is not None:
        return _limit
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return FALLBACK
    return memory // 2 // BYTES if memory > 0 else FALLBACK


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


def refuse(graph: int, nodes: int, edges: int) -> None:
    """Raise the error about a graph that would have too many edges."""
    raise GraphTooLargeError(
        graph,
        f"graph {graph} of the batch ({nodes:,} nodes) would have up to {edges:,} pooled edges, more than the limit of "
        f"{max_pooled_edges():,}; set max_neighbours (for example 32), leave the graph out, or raise the limit with "
        "asapool.kernels.limits.set_max_pooled_edges",
    )
