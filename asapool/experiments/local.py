"""Engines of this machine: a few processes, each with one torch thread and its own copy of the graphs; or this one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from asapool.experiments.execute import Inputs, OnProgress
from asapool.experiments.machine import machine
from asapool.experiments.processes import run_tasks
from asapool.experiments.record import RunRecord, failed
from asapool.experiments.run import Run

EVERY = 0.5  # seconds between two progress messages of a worker: enough for an eye, nothing for a training


@dataclass(frozen=True)
class LocalEngine:
    """Trains `jobs` Runs side by side.

    One job has its own process too: a training that runs out of memory then costs one Run and not the experiment, and
    the terminal stays alive while it trains.
    """

    jobs: int = 1

    def work(self, runs: Iterable[Run], inputs: Inputs, on_progress: OnProgress) -> Iterator[RunRecord]:
        """Yield a record per Run when it ends; a worker that dies is one failed record with the reason."""

        def on_message(run: Run, progress: tuple[int, int, float | None]) -> None:
            on_progress(run, *progress)

        with closing(run_tasks(runs, _work, dict(inputs), self.jobs, fresh=True, on_message=on_message)) as outcomes:
            for outcome in outcomes:
                record: RunRecord | None = outcome.result
                yield failed(outcome.task, outcome.failure or "", machine()) if record is None else record


class InlineEngine:
    """Trains in this process, one Run after the other."""

    def work(self, runs: Iterable[Run], inputs: Inputs, on_progress: OnProgress) -> Iterator[RunRecord]:
        """Yield a record per Run; an error of the training is a failed record."""
        for outcome in run_tasks(runs, _train, (inputs, on_progress)):
            yield outcome.result or failed(outcome.task, outcome.failure or "", machine())


def _train(shared: tuple[Inputs, OnProgress], task: Run) -> RunRecord:
    from asapool.experiments.run import run

    inputs, on_progress = shared
    return run(inputs[task.fingerprint], task, partial(on_progress, task), inputs.get(task.splits))


def _work(inputs: Inputs, task: Run, send: Callable[[Any], None]) -> RunRecord:
    """What a worker does with a Run."""
    from asapool.experiments.run import run

    last = [-EVERY]

    def on_epoch(epoch: int, epochs: int, score: float | None) -> None:
        now = time.monotonic()
        if epoch == 0 or now - last[0] >= EVERY:
            last[0] = now
            send((epoch, epochs, score))

    return run(inputs[task.fingerprint], task, on_epoch, inputs.get(task.splits))
