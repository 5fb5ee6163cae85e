"""The local engine: a few processes of this machine, each with one torch thread and its own copy of the graphs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asapool.experiments.machine import machine
from asapool.experiments.processes import run_tasks
from asapool.experiments.record import RunRecord, failed
from asapool.experiments.run import Run

if TYPE_CHECKING:
    from asapool.data import GraphSet

EVERY = 0.5  # seconds between two words of a worker about its epochs: enough for an eye, nothing for a training


@dataclass(frozen=True)
class LocalEngine:
    """Trains `jobs` Runs side by side.

    One job has its own process too: a training that runs out of memory then costs one Run and not the experiment, and
    the terminal stays alive while it trains.
    """

    jobs: int = 1

    def work(
        self, runs: Sequence[Run], graphs: Mapping[str, GraphSet], on_progress: Callable[[Run, int, int], None]
    ) -> Iterator[RunRecord]:
        """Yield a record per Run when it ends; a worker that dies is one failed record with the reason."""
        jobs = max(1, min(self.jobs, len(runs)))

        def told(run: Run, epochs: tuple[int, int]) -> None:
            on_progress(run, *epochs)

        with closing(run_tasks(runs, _work, dict(graphs), jobs, fresh=True, on_message=told)) as outcomes:
            for outcome in outcomes:
                record: RunRecord | None = outcome.result
                yield failed(outcome.task, outcome.failure or "", machine()) if record is None else record


def _work(graphs: Mapping[str, GraphSet], task: Run, say: Callable[[Any], None]) -> RunRecord:
    """What a worker does with a Run."""
    from asapool.experiments.run import run

    last = [-EVERY]

    def on_epoch(epoch: int, epochs: int) -> None:
        now = time.monotonic()
        if epoch == 0 or now - last[0] >= EVERY:
            last[0] = now
            say((epoch, epochs))

    return run(graphs[task.fingerprint], task, on_epoch)
