"""Threads that help the calling one, and what becomes of numbers too small to count.

A weight that no example asks for is drawn towards zero by its decay, until it is smaller than 1.2·10⁻³⁸. Processors
calculate with such numbers a hundred times slower than with others, and a training that began fast crawls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch


class _Helpers:
    """Made when first needed, and anew in a forked process."""

    def __init__(self) -> None:
        self.pool: ThreadPoolExecutor | None = None
        self.size = 0
        self.lock = threading.Lock()

    def get(self, size: int) -> ThreadPoolExecutor:
        with self.lock:
            if self.pool is None or self.size < size:
                self.pool, self.size = ThreadPoolExecutor(size, "asapool"), size
            return self.pool


_helpers = _Helpers()


def helpers(size: int) -> ThreadPoolExecutor:
    """At least so many threads."""
    return _helpers.get(size)


def _forget_helpers() -> None:
    global _helpers
    _helpers = _Helpers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


@contextmanager
def tiny_is_zero() -> Iterator[None]:
    """Inside, this thread and its helpers take numbers below the smallest normal one for zero, where the machine can.

    >>> with tiny_is_zero():
    ...     print((torch.tensor([1e-30]) * 1e-15).item())
    0.0
    """
    before = flushes()
    torch.set_flush_denormal(True)
    _forget_helpers()  # a new thread takes over what its maker does
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
        _forget_helpers()


def flushes() -> bool:
    """Whether this thread takes such numbers for zero."""
    return (torch.full((1,), 1e-30) * 1e-15).item() == 0.0
