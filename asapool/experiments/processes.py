"""Run many tasks in a few local processes with one torch thread each; a process that dies costs only its own task.

concurrent.futures gives up on all tasks when one worker is killed (out of memory, say); here the parent sends one
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
    """Work on all tasks in `jobs` processes, and yield each outcome when it is ready.

    A task is taken from the iterable when a process is free, after the previous outcome was yielded, so it may
    depend on the outcomes so far.

    work(shared, task) runs in a worker; work must be a module-level function, and shared (sent once per worker) and the
    tasks must be picklable. With one job and fresh=False everything runs in this process. Leaving the loop ends the
    workers. With on_message, work(shared, task, send) is called instead, and send(content) in a worker calls
    on_message(task, content) here.

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
    # pickled once, and sent over each worker's own pipe after it started: arguments of a process go through a pipe
    # whose other end this process keeps open, so that a worker that dies during start-up would block it forever
    payload = bytes(ForkingPickler.dumps((work, shared, on_message is not None)))
    try:
        for task in islice(waiting, jobs):
            workers.append(_start(context, len(workers)))
            _brief(workers[-1], payload)
            _hand_out(workers[-1], task)
        while busy := [worker for worker in workers if worker.task is not None]:
            for pipe in wait([worker.pipe for worker in busy]):
                place = next(i for i, worker in enumerate(workers) if worker.pipe is pipe)
                current, outcome = workers[place].task, _collect(workers[place])
                if isinstance(outcome, _Message):
                    if on_message is not None and current is not None:
                        on_message(current, outcome.content)
                    continue
                yield outcome
                for task in islice(waiting, 1):
                    if workers[place].process.exitcode is not None:
                        workers[place].pipe.close()
                        workers[place] = _start(context, place)
                        _brief(workers[place], payload)
                    _hand_out(workers[place], task)
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join()
            worker.pipe.close()


def _start(context: Any, number: int) -> _Worker[Task]:
    own, other = context.Pipe()
    process = context.Process(target=_serve, args=(other, number), daemon=True)
    process.start()
    other.close()  # only the worker keeps this end open: if it dies, sending and receiving fail at once
    return _Worker(process, own)


def _brief(worker: _Worker[Task], payload: bytes) -> None:
    """Send what all tasks share; if the worker is already dead, the next receive reports it."""
    with suppress(OSError):
        worker.pipe.send_bytes(payload)


def _hand_out(worker: _Worker[Task], task: Task) -> None:
    worker.task = task
    with suppress(OSError):  # the worker is dead; the next receive reports it
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
    """Run a task; an AsapoolError becomes its message, other exceptions their message with file and line."""
    try:
        return Outcome(task, work(shared, task, *send))
    except AsapoolError as error:
        return Outcome(task, failure=str(error))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(task, failure=f"{type(error).__name__}: {error} ({where.filename}, line {where.lineno})")


def _serve(pipe: Connection, number: int) -> None:
    """The loop of a worker: receive the shared data, then tasks, and send outcomes until the parent closes the pipe."""
    become_worker(number)
    try:
        work, shared, sends_messages = pickle.loads(pipe.recv_bytes())
        send = [lambda content: pipe.send(_Message(content))] if sends_messages else []
        while True:
            pipe.send(_attempt(work, shared, pipe.recv(), *send))
    except (EOFError, OSError):
        return
