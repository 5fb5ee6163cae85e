"""`asapool`: the commands, and how errors end.

A module of this folder gives one command under its own name: `theory.theory` is a function, `data.data` a group of
them. Its name in COMMANDS adds it. Modules import nothing heavy at their top, so that help appears at once.
"""

from __future__ import annotations

import errno
import os
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

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what a disk says that can take no more

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
    """Run a command; what ends it early is told in one sentence, and by the codes of docs/cli.md."""
    if sys.stdout is None:  # the next file to be opened would take its place, and get what is printed
        _say("standard output is closed, and the answer goes there. Leave out >&-, or send it to /dev/null")
        sys.exit(1)
    code: int | str | None = 1
    try:
        code = _run()
        sys.stdout.flush()
    except OSError as error:
        if error.errno in FULL:
            _say(f"standard output: cannot be written ({error.strerror}). Free space or send it elsewhere")
        elif not isinstance(error, BrokenPipeError):  # a reader that has seen enough, such as head, is no fault
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again at its end
        code = code or 1
    sys.exit(code)


def _run() -> int | str | None:
    """The code that a command ends with."""
    try:
        app()
    except AsapoolError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        code: int | str | None = 130
    except SystemExit as end:
        code = end.code
    if code == 130:  # which is also what typer makes of an interruption
        _say("interrupted; nothing half-written was left behind")
    return code


def _say(text: str) -> None:
    typer.echo(f"asapool: {text}", err=True)


if __name__ == "__main__":
    main()
