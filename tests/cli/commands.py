"""How these tests run commands: in this process where the words count, in one of their own where the process does.

`call` stays in this process, `fork` is a child of it, with streams and an exit code of its own but torch already
loaded, and `begin` starts a new interpreter, as a shell does.
"""

import io
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from contextlib import suppress
from tempfile import TemporaryFile

from typer.testing import CliRunner

from asapool.cli.main import app

ENV = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def call(*args):
    """Run a command here; errors of asapool come out as they are."""
    return CliRunner().invoke(app, [str(a) for a in args], catch_exceptions=False)


def fork(*args, stdout=None, unbuffered=False):
    """Code, standard output and standard error of asapool.cli.main in a child of this process.

    It cannot train: torch refuses gradients in a child of a process that computed some.

    Args:
        args: the words of the command.
        stdout: number of an open file; None = what is written there is returned.
        unbuffered: as with PYTHONUNBUFFERED=1.
    """
    with TemporaryFile() as out, TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = _run_main(args, out.fileno() if stdout is None else stdout, err.fileno(), unbuffered)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return os.waitstatus_to_exitcode(status), *texts


def _run_main(args, out, err, unbuffered):
    """What an interpreter that was just started does with `python -m asapool`."""
    from asapool.cli.main import main

    signal.alarm(180)
    os.dup2(out, 1)
    os.dup2(err, 2)
    raw = open(1, "wb", buffering=0, closefd=False)  # noqa: SIM115 (open until the process ends)
    sys.stdout = io.TextIOWrapper(raw if unbuffered else io.BufferedWriter(raw), "utf-8", write_through=unbuffered)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.update(ENV)
    warnings.resetwarnings()
    for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", kind)
    logging.root.handlers.clear()
    sys.argv = ["asapool", *map(str, args)]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
    except OSError:
        code = 120  # as Python does
    return code


def begin(*args, **options):
    """Start a command as a person would."""
    command = [sys.executable, "-m", "asapool.cli.main", *map(str, args)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **pipes, env=ENV, preexec_fn=_hear_ctrl_c, **options)


def _hear_ctrl_c():
    """A shell lets its background jobs ignore Ctrl-C, and theirs too; these tests may be such a job."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finish(process, seconds=180):
    """Code, standard output and standard error of a started command."""
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def wait_for(true, process, seconds=180):
    """Wait until something is true; the process that is to make it so must not end before."""
    end = time.monotonic() + seconds
    while not true():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def fill(disk):
    """Leave no room on a small disk; removing disk / "filler" makes room again."""
    with open(disk / "filler", "wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(4096))
