"""Sums among the processes of one machine through shared memory.

torch.distributed's gloo is slow for small tensors, and a training step has dozens of such exchanges: one per batch
normalisation and dropout. Here a process copies its numbers into memory that all share, raises its counter,
and waits until the counters of the others have the same value.

Two areas take turns, so one counter is enough: a process writes into an area again two exchanges later, and then all
others have begun the exchange between, so they have read the area. A counter must not be seen before the numbers that
were written before it; x86-64 processors keep that order.
"""

from __future__ import annotations

import mmap
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

CAPACITY = 1 << 20  # bytes of one process per exchange; larger tensors are sent in pieces
LINE = 8  # int64 counters per cache line: every process has a line of its own
# seconds of waiting after which the processor is offered to others, and after which the process sleeps; not sooner,
# because a process that offers it may get it back only milliseconds later
YIELD, SLEEP = 0.002, 0.02
CHECK = 0.2  # seconds between two looks at whether the other processes are alive


class ProcessLostError(RuntimeError):
    """Another process has ended, and an exchange with it cannot be completed."""


def memory_file(size: int) -> Path | None:
    """A new file for the exchange of so many processes; None where shared memory cannot be used."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not hasattr(os, "posix_fallocate"):
        return None
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    try:
        number, name = tempfile.mkstemp(prefix="asapool-", dir=folder)
    except OSError:
        return None
    try:
        os.posix_fallocate(number, 0, _bytes(size))  # memory that is missing is an error here, not a crash later
    except OSError:
        os.unlink(name)
        return None
    finally:
        os.close(number)
    return Path(name)


def _bytes(size: int) -> int:
    return size * (8 * LINE + 2 * CAPACITY)


class Exchange:
    """The shared memory of several processes.

    Args:
        file: from memory_file; may be removed as soon as all processes have opened it.
        rank: the number of this process.
        size: the number of processes.
        alive: whether the other processes are still running, asked while waiting.
    """

    def __init__(self, file: Path, rank: int, size: int, alive: Callable[[], bool]) -> None:
        with file.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), _bytes(size))
        everything = torch.frombuffer(self._memory, dtype=torch.uint8)
        start = 8 * LINE * size
        self._slots = everything[start:].view(2, size, CAPACITY)
        self._counters = memoryview(self._memory)[:start].cast("q")
        self._own, self._others = LINE * rank, [LINE * r for r in range(size) if r != rank]
        self._count, self.rank, self.size, self._alive = 0, rank, size, alive

    def gather(self, x: Tensor) -> Tensor:
        """The tensors of all processes, (size, *x.shape); all have the same shape and dtype."""
        result = x.new_empty(self.size, x.numel())
        flat, step = x.detach().reshape(-1), CAPACITY // x.element_size()
        for first in range(0, x.numel(), step):
            self._trade(flat[first : first + step], result[:, first : first + step])
        return result.view(self.size, *x.shape)

    def sum_(self, x: Tensor) -> Tensor:
        """Replace a contiguous x by the sum over all processes, added in the order of their ranks."""
        flat, step = x.view(-1), CAPACITY // x.element_size()
        for first in range(0, x.numel(), step):
            piece = flat[first : first + step]
            parts = self._trade(piece)
            torch.add(parts[0], parts[1], out=piece)
            for part in parts[2:]:
                piece += part
        return x

    def _trade(self, piece: Tensor, result: Tensor | None = None) -> Tensor:
        """Publish a piece, wait for those of all processes, and return them (copied to `result`, if given)."""
        area = self._slots[self._count % 2][:, : piece.numel() * piece.element_size()].view(piece.dtype)
        area[self.rank].copy_(piece)
        self._count += 1
        self._counters[self._own] = self._count
        for other in self._others:
            if self._counters[other] < self._count:
                self._wait(other)
        return area if result is None else result.copy_(area)

    def _wait(self, other: int) -> None:
        counters, count = self._counters, self._count
        began = checked = time.monotonic()
        while counters[other] < count:
            now = time.monotonic()
            if now - checked > CHECK:
                checked = now
                if not self._alive() and counters[other] < count:
                    raise ProcessLostError("another process has ended")
            if now - began > SLEEP:
                time.sleep(0.0005)
            elif now - began > YIELD:
                os.sched_yield()
