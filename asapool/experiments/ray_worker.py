"""What happens in the processes of a Ray cluster: Runs are trained, and a board in the driver's machine is kept up.

Only plain data goes over the network (dicts in, a line of JSON out), so that two versions of asapool understand each
other well enough to tell that they differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

from asapool import __version__
from asapool.data import GraphSet
from asapool.experiments.processes import run_tasks
from asapool.experiments.protocols import SplitFile

EVERY = 1.0  # seconds between two progress messages of a worker
_splits: dict[str, SplitFile] = {}  # by digest
_sets: dict[str, GraphSet] = {}  # by fingerprint: one copy per process, on arrays that its whole machine shares


class Board:
    """Where every training stands; workers write, the driver reads."""

    def __init__(self) -> None:
        self._node: dict[str, str] = {}
        self._news: dict[str, tuple[int, int, float | None]] = {}

    def note(self, key: str, node: str, epoch: int, epochs: int, score: float | None) -> None:
        """Take down that the Run of this key has finished so many epochs, and on which node."""
        self._node[key] = node
        self._news[key] = (epoch, epochs, score)

    def news(self) -> dict[str, tuple[int, int, float | None]]:
        """What was noted since the last question."""
        news, self._news = self._news, {}
        return news

    def node(self, key: str) -> str | None:
        """The node that works on a Run, or did last."""
        return self._node.get(key)


def packed(value: GraphSet | SplitFile) -> dict[str, Any]:
    """The fields of a data set (arrays that Ray keeps in shared memory, and a few words) or of a split file."""
    if isinstance(value, SplitFile):
        return {**value.to_dict(), "folds": value.folds}
    return {f.name: getattr(value, f.name) for f in fields(value)}


def train(version: str, key: str, task: dict[str, Any], boxes: list[Any], board: Any) -> dict[str, Any]:
    """Train a Run; the answer has its record as a line, or the failure, or why this worker must not work.

    boxes: references to the packed graphs and, where the Run has one, the packed split file; in a list so that Ray does
    not fetch them for a process that has them.
    """
    if version != __version__:
        return {"refused": f"asapool {__version__}"}
    import ray

    note = partial(board.note.remote, key, ray.get_runtime_context().get_node_id())
    note(0, task["train"]["epochs"], None)  # before anything that takes time: the driver must know where a Run is
    [outcome] = run_tasks([task], _train, (boxes, note))  # in this process; an error becomes a sentence
    answer: dict[str, Any] = outcome.result if outcome.failure is None else {"failure": outcome.failure}
    return answer


def _train(shared: tuple[list[Any], Callable[..., None]], task: dict[str, Any]) -> dict[str, Any]:
    import ray
    import torch

    from asapool.experiments.run import Run, run

    torch.set_num_threads(1)
    (boxes, note), wanted, last = shared, Run.from_dict(task), [time.monotonic()]

    def on_epoch(epoch: int, epochs: int, score: float | None) -> None:
        now = time.monotonic()
        if now - last[0] >= EVERY:
            last[0] = now
            note(epoch, epochs, score)

    if wanted.fingerprint not in _sets:
        _sets[wanted.fingerprint] = GraphSet.trusted(**ray.get(boxes[0]))
    if wanted.splits and wanted.splits not in _splits:
        _splits[wanted.splits] = SplitFile.unpacked(ray.get(boxes[1]))
    record = run(_sets[wanted.fingerprint], wanted, on_epoch, _splits.get(wanted.splits))
    return {"record": record.to_line(), **({} if record.model is None else {"model": record.model})}
