"""Threads that help the calling one, and what becomes of numbers too small to count.

A weight that no example asks for is drawn towards zero by its decay, and its gradients with it, until they are smaller
than 1.2·10⁻³⁸. Processors calculate with such numbers many times slower than with others, and a training that began
fast crawls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch


class _Helpers:
    """Made when first needed, and anew in a forked process; those of one kind take tiny numbers for zero."""

    def __init__(self) -> None:
        self.pools: dict[bool, tuple[ThreadPoolExecutor, int]] = {}
        self.lock = threading.Lock()

    def get(self, size: int, tiny: bool) -> ThreadPoolExecutor:
        with self.lock:
            pool, there = self.pools.get(tiny, (None, 0))
            if pool is None or there < size:
                pool = ThreadPoolExecutor(size, "asapool", torch.set_flush_denormal, (tiny,))
                self.pools[tiny] = pool, size
            return pool


_helpers = _Helpers()
_here = threading.local()  # tiny: whether this thread is inside tiny_is_zero


def helpers(size: int) -> ThreadPoolExecutor:
    """At least so many threads, which do with tiny numbers as the calling one does."""
    return _helpers.get(size, getattr(_here, "tiny", False))


def _forget_helpers() -> None:
    global _helpers
    _helpers = _Helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


@contextmanager
def tiny_is_zero() -> Iterator[None]:
    """Inside, this thread and its helpers take numbers below the smallest normal one for zero, where the machine can.

    torch's own threads do so if they are made inside, when the first large product asks for them.

    >>> with tiny_is_zero():
    ...     print((torch.tensor([1e-30]) * 1e-15).item())
    0.0
    """
    before = flushes(), getattr(_here, "tiny", False)
    torch.set_flush_denormal(True)
    _here.tiny = True
    try:
        yield
    finally:
        torch.set_flush_denormal(before[0])
        _here.tiny = before[1]


def flushes() -> bool:
    """Whether this thread takes such numbers for zero."""
    small = torch.full((1,), 1e-30, dtype=torch.float32, device="cpu")
    return (small * 1e-15).item() == 0.0
