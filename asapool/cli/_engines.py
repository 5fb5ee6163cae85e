"""The options that say where training runs are executed, for the commands that train many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from asapool.cli._options import COMPUTE

if TYPE_CHECKING:
    from asapool.experiments import execute

Jobs = Annotated[
    int | None,
    typer.Option(
        "-j", "--jobs", min=1, metavar="N", rich_help_panel=COMPUTE,
        help="Number of training runs at a time; default: 1, or all processors of a Ray cluster.",
    ),
]  # fmt: skip
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        rich_help_panel=COMPUTE,
        help="local (processes on this machine), inline (this process) or ray.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", rich_help_panel=COMPUTE, help="A running Ray cluster; default: start Ray on this machine."
    ),
]


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Where training runs are executed, and how many at a time."""

    jobs: Jobs = None
    engine: Engine = None
    address: Address = None

    def named(self, default: str = "local") -> execute.Engine:
        """The engine; `default` names it if --engine was not given."""
        from asapool.experiments.engines import engine_named

        return engine_named(self.engine or default, self.jobs, self.address)
