"""Process-wide settings: worker threads of the compiled loops, denormals, and reuse of freed memory.

Weight decay drives a weight without gradient towards zero, and its moments with it, until they are denormal (below
1.2·10⁻³⁸ in float32). Processors are many times slower with denormals than with other numbers, so training slows down
for no visible reason. Training therefore flushes denormals to zero, in worker threads too.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch


class _Pools:
    """One thread pool that flushes denormals and one that does not; created on first use, and again after a fork."""

    def __init__(self) -> None:
        self.pools: dict[bool, tuple[ThreadPoolExecutor, int]] = {}
        self.lock = threading.Lock()

    def get(self, size: int, flush: bool) -> ThreadPoolExecutor:
        with self.lock:
            pool, threads = self.pools.get(flush, (None, 0))
            if pool is None or threads < size:
                pool = ThreadPoolExecutor(size, "asapool", torch.set_flush_denormal, (flush,))
                self.pools[flush] = pool, size
            return pool


_pools = _Pools()
_local = threading.local()  # flush: whether this thread is inside flush_denormals


def thread_pool(size: int) -> ThreadPoolExecutor:
    """A pool of at least `size` threads, which flush denormals if the calling thread does."""
    return _pools.get(size, getattr(_local, "flush", False))


def _renew_pools() -> None:
    global _pools
    _pools = _Pools()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_pools)


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Flush denormals to zero in this thread and in the threads of the compiled loops, if the processor supports it.

    torch's own threads do so too if they are created inside, by the first large matrix product.

    >>> with flush_denormals():
    ...     print((torch.tensor([1e-30]) * 1e-15).item())
    0.0
    """
    before = flushes_denormals(), getattr(_local, "flush", False)
    torch.set_flush_denormal(True)
    _local.flush = True
    try:
        yield
    finally:
        torch.set_flush_denormal(before[0])
        _local.flush = before[1]


def flushes_denormals() -> bool:
    """Whether this thread flushes denormals to zero."""
    small = torch.full((1,), 1e-30, dtype=torch.float32, device="cpu")
    return (small * 1e-15).item() == 0.0


# constants of glibc's malloc.h: how much freed memory is kept, and how many blocks may be mapped separately
TRIM_THRESHOLD, MMAP_MAX = -1, -4


def keep_memory() -> bool:
    """Let this process keep and reuse the memory it frees; returns whether the C library supports it (glibc does).

    Pooling a graph with millions of edges needs new arrays of hundreds of megabytes. By default each of them is
    requested from the system, page by page, and returned to it, which takes a large part of a step. After this call a
    step reuses the memory of the step before. It affects the whole process until it ends: memory stays at its peak.
    """
    if os.name != "posix":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(MMAP_MAX, 0)) and bool(mallopt(TRIM_THRESHOLD, -1))
