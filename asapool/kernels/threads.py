"""Threads that help the calling one."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor


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
