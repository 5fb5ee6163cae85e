"""Compiles the loops and distributes them over threads.

A loop is a function of (start, stop, arrays…) that writes only to rows start … stop. Any split of the rows therefore
gives bitwise equal results, for any number of threads. Waiting threads sleep instead of spinning, so another busy
process on the machine only costs its share of the processor.
"""

from __future__ import annotations

import itertools
import logging
import pickle
from collections.abc import Callable, Mapping
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
    # sums may be regrouped for vectorisation; the code is the same for every caller, so results stay reproducible
    "fastmath": {"contract", "reassoc", "nsz"},
}
IN_ORDER: dict[str, Any] = OPTIONS | {"fastmath": {"contract", "nsz"}}
NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # for functions that Python code never calls
BLOCK = 256  # rows per partial sum in a sum over all rows; fixed, so that results do not depend on threads
CHEAP = 2_000_000  # below this much work another thread costs more than it saves: a fifth of a millisecond
CACHE_TROUBLE = (OSError, EOFError, pickle.PickleError, RuntimeError, ValueError, ImportError, AttributeError, KeyError)


def _sources() -> tuple[tuple[str, int, int], ...]:
    """Name, modification time and size of every file of kernels: a loop may inline code from any of them."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


SOURCES = _sources()


class _Announcement(Listener):  # type: ignore[misc]
    """Logs once per process that loops are being compiled, since the first use after an install takes a while."""

    done = False

    def on_start(self, event: Any) -> None:
        """Called when a loop was not in the cache."""
        if not self.done:
            self.done = True
            LOGGER.info("compiling loops for this machine, once; later runs load them from %s", cache_folder())

    def on_end(self, event: Any) -> None:
        """Nothing to do."""


def cache_folder() -> str:
    """The folder of compiled loops: $NUMBA_CACHE_DIR, or the package's __pycache__."""
    return str(numba.config.CACHE_DIR or Path(__file__).parent / "__pycache__")


register("numba:compile", _Announcement())


class Loop:
    """A compiled loop whose machine code is cached on disk, or only in memory if the disk is not writable.

    numba's cache is valid while the loop's own file is unchanged; this one while all of SOURCES are, since loops call
    functions of other files. Several processes may compile at the same time, which would corrupt numba's cache.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any] = OPTIONS) -> None:
        self.function, self.options = function, options
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        try:
            self.code = numba.njit(cache=True, no_cfunc_wrapper=True, **options)(function)
            cache = self.code._cache
            stamp = (numba.__version__, cache._impl.locator.get_source_stamp(), SOURCES)
            cache._cache_file = CodeFiles(cache.cache_path, cache._impl.filename_base, stamp)
        except (RuntimeError, AttributeError):  # no writable folder, or other internals of numba's cache
            self.code = numba.njit(**options)(function)

    def __call__(self, *args: Any) -> Any:
        try:
            return self.code(*args)
        except CACHE_TROUBLE:  # a damaged cache file or a full disk: the loop itself raises none of these
            self.code = numba.njit(**self.options)(self.function)
            return self.code(*args)


def lookup_loop(function: Callable[..., Any]) -> Loop:
    """Compile a loop whose sums look up scattered entries.

    They are added in order: a sum that may be regrouped is vectorised with gather instructions, which are slower for
    rows of a few entries.
    """
    return Loop(function, IN_ORDER)


def helper(function: Callable[..., Any]) -> Any:
    """Compile a function that loops call once per graph; a call has a cost, the reference counts of all its arrays."""
    return numba.njit(**OPTIONS, **NO_WRAPPERS)(function)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a function that is inlined into its caller, for calls per row."""
    return numba.njit(inline="always", **OPTIONS, **NO_WRAPPERS)(function)


def run_rows(loop: Loop, rows: int, work: int, *args: Any) -> list[Any]:
    """Run a loop over all rows, split among threads; returns the result of each range of rows, in order.

    work: estimated time of one thread, in tenths of a nanosecond: 1 for a multiply-add in a long row, about 40 for the
    lookup of an entry of a sparse row. The number of threads is torch's (torch.set_num_threads).
    """
    if rows == 0:
        return []
    threads = 1 if work < 2 * CHEAP else min(torch.get_num_threads(), rows, work // CHEAP)
    if threads == 1:
        return [loop(0, rows, *args)]
    pieces = min(rows, 4 * threads)  # several per thread, so that one slow thread delays the others less
    ticket = itertools.count()
    results: list[Any] = [None] * pieces

    def take_pieces() -> None:
        while (piece := next(ticket)) < pieces:
            results[piece] = loop(rows * piece // pieces, rows * (piece + 1) // pieces, *args)

    pool = thread_pool(threads - 1)
    waiting: list[Future[None]] = [pool.submit(take_pieces) for _ in range(threads - 1)]
    take_pieces()
    for future in waiting:
        # a task that has not started yet has nothing left to do
        if not future.cancel():
            future.result()
    return results
