"""The table of engines, and the local ones: this process, or several with one torch thread each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from asapool.errors import ConfigError, choose
from asapool.experiments.execute import Engine, Inputs, OnProgress
from asapool.experiments.processes import run_tasks
from asapool.experiments.record import RunRecord, failed, machine
from asapool.experiments.run import Run
from asapool.training.parallel import Processes

EVERY = 0.5  # seconds between two progress messages of a worker: frequent enough to watch, negligible in cost


@dataclass(frozen=True)
class LocalEngine:
    """Trains `jobs` Runs in parallel.

    Even a single job has its own process: running out of memory then costs one Run and not the experiment, and
    the terminal stays responsive.
    """

    jobs: int = 1

    def work(self, runs: Iterable[Run], inputs: Inputs, on_progress: OnProgress) -> Iterator[RunRecord]:
        """Yield a record per Run when it ends; if a worker dies, its record has the reason."""

        def on_message(run: Run, progress: tuple[int, int, float | None]) -> None:
            on_progress(run, *progress)

        with closing(run_tasks(runs, _work, dict(inputs), self.jobs, fresh=True, on_message=on_message)) as outcomes:
            for outcome in outcomes:
                record: RunRecord | None = outcome.result
                yield failed(outcome.task, outcome.failure or "", machine()) if record is None else record


class InlineEngine:
    """Trains in this process, one Run after another."""

    def work(self, runs: Iterable[Run], inputs: Inputs, on_progress: OnProgress) -> Iterator[RunRecord]:
        """Yield a record per Run; a training error gives a failed record."""
        for outcome in run_tasks(runs, _train, (inputs, on_progress)):
            yield outcome.result or failed(outcome.task, outcome.failure or "", machine())


def _train(shared: tuple[Inputs, OnProgress], task: Run) -> RunRecord:
    from asapool.experiments.fold import run

    inputs, on_progress = shared
    return run(inputs[task.fingerprint], task, partial(on_progress, task), inputs.get(task.splits))


def _work(inputs: Inputs, task: Run, send: Callable[[Any], None]) -> RunRecord:
    """Train one Run in a worker."""
    from asapool.experiments.fold import run

    last = [-EVERY]

    def on_epoch(epoch: int, epochs: int, score: float | None) -> None:
        now = time.monotonic()
        if epoch == 0 or now - last[0] >= EVERY:
            last[0] = now
            send((epoch, epochs, score))

    return run(inputs[task.fingerprint], task, on_epoch, inputs.get(task.splits))


class EngineEntry(NamedTuple):
    """One entry of the table.

    Args:
        sentence: Where it trains.
        build: (jobs, address) → engine.
        extra: The optional dependencies of asapool that it needs.
        takes_address: Whether it can join a running cluster.
    """

    sentence: str
    build: Callable[[int | None, str | None], Engine]
    extra: str | None = None
    takes_address: bool = False


def _inline(jobs: int | None, address: str | None) -> Engine:

    if jobs not in (None, 1):
        raise ConfigError(f"the engine inline trains one model at a time, got jobs = {jobs}. Use the engine local")
    return InlineEngine()


def _local(jobs: int | None, address: str | None) -> Engine:

    return LocalEngine(jobs or 1)


def _ray(jobs: int | None, address: str | None) -> Engine:
    from asapool.experiments.ray_cluster import RayEngine

    return RayEngine(address, jobs)


ENGINES: dict[str, EngineEntry] = {
    "inline": EngineEntry("this process", _inline),
    "local": EngineEntry("processes on this machine", _local),
    "ray": EngineEntry("a Ray cluster", _ray, extra="cluster", takes_address=True),
}


def engine_named(name: str, jobs: int | None = None, address: str | None = None) -> Engine:
    """The engine of that name.

    Args:
        name: A name of ENGINES.
        jobs: Number of training runs at a time; None = 1, or all processors of a cluster.
        address: Of a running cluster.
    """
    choose("--engine", name, tuple(ENGINES))
    if address is not None and not ENGINES[name].takes_address:
        raise ConfigError("--address is the address of a Ray cluster. Add --engine ray")
    return ENGINES[name].build(jobs, address)


def sharing_processes(name: str | None, jobs: int, address: str | None = None) -> Processes:
    """The processes that share the batches of one training run: of this machine, or of a Ray cluster.

    Args:
        name: A name of ENGINES; None = local.
        jobs: How many.
        address: Of a running cluster.
    """
    engine_named(name or "local", jobs, address)  # refuses what does not fit
    if name == "ray":
        from asapool.experiments.ray_training import RayProcesses

        return RayProcesses(jobs, address)
    return Processes(jobs)
