"""The Ray engine: Runs on the processors of many machines, or of this one.

The driver (the process that called) hands out Runs, reads where they stand and writes the results; a machine of the
cluster needs asapool in the same version, and nothing else. Only plain data goes over the network (dicts in, a line of
JSON out), so that two versions of asapool understand each other well enough to see that they differ. A Run whose
machine is lost is handed out again; one whose process dies on a machine that lives is a failed record, as in the local
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

POLL = 1.0  # seconds between two looks at the board
GRACE = 1.0  # seconds in which a machine that goes down may follow its worker
LOSSES = 5  # lost machines per Run: one that meets more of them may be the reason
EVERY = 1.0  # seconds between two progress messages of a worker
_splits: dict[str, SplitFile] = {}  # in a worker, by digest
_sets: dict[str, GraphSet] = {}  # in a worker, by fingerprint: one copy per process, on arrays its whole machine shares


class RayEngine:
    """Trains on a Ray cluster, one processor and one torch thread per Run.

    address: None starts Ray on this machine and stops it afterwards, "auto" finds a running one, "host:port" joins it.
    jobs: Runs at the same time at most; None = as many as there are processors. A connection that the caller has made
    with ray.init is used and stays.
    """

    def __init__(self, address: str | None = None, jobs: int | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise ConfigError(f"jobs must be at least 1, got {jobs}")
        self.address, self.jobs = address, jobs

    def work(self, runs: Iterable[Run], inputs: Inputs, on_progress: OnProgress) -> Iterator[RunRecord]:
        """Yield a record per Run when it ends; leaving the loop stops what is still being trained."""
        boxes = {name: packed(one) for name, one in inputs.items()}
        shared = sum(getattr(value, "nbytes", 0) for box in boxes.values() for value in box.values())
        with connected(self.address, self.jobs, shared) as ray:
            yield from _Work(ray, boxes, self.jobs, on_progress).through(runs)


class _Work:
    """One pass over a list of Runs on a connected cluster."""

    def __init__(self, ray: Any, boxes: Mapping[str, Any], jobs: int | None, on_progress: OnProgress) -> None:
        self.ray, self.jobs, self.on_progress = ray, jobs, on_progress
        # kept by the driver's own node, from which each other node fetches a copy when it first needs one
        self.boxes = {digest: ray.put(box) for digest, box in boxes.items()}
        # retries are ours: Ray's would not tell a lost machine from a training that kills its process
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
        """A few more than can run, so that no processor waits, and a cluster that can grow sees why it should."""
        return self.jobs or max(2, int(2 * self.ray.cluster_resources().get("CPU", 0)))

    def _submit(self, run: Run) -> Any:
        boxes = [self.boxes[digest] for digest in (run.fingerprint, run.splits) if digest]
        # what is no part of the key travels beside it
        task = run.to_dict() | ({"keep": True} if run.keep else {}) | ({"rungs": run.rungs} if run.rungs else {})
        return self.train.remote(__version__, run.key, task, boxes, self.board)

    def _look(self) -> None:
        """Pass on what the board says; it is for people to read, so one that does not answer is no trouble."""
        if time.monotonic() - self.looked < POLL:
            return
        self.looked, latest = time.monotonic(), {}
        with suppress(self.ray.exceptions.RayError):
            latest = self.ray.get(self.board.latest.remote(), timeout=5 * POLL)
        for run in self.flying.values():
            if run.key in latest:
                self.on_progress(run, *latest[run.key])

    def _collect(self, reference: Any, run: Run) -> RunRecord | None:
        """The record of a Run that has ended, or None where its machine is lost and it must be done again."""
        errors = self.ray.exceptions
        try:
            answer = self.ray.get(reference)
        except errors.RayTaskError as error:  # not of the training, whose errors are answers
            raise ConfigError(
                f"a machine of the cluster cannot work: {_last_line(error)}. Install asapool {__version__} on all"
            ) from None
        except (errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError) as error:
            return self._again(run, _last_line(error))
        except errors.WorkerCrashedError:
            if self._node_is_gone(run):
                return self._again(run, "its machine went down with it")
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
        """Whether the machine on which a Run's process died is down too; Ray itself takes half a minute to be sure."""
        with suppress(self.ray.exceptions.RayError):
            where = self.ray.get(self.board.node.remote(run.key), timeout=5 * POLL)
            time.sleep(GRACE)
            for node in self.ray.nodes():
                # one that died before it could say where it was may have been on any machine that is silent now
                if node["NodeID"] == where or (where is None and node["Alive"]):
                    alive = node["Alive"] and _answers(node["NodeManagerAddress"], node["NodeManagerPort"])
                    if not alive:
                        return True
        return False

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Stop what is left, also when the connection stays."""
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
    """The driver's own node: what is placed there lives as long as the driver does."""
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
    """Where every training stands; workers write, the driver reads."""

    def __init__(self) -> None:
        self._node: dict[str, str] = {}
        self._latest: dict[str, tuple[int, int, float | None]] = {}

    def note(self, key: str, node: str, epoch: int, epochs: int, score: float | None) -> None:
        """Take down that the Run of this key has finished so many epochs, and on which node."""
        self._node[key] = node
        self._latest[key] = (epoch, epochs, score)

    def latest(self) -> dict[str, tuple[int, int, float | None]]:
        """What was noted since the last call."""
        latest, self._latest = self._latest, {}
        return latest

    def node(self, key: str) -> str | None:
        """The node that works on a Run, or did last."""
        return self._node.get(key)


def packed(value: GraphSet | SplitFile) -> dict[str, Any]:
    """The fields of a data set (arrays that Ray keeps in shared memory, and a few words) or of a split file."""
    if isinstance(value, SplitFile):
        return {**value.to_dict(), "folds": value.folds}
    return {f.name: getattr(value, f.name) for f in fields(value)}


def train_remotely(version: str, key: str, task: dict[str, Any], boxes: list[Any], board: Any) -> dict[str, Any]:
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

    from asapool.experiments.fold import run

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
