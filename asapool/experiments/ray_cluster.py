"""The Ray engine: Runs on the processors of many machines, or of this one.

The driver (the calling process) hands out Runs, reads their progress and writes the results; a machine of the
cluster only needs the same version of asapool. Only plain data goes over the network (dicts in, a line of
JSON out), so that two versions of asapool understand each other well enough to see that they differ. A Run whose
machine is lost is handed out again; one whose process dies on a live machine is a failed record, as in the local
engine.
"""

from __future__ import annotations

import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from functools import partial
from itertools import chain, islice
from typing import Any

from asapool import __version__
from asapool.data import GraphSet
from asapool.errors import ConfigError
from asapool.experiments.execute import Inputs, OnProgress
from asapool.experiments.processes import run_tasks
from asapool.experiments.protocols import SplitFile
from asapool.experiments.ray_connection import connected
from asapool.experiments.record import RunRecord, failed, machine
from asapool.experiments.run import Run

POLL = 1.0  # seconds between two progress updates
GRACE = 1.0  # seconds to wait for a machine to go down after its worker
LOSSES = 5  # lost machines per Run; a Run that loses more may be the cause
EVERY = 1.0  # seconds between two progress messages of a worker
_splits: dict[str, SplitFile] = {}  # in a worker, by digest
_sets: dict[str, GraphSet] = {}  # in a worker, by fingerprint: one per process, on arrays shared by the machine


class RayEngine:
    """Trains on a Ray cluster, one processor and one torch thread per Run.

    address: None starts Ray on this machine and stops it afterwards, "auto" finds a running one, "host:port" joins it.
    jobs: Maximum number of Runs at a time; None = the number of processors. A connection that the caller has made
    with ray.init is used and left open.
    """

    def __init__(self, address: str | None = None, jobs: int | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise ConfigError(f"jobs must be at least 1, got {jobs}")
        self.address, self.jobs = address, jobs

    def work(self, runs: Iterable[Run], inputs: Inputs, on_progress: OnProgress) -> Iterator[RunRecord]:
        """Yield a record per Run when it ends; leaving the loop stops the Runs in progress."""
        boxes = {name: packed(one) for name, one in inputs.items()}
        shared = sum(getattr(value, "nbytes", 0) for box in boxes.values() for value in box.values())
        with connected(self.address, self.jobs, shared) as ray:
            yield from _Work(ray, boxes, self.jobs, on_progress).through(runs)


class _Work:
    """Executes Runs on a connected cluster."""

    def __init__(self, ray: Any, boxes: Mapping[str, Any], jobs: int | None, on_progress: OnProgress) -> None:
        self.ray, self.jobs, self.on_progress = ray, jobs, on_progress
        # stored on the driver's node, from which other nodes fetch a copy when they first need one
        self.boxes = {digest: ray.put(box) for digest, box in boxes.items()}
        # no retries by Ray, which cannot tell a lost machine from a Run that kills its process
        self.train = ray.remote(num_cpus=1, max_retries=0)(train_remotely)
        self.board = ray.remote(num_cpus=0, max_restarts=-1)(Board).options(scheduling_strategy=_here(ray)).remote()
        self.flying: dict[Any, Run] = {}
        self.lost: Counter[str] = Counter()
        self.looked = 0.0

    def through(self, runs: Iterable[Run]) -> Iterator[RunRecord]:
        """Hand out the Runs and yield their records."""
        again: deque[Run] = deque()  # Runs whose machine was lost
        more = iter(runs)
        with self._ending():
            while True:
                for run in islice(chain(drained(again), more), max(0, self._room() - len(self.flying))):
                    self.flying[self._submit(run)] = run
                if not self.flying:
                    return
                ready, _ = self.ray.wait(list(self.flying), timeout=POLL)
                self._look()
                for reference in ready:
                    run = self.flying.pop(reference)
                    record = self._collect(reference, run)
                    if record is None:
                        again.append(run)
                    else:
                        yield record

    def _room(self) -> int:
        """More Runs than processors, so that no processor waits and an autoscaling cluster sees the demand."""
        return self.jobs or max(2, int(2 * self.ray.cluster_resources().get("CPU", 0)))

    def _submit(self, run: Run) -> Any:
        boxes = [self.boxes[digest] for digest in (run.fingerprint, run.splits) if digest]
        # fields that are not part of the key are sent separately
        task = run.to_dict() | ({"keep": True} if run.keep else {}) | ({"rungs": run.rungs} if run.rungs else {})
        gpus = int(run.train.device == "cuda")  # Ray shows a task only its own
        return self.train.options(num_gpus=gpus).remote(__version__, run.key, task, boxes, self.board)

    def _look(self) -> None:
        """Report the progress on the board; it is only informative, so a board that does not respond is ignored."""
        if time.monotonic() - self.looked < POLL:
            return
        self.looked, latest = time.monotonic(), {}
        with suppress(self.ray.exceptions.RayError):
            latest = self.ray.get(self.board.latest.remote(), timeout=5 * POLL)
        for run in self.flying.values():
            if run.key in latest:
                self.on_progress(run, *latest[run.key])

    def _collect(self, reference: Any, run: Run) -> RunRecord | None:
        """The record of a Run that has ended, or None if its machine was lost and it must be repeated."""
        errors = self.ray.exceptions
        try:
            answer = self.ray.get(reference)
        except errors.RayTaskError as error:  # not a training error, which would be in the answer
            raise ConfigError(
                f"a machine of the cluster fails: {_last_line(error)}. Install asapool {__version__} on all"
            ) from None
        except (errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError) as error:
            return self._again(run, _last_line(error))
        except errors.WorkerCrashedError:
            if self._node_is_gone(run):
                return self._again(run, "its machine went down too")
            why = "the worker process died: its machine may be out of memory, try fewer jobs"
            return failed(run, why, machine())
        except errors.RayError as error:
            return failed(run, f"{type(error).__name__}: {_last_line(error)}", machine())
        if "refused" in answer:
            raise ConfigError(
                f"a machine of the cluster has {answer['refused']}, but this one has asapool {__version__}. "
                "Install the same version on all"
            )
        if "failure" in answer:
            return failed(run, answer["failure"], machine())
        return replace(RunRecord.from_line(answer["record"]), model=answer.get("model"))

    def _again(self, run: Run, why: str) -> RunRecord | None:
        self.lost[run.key] += 1
        if self.lost[run.key] <= LOSSES:
            return None
        return failed(run, f"the machine it ran on was lost {LOSSES + 1} times; the last time: {why}", machine())

    def _node_is_gone(self, run: Run) -> bool:
        """Whether the machine on which a Run's process died is down too; Ray itself needs half a minute to tell."""
        with suppress(self.ray.exceptions.RayError):
            where = self.ray.get(self.board.node.remote(run.key), timeout=5 * POLL)
            time.sleep(GRACE)
            for node in self.ray.nodes():
                # a process that died before reporting its node may have been on any machine that does not respond
                if node["NodeID"] == where or (where is None and node["Alive"]):
                    alive = node["Alive"] and _answers(node["NodeManagerAddress"], node["NodeManagerPort"])
                    if not alive:
                        return True
        return False

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Stop the remaining Runs, even if the connection stays open."""
        try:
            yield
        finally:
            with suppress(self.ray.exceptions.RayError):
                for reference in self.flying:
                    self.ray.cancel(reference, force=True)
                self.ray.kill(self.board)


def drained(queue: deque[Run]) -> Iterator[Run]:
    """Take the Runs of a queue from its left until it is empty."""
    while queue:
        yield queue.popleft()


def _here(ray: Any) -> Any:
    """Schedule on the driver's own node, which lives as long as the driver."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=GRACE).close()
    except OSError:
        return False
    return True


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip().rstrip(".")


class Board:
    """The progress of every Run; workers write, the driver reads."""

    def __init__(self) -> None:
        self._node: dict[str, str] = {}
        self._latest: dict[str, tuple[int, int, float | None]] = {}

    def note(self, key: str, node: str, epoch: int, epochs: int, score: float | None) -> None:
        """Note how many epochs the Run of this key has finished, and on which node."""
        self._node[key] = node
        self._latest[key] = (epoch, epochs, score)

    def latest(self) -> dict[str, tuple[int, int, float | None]]:
        """The progress noted since the last call."""
        latest, self._latest = self._latest, {}
        return latest

    def node(self, key: str) -> str | None:
        """The node that trains a Run, or did last."""
        return self._node.get(key)


def packed(value: GraphSet | SplitFile) -> dict[str, Any]:
    """The fields of a data set (arrays, which Ray keeps in shared memory, and names) or of a split file."""
    if isinstance(value, SplitFile):
        return {**value.to_dict(), "folds": value.folds}
    return {f.name: getattr(value, f.name) for f in fields(value)}


def train_remotely(version: str, key: str, task: dict[str, Any], boxes: list[Any], board: Any) -> dict[str, Any]:
    """Train a Run; return its record as a line, the failure, or why this worker must not be used.

    boxes: references to the packed graphs and, if the Run has one, the packed split file; in a list so that Ray does
    not fetch them for a process that already has them.
    """
    if version != __version__:
        return {"refused": f"asapool {__version__}"}
    import ray

    note = partial(board.note.remote, key, ray.get_runtime_context().get_node_id())
    note(0, task["train"]["epochs"], None)  # first, so that the driver knows where the Run is
    [outcome] = run_tasks([task], _train, (boxes, note))  # in this process; an error becomes a message
    answer: dict[str, Any] = outcome.result if outcome.failure is None else {"failure": outcome.failure}
    return answer


def _train(shared: tuple[list[Any], Callable[..., None]], task: dict[str, Any]) -> dict[str, Any]:
    import ray
    import torch

    from asapool.experiments.fold import run

    torch.set_num_threads(1)
    (boxes, note), planned, last = shared, Run.from_dict(task), [time.monotonic()]

    def on_epoch(epoch: int, epochs: int, score: float | None) -> None:
        now = time.monotonic()
        if now - last[0] >= EVERY:
            last[0] = now
            note(epoch, epochs, score)

    if planned.fingerprint not in _sets:
        _sets[planned.fingerprint] = GraphSet.trusted(**ray.get(boxes[0]))
    if planned.splits and planned.splits not in _splits:
        _splits[planned.splits] = SplitFile.unpacked(ray.get(boxes[1]))
    record = run(_sets[planned.fingerprint], planned, on_epoch, _splits.get(planned.splits))
    return {"record": record.to_line(), **({} if record.model is None else {"model": record.model})}
