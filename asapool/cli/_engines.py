"""Who trains: the options of the commands that train many times, and the engine they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asapool.errors import ConfigError, choose

if TYPE_CHECKING:
    from asapool.experiments import execute

Jobs = Annotated[
    int | None, typer.Option("-j", "--jobs", min=1, help="Trainings at the same time; 1, or all of a Ray cluster.")
]
Engine = Annotated[str, typer.Option("--engine", help="Who trains: local (processes of this machine) or ray.")]
Address = Annotated[str | None, typer.Option(help="Of a running Ray cluster; without it one is started here.")]


def engine_named(name: str, address: str | None, jobs: int | None) -> execute.Engine:
    """The engine behind --engine, --address and -j."""
    choose("--engine", name, ("local", "ray"))
    if name == "ray":
        from asapool.experiments.ray_cluster import RayEngine

        return RayEngine(address, jobs)
    if address is not None:
        raise ConfigError("--address is that of a Ray cluster. Add --engine ray")
    from asapool.experiments.local import LocalEngine

    return LocalEngine(jobs or 1)
