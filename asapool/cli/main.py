"""`asapool`: the commands, and how errors end.

A module of this folder gives one command under its own name: `theory.theory` is a function, `data.data` a group of
them. Its name in COMMANDS adds it. Modules import nothing heavy at their top, so that help appears at once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

from asapool import __version__
from asapool.errors import AsapoolError

COMMANDS = (
    "train", "cv", "compare", "predict", "evaluate", "explain", "report", "reproduce", "results", "methods", "data",
    "theory",
)  # fmt: skip

app = typer.Typer(
    name="asapool",
    help="Hierarchical graph classification with ASAP pooling.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"asapool {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Hierarchical graph classification with ASAP pooling."""


for _name in COMMANDS:
    _command = getattr(import_module(f"asapool.cli.{_name}"), _name)
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        app.command(_name)(_command)


def main() -> None:
    """Run a command; asapool's own errors end with one sentence and code 2, an interruption with code 130."""
    try:
        app()
    except AsapoolError as error:
        typer.echo(f"asapool: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        _interrupted()
    except SystemExit as end:
        if end.code == 130:  # what typer makes of an interruption
            _interrupted()
        raise


def _interrupted() -> None:
    typer.echo("asapool: interrupted; nothing half-written was left behind", err=True)
    sys.exit(130)


if __name__ == "__main__":
    main()
