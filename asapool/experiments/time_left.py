"""The time left of an experiment, estimated from the epochs trained so far.

A single training run may take minutes, so its epochs are used: they take about the same time each, and a few seconds of
them are enough for an estimate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from asapool.experiments.record import RunRecord
from asapool.experiments.run import Run


class RunKind(NamedTuple):
    """Runs that take about the same time."""

    fingerprint: str
    method: str
    hidden: int


class TimeLeft:
    """Follows a running experiment and estimates the seconds left; None before anything is known.

    Another thread may read while this one updates, so collections are copied before iterating.
    """

    def __init__(
        self, waiting: Sequence[Run], nodes: Mapping[str, int], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.nodes = nodes  # by fingerprint; the cost on a data set not seen yet is estimated by size
        self.now = now
        self.left = {run.key: _kind(run) for run in waiting}
        self.epochs: dict[RunKind, int] = {}  # of all unfinished Runs, including those in training
        for run in waiting:
            self.epochs[_kind(run)] = self.epochs.get(_kind(run), 0) + run.epochs
        self.done: dict[str, int] = {}  # finished epochs of the Runs in training
        self.began: dict[str, tuple[int, float]] = {}  # when they were first seen: epoch, time
        self.current: dict[str, float] = {}  # their seconds per epoch
        self.pace: dict[RunKind, float] = {}  # of finished Runs: mean of their median seconds per epoch
        self.count: dict[RunKind, int] = {}
        self.side_by_side = 1

    def progress(self, run: Run, epoch: int, epochs: int) -> None:
        """Update the number of epochs that a Run has finished."""
        self.done[run.key] = epoch
        self.side_by_side = max(self.side_by_side, len(self.done))
        first = self.began.get(run.key)
        # the first epoch does not count, because it includes one-time compiling and reading
        if first is None or (first[0] == 0 and epoch > 0):
            self.began[run.key] = (epoch, self.now())
        elif epoch > first[0]:
            self.current[run.key] = (self.now() - first[1]) / (epoch - first[0])

    def record(self, record: RunRecord) -> None:
        """Update the estimate with a Run that ended."""
        key, kind = record.run.key, _kind(record.run)
        if record.history:
            pace, count = _pace_of(record), self.count.get(kind, 0) + 1
            self.pace[kind] = self.pace.get(kind, 0.0) + (pace - self.pace.get(kind, 0.0)) / count
            self.count[kind] = count
        if record.finished and self.left.pop(key, None) is not None:
            self.epochs[kind] -= record.run.epochs
        self.done.pop(key, None)
        self.began.pop(key, None)
        self.current.pop(key, None)

    def seconds(self) -> float | None:
        """Seconds until the last Run ends, at the current pace and with the largest number of parallel Runs so far."""
        known = dict(self.pace)
        for key, pace in list(self.current.items()):
            if key in self.left:
                known.setdefault(self.left[key], pace)
        if not known:
            return None
        left = dict(self.epochs)
        for key, epochs in list(self.done.items()):
            if key in self.left:
                left[self.left[key]] -= epochs
        total = sum(count * self._pace(kind, known) for kind, count in left.items() if count > 0)
        return total / self.side_by_side

    def _pace(self, kind: RunKind, known: Mapping[RunKind, float]) -> float:
        """Seconds per epoch of a kind: its own, else that of the same data set, else of all, scaled by nodes."""
        if kind in known:
            return known[kind]
        near = [pace for other, pace in known.items() if other.fingerprint == kind.fingerprint]
        if near:
            return sum(near) / len(near)
        per_node = [pace / max(1, self.nodes.get(other.fingerprint, 1)) for other, pace in known.items()]
        return sum(per_node) / len(per_node) * self.nodes.get(kind.fingerprint, 1)


def _pace_of(record: RunRecord) -> float:
    """Seconds per planned epoch: the median epoch, or for a method without epochs all its time."""
    history = record.history or []
    if len(history) == 1 and record.run.epochs > 1:
        return float(history[0]["seconds"]) / record.run.epochs
    return float(median(row["seconds"] for row in history))


def in_words(seconds: float | None) -> str:
    """A duration as text.

    >>> in_words(42), in_words(3000), in_words(200_000), in_words(None)
    ('42 s', '50 min', '55.6 h', 'unknown')
    """
    if seconds is None:
        return "unknown"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _kind(run: Run) -> RunKind:
    return RunKind(run.fingerprint, run.model.method, run.model.hidden)
