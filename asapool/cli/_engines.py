"""Where trainings run: the options of the commands that train many times, and the engine they name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from asapool.errors import ConfigError, choose

if TYPE_CHECKING:
    from asapool.experiments import execute

ENGINE = "Engine"  # panel of the help
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j", "--jobs", min=1, metavar="N", rich_help_panel=ENGINE,
        help="Trainings at the same time; default: 1, or all processors of a Ray cluster.",
    ),
]  # fmt: skip
Engine = Annotated[
    str,
    typer.Option("--engine", metavar="NAME", rich_help_panel=ENGINE, help="local (processes on this machine) or ray."),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", rich_help_panel=ENGINE, help="A running Ray cluster; default: start Ray on this machine."
    ),
]


def engine_named(name: str, address: str | None, jobs: int | None) -> execute.Engine:
    """The engine behind --engine, --address and -j."""
    return ENGINES[choose("--engine", name, tuple(ENGINES))](address, jobs)


def _local(address: str | None, jobs: int | None) -> execute.Engine:
    from asapool.experiments.local import LocalEngine

    if address is not None:
        raise ConfigError("--address is the address of a Ray cluster. Add --engine ray")
    return LocalEngine(jobs or 1)


def _ray(address: str | None, jobs: int | None) -> execute.Engine:
    from asapool.experiments.ray_cluster import RayEngine

    return RayEngine(address, jobs)


ENGINES: dict[str, Callable[[str | None, int | None], execute.Engine]] = {"local": _local, "ray": _ray}
