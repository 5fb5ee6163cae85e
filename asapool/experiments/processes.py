"""Many tasks in a few local processes: one torch thread each, and a process that dies costs one task, not the rest.

concurrent.futures gives up on all tasks when one worker is killed (out of memory, say); here the parent hands out one
task at a time over a pipe, so it knows which task a dead worker had, reports that one as failed and starts another
worker.
"""

from __future__ import annotations

import multiprocessing as mp
import pickle
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, TypeVar

from asapool.errors import AsapoolError, ConfigError
from asapool.training.workers import become_worker, exit_cause

Task = TypeVar("Task")


@dataclass(frozen=True)
class Outcome(Generic[Task]):
    """A task with its result, or with the reason why there is none."""

    task: Task
    result: Any = None
    failure: str | None = None


@dataclass
class _Worker(Generic[Task]):
    process: mp.process.BaseProcess
    pipe: Connection
    task: Task | None = None


@dataclass(frozen=True)
class _Message:
    """Progress of a worker's task."""

    content: Any


def run_tasks(
    tasks: Iterable[Task],
    work: Callable[..., Any],
    shared: Any,
    jobs: int = 1,
    *,
    fresh: bool = False,
    on_message: Callable[[Task, Any], None] | None = None,
) -> Generator[Outcome[Task], None, None]:
    """Work on all tasks in `jobs` processes, and yield each outcome when it is there.

    A task is taken from the iterable when a process is free for it, after the outcome before it was yielded; so it may
    depend on the outcomes so far.

    work(shared, task) runs in a worker; work must be a function of a module, and shared (sent once per worker) and the
    tasks plain data. With one job and fresh=False everything runs in this process. Leaving the loop ends the workers.
    With on_message it is work(shared, task, send), and send(content) in a worker calls on_message(task, content) here.

    >>> [outcome.result for outcome in run_tasks([1, 2], divmod, 7)]
    [(7, 0), (3, 1)]
    """
    if jobs < 1:
        raise ConfigError(f"jobs must be at least 1, got {jobs}")
    if jobs == 1 and not fresh:
        for task in tasks:
            yield _attempt(work, shared, task, *([partial(on_message, task)] if on_message else []))
        return
    waiting = iter(tasks)
    workers: list[_Worker[Task]] = []
    context = mp.get_context("spawn")  # a forked copy of torch's threads may hang
    # pickled once, and sent over each worker's own pipe after it started: an argument of the process goes through a
    # pipe whose other end this process holds too, so that a worker that dies while it starts would block us for ever
    payload = bytes(ForkingPickler.dumps((work, shared, on_message is not None)))
    try:
        for task in islice(waiting, jobs):
            workers.append(_start(context))
            _brief(workers[-1], payload)
            _hand_out(workers[-1], task)
        while busy := [worker for worker in workers if worker.task is not None]:
            for pipe in wait([worker.pipe for worker in busy]):
                place = next(i for i, worker in enumerate(workers) if worker.pipe is pipe)
                whose, outcome = workers[place].task, _collect(workers[place])
                if isinstance(outcome, _Message):
                    if on_message is not None and whose is not None:
                        on_message(whose, outcome.content)
                    continue
                yield outcome
                for task in islice(waiting, 1):
                    if workers[place].process.exitcode is not None:
                        workers[place].pipe.close()
                        workers[place] = _start(context)
                        _brief(workers[place], payload)
                    _hand_out(workers[place], task)
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join()
            worker.pipe.close()


def _start(context: Any) -> _Worker[Task]:
    here, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # the worker has the only one: when it dies, what we send or wait for ends at once
    return _Worker(process, here)


def _brief(worker: _Worker[Task], payload: bytes) -> None:
    """Send what all tasks share; where the worker is dead already, the next receive reports it."""
    with suppress(OSError):
        worker.pipe.send_bytes(payload)


def _hand_out(worker: _Worker[Task], task: Task) -> None:
    worker.task = task
    with suppress(OSError):  # it died before its task: the next receive reports it
        worker.pipe.send(task)


def _collect(worker: _Worker[Task]) -> Outcome[Task] | _Message:
    task = worker.task
    assert task is not None
    try:
        message: Outcome[Task] | _Message = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        message = Outcome(task, failure=exit_cause(worker.process.exitcode or 0))
    if isinstance(message, Outcome):
        worker.task = None
    return message


def _attempt(work: Callable[..., Any], shared: Any, task: Task, *send: Callable[[Any], None]) -> Outcome[Task]:
    """An error is an outcome too: of ours its sentence, of others the last line with its place."""
    try:
        return Outcome(task, work(shared, task, *send))
    except AsapoolError as error:
        return Outcome(task, failure=str(error))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(task, failure=f"{type(error).__name__}: {error} ({where.filename}, line {where.lineno})")


def _serve(pipe: Connection) -> None:
    """The loop of a worker: what all tasks share, then a task in and an outcome out, until the parent hangs up."""
    become_worker()
    try:
        work, shared, talks = pickle.loads(pipe.recv_bytes())
        send = [lambda content: pipe.send(_Message(content))] if talks else []
        while True:
            pipe.send(_attempt(work, shared, pipe.recv(), *send))
    except (EOFError, OSError):
        return
