"""`asapool`: the commands, and how errors are reported.

COMMANDS lists them with their modules: a command is the function of its name (`train.train`), or a group of functions
(`data.data`). Modules import nothing heavy at the top, so that help appears at once.
"""

from __future__ import annotations

import errno
import logging
import os
import platform
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, TextIO

import typer

from asapool import __version__
from asapool.cli._groups import QUIET, Command, CommandGroup, grouped
from asapool.cli._output import ERROR, be_quiet, note
from asapool.errors import AsapoolError

COMMANDS = {  # name → module of asapool.cli, in the order of the help
    "train": "train", "cv": "cv", "compare": "cv", "tune": "tune", "predict": "predict", "embed": "predict",
    "evaluate": "predict", "info": "info", "explain": "explain", "motifs": "explain", "report": "results",
    "export": "deploy", "serve": "deploy", "reproduce": "reproduce", "results": "results", "methods": "methods",
    "data": "data", "theory": "theory", "warmup": "methods",
}  # fmt: skip

PACKAGE = Path(__file__).parents[1]
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk is full

ABOUT = "Train models on graphs and molecules, predict, and explain the predictions."

app = typer.Typer(
    name="asapool",
    cls=CommandGroup,
    help=ABOUT,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


LIBRARIES = ("torch", "torch_geometric", "numba", "numpy", "rdkit", "ray", "optuna")  # the ones that results depend on


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"asapool {__version__}")
        for name in LIBRARIES:
            with suppress(PackageNotFoundError):
                typer.echo(f"{name} {version(name)}")
        typer.echo(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    quiet: QUIET = False,
) -> None:
    """Train models on graphs and molecules, predict, and explain the predictions."""
    be_quiet(quiet)


for _name, _module in COMMANDS.items():
    _command = getattr(import_module(f"asapool.cli.{_module}"), _name)
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        app.command(_name, cls=Command)(grouped(_command))


def main() -> None:
    """Run a command; an error prints one sentence on standard error and sets an exit code (docs/cli.md)."""
    if sys.stdout is None:  # the next opened file would become descriptor 1 and get the output
        _say("standard output is closed, but the result goes there. Remove >&-, or redirect it to /dev/null")
        sys.exit(1)
    code: int | str | None = 1
    if sys.stderr is not None and sys.stderr.isatty():  # progress shows only on a terminal
        logger = logging.getLogger("asapool")
        logger.setLevel(logging.INFO)
        logger.addHandler(_Notes())
    warnings.showwarning = _warn
    try:
        code = _run()
        sys.stdout.flush()
    except OSError as error:
        if error.errno in FULL:
            _say(f"standard output: cannot be written ({error.strerror}). Free space or redirect it")
        elif not isinstance(error, BrokenPipeError):  # a reader that stops early, such as head, is not an error
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again when it exits
        code = code or 1
    sys.exit(code)


def _warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
    line: str | None = None,
) -> None:  # fmt: skip
    """Print our own warnings as notes, and those of other libraries in the usual format."""
    if Path(filename).is_relative_to(PACKAGE):
        _say(f"Warning: {message}.")
    elif sys.stderr is not None:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


class _Notes(logging.Handler):
    """Prints log messages of the library as notes on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message."""
        _say(record.getMessage())


def _run() -> int | str | None:
    """Run the command and return its exit code."""
    try:
        app(prog_name="asapool")
    except AsapoolError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        code: int | str | None = 130
    except SystemExit as end:
        code = end.code
    if code == 130:  # typer turns an interruption into this code too
        _say("interrupted; no partial files were left behind")
    return code


def _say(text: str) -> None:
    note(f"{ERROR}{text}")


if __name__ == "__main__":
    main()
