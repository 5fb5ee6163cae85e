"""The local engine: a few processes of this machine, each with one torch thread and its own copy of the graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
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

    def work(self, runs: Sequence[Run], inputs: Inputs, on_progress: OnProgress) -> Iterator[RunRecord]:
        """Yield a record per Run when it ends; a worker that dies is one failed record with the reason."""
        jobs = max(1, min(self.jobs, len(runs)))

        def on_message(run: Run, progress: tuple[int, int, float | None]) -> None:
            on_progress(run, *progress)

        with closing(run_tasks(runs, _work, dict(inputs), jobs, fresh=True, on_message=on_message)) as outcomes:
            for outcome in outcomes:
                record: RunRecord | None = outcome.result
                yield failed(outcome.task, outcome.failure or "", machine()) if record is None else record


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
