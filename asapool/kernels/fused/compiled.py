"""Compilation of the loops, and how they are spread over threads.

A loop is a function of (start, stop, arrays…) that writes only to rows start … stop. Any cut of the rows therefore
gives the same bits, whatever the number of threads. Waiting threads sleep instead of spinning, so
another busy process on the machine costs its share of the processor and no more.
"""

from __future__ import annotations

import itertools
import logging
import pickle
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numba
import torch
from numba.core.event import Listener, register

from asapool.kernels.fused.code_cache import CodeFiles
from asapool.kernels.threads import thread_pool

LOGGER = logging.getLogger("asapool")
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    # sums may be regrouped for the vector unit; the loop is the same for every caller, so results stay reproducible
    "fastmath": {"contract", "reassoc", "nsz"},
}
NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # for what no Python code calls
BLOCK = (
    256  # rows that are summed together in a sum over all rows; fixed, so that the number of threads changes nothing
)
CHEAP = 2_000_000  # work below which waking another thread costs more than it saves: a fifth of a millisecond
CACHE_TROUBLE = (OSError, EOFError, pickle.PickleError, RuntimeError, ValueError, ImportError, AttributeError, KeyError)


def _sources() -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of every file of loops: a loop may inline code from any of them."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


SOURCES = _sources()


class _Announcement(Listener):  # type: ignore[misc]
    """Log once per process that loops are being compiled, since the first use of a fresh install takes a while."""

    done = False

    def on_start(self, event: Any) -> None:
        """A loop was not in the cache."""
        if not self.done:
            self.done = True
            LOGGER.info("compiling loops for this machine, once; later runs find them in %s", cache_folder())

    def on_end(self, event: Any) -> None:
        """Nothing to do."""


def cache_folder() -> str:
    """Where compiled loops are kept: $NUMBA_CACHE_DIR, or beside the package where it can be written."""
    return str(numba.config.CACHE_DIR or Path(__file__).parent / "__pycache__")


register("numba:compile", _Announcement())


class Loop:
    """A compiled loop whose machine code is cached on disk; compiled in memory where the disk cannot be written.

    numba's cache is valid while the loop's own file is unchanged; ours is valid while all of SOURCES are, since loops
    call functions of other files. Several processes may compile at the same time, which mixes up numba's cache.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        try:
            self.code = numba.njit(cache=True, no_cfunc_wrapper=True, **OPTIONS)(function)
            cache = self.code._cache
            stamp = (numba.__version__, cache._impl.locator.get_source_stamp(), SOURCES)
            cache._cache_file = CodeFiles(cache.cache_path, cache._impl.filename_base, stamp)
        except (RuntimeError, AttributeError):  # no folder for the cache can be written, or numba keeps it otherwise
            self.code = numba.njit(**OPTIONS)(function)

    def __call__(self, *args: Any) -> Any:
        try:
            return self.code(*args)
        except CACHE_TROUBLE:  # a broken cache file, a full disk: the code itself raises none of these
            self.code = numba.njit(**OPTIONS)(self.function)
            return self.code(*args)


def helper(function: Callable[..., Any]) -> Any:
    """Compile a function that loops call once per graph; a call is not free, it counts references to all its arrays."""
    return numba.njit(**OPTIONS, **NO_WRAPPERS)(function)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a function that is inlined into its caller, for what is called row by row."""
    return numba.njit(inline="always", **OPTIONS, **NO_WRAPPERS)(function)


def run_rows(loop: Loop, rows: int, work: int, *args: Any) -> list[Any]:
    """Run a loop over all rows, split among threads; returns the result of each range of rows, in order.

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

    def take_pieces() -> None:
        while (piece := next(ticket)) < pieces:
            results[piece] = loop(rows * piece // pieces, rows * (piece + 1) // pieces, *args)

    pool = thread_pool(threads - 1)
    waiting: list[Future[None]] = [pool.submit(take_pieces) for _ in range(threads - 1)]
    take_pieces()
    for future in waiting:
        # one that has not even started has nothing left to do
        if not future.cancel():
            future.result()
    return results
