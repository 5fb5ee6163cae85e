"""Whether freed memory goes back to the system, or stays for the next step."""

from __future__ import annotations

import ctypes
import os

# numbers of glibc's malloc.h: how much free memory is kept, and how many blocks may be the system's own
TRIM_THRESHOLD, MMAP_MAX = -1, -4


def keep_memory() -> bool:
    """Let this process keep the memory it frees, and use it again; returns whether the C library can (glibc can).

    Every pooling of a graph with millions of edges needs new arrays of hundreds of megabytes. By default each of them
    comes from the system, page by page, and goes back to it, which takes a good part of a step. After this
    call a step finds the memory of the step before. It holds for everything in the process, to its end: what was once
    needed at the same time stays taken.
    """
    if os.name != "posix":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(MMAP_MAX, 0)) and bool(mallopt(TRIM_THRESHOLD, -1))
