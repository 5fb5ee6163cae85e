"""The engines by name: one table of what can train, which the command line and its help read."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from asapool.errors import ConfigError, choose
from asapool.experiments.execute import Engine


class EngineEntry(NamedTuple):
    """One entry of the table.

    Args:
        sentence: Where it trains.
        build: (jobs, address) → engine.
        extra: The extra of asapool that it needs.
        takes_address: Whether it can join something that runs already.
    """

    sentence: str
    build: Callable[[int | None, str | None], Engine]
    extra: str | None = None
    takes_address: bool = False


def _inline(jobs: int | None, address: str | None) -> Engine:
    from asapool.experiments.local import InlineEngine

    if jobs not in (None, 1):
        raise ConfigError(f"the engine inline trains one model at a time, got jobs = {jobs}. Use the engine local")
    return InlineEngine()


def _local(jobs: int | None, address: str | None) -> Engine:
    from asapool.experiments.local import LocalEngine

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
        jobs: Trainings at the same time; None = 1, or all processors of a cluster.
        address: Of a running cluster.
    """
    choose("--engine", name, tuple(ENGINES))
    if address is not None and not ENGINES[name].takes_address:
        raise ConfigError("--address is the address of a Ray cluster. Add --engine ray")
    return ENGINES[name].build(jobs, address)
