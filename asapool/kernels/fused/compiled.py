"""Compilation of the loops, and how they are spread over threads.

A loop is a function of (start, stop, arrays…) that writes only to rows start … stop. Any cut of the rows therefore
gives the same bits, whatever the number of threads. Threads sleep while they wait, so a busy neighbour on the machine
costs its share of the processor and no more.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numba
import torch

from asapool.kernels.threads import helpers

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    # sums may be regrouped for the vector unit; the loop is the same for every caller, so results stay reproducible
    "fastmath": {"contract", "reassoc", "nsz"},
}
BLOCK = 256  # rows whose part of a sum over all rows is added up together; fixed, so that threads change nothing
CHEAP = 2_000_000  # work below which waking another thread costs more than it saves: a fifth of a millisecond
CACHE_TROUBLE = (OSError, EOFError, pickle.PickleError, RuntimeError, ValueError, ImportError, AttributeError, KeyError)


def _sources() -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of every file of loops: a loop may hold lines of any of them."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


SOURCES = _sources()


class Loop:
    """A compiled loop whose machine code is kept on disk, or compiled afresh where the disk does not let it.

    numba takes code from the disk as long as the loop's own file is unchanged; ours must ask about all of SOURCES.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        try:
            self.code = numba.njit(cache=True, **OPTIONS)(function)
            file = self.code._cache._cache_file
            file._source_stamp = (file._source_stamp, SOURCES)
        except (RuntimeError, AttributeError):  # no folder for the cache can be written, or numba keeps it otherwise
            self.code = numba.njit(**OPTIONS)(function)

    def __call__(self, *args: Any) -> Any:
        try:
            return self.code(*args)
        except CACHE_TROUBLE:  # a broken cache file, a full disk: the code itself raises none of these
            self.code = numba.njit(**OPTIONS)(self.function)
            return self.code(*args)


def part(function: Callable[..., Any]) -> Any:
    """A function that loops call, a whole graph at a time: every call counts references to all its arrays."""
    return numba.njit(**OPTIONS)(function)


def lines(function: Callable[..., Any]) -> Any:
    """A function whose lines become those of its caller, for what is called row by row."""
    return numba.njit(inline="always", **OPTIONS)(function)


def sweep(loop: Loop, rows: int, work: int, *args: Any) -> list[Any]:
    """Run a loop over all rows; returns what each stretch of rows returned, in order.

    work: about how long one thread needs, in tenths of a nanosecond: a multiply-add in a long row is 1, an entry of a
    sparse row that is looked up some 40. The number of threads is torch's (torch.set_num_threads).
    """
    if rows == 0:
        return []
    threads = 1 if work < 2 * CHEAP else min(torch.get_num_threads(), rows, work // CHEAP)
    if threads == 1:
        return [loop(0, rows, *args)]
    pieces = min(rows, 4 * threads)  # more than one piece each, so that a thread held up elsewhere is waited for less
    ticket = itertools.count()
    results: list[Any] = [None] * pieces

    def help_out() -> None:
        while (piece := next(ticket)) < pieces:
            results[piece] = loop(rows * piece // pieces, rows * (piece + 1) // pieces, *args)

    pool = helpers(threads - 1)
    waiting: list[Future[None]] = [pool.submit(help_out) for _ in range(threads - 1)]
    help_out()
    for helper in waiting:
        # one that has not even started has nothing left to do
        if not helper.cancel():
            helper.result()
    return results
