"""How these tests run commands: in this process where the words count, in one of their own where the process does.

`call` stays in this process, `fork` is a child of it, with streams and an exit code of its own but torch already
loaded, and `begin` is a child of a process that has computed nothing yet, so it may train.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from tempfile import TemporaryFile

from typer.testing import CliRunner

from asapool.cli.main import app
from tests.children import Child, as_interpreter

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
                streams = (out.fileno() if stdout is None else stdout, err.fileno())
                code = as_interpreter(_run_main, args, *streams, unbuffered)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return os.waitstatus_to_exitcode(status), *texts


def _run_main(*args):
    """What `python -m asapool` does with some words."""
    from asapool.cli.main import main

    signal.alarm(180)
    os.environ.update(ENV)
    sys.argv = ["asapool", *map(str, args)]
    main()


def begin(*args, start_new_session=False):
    """Start a command as a person would, in a process that gets signals of its own; it may train."""
    return Child(_run_main, *args, env=ENV, start_new_session=start_new_session)


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
