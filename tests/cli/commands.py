"""How these tests run commands: in this process where the words count, in one of their own where the process does."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from typer.testing import CliRunner

from asapool.cli.main import app

ENV = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def call(*args):
    """Run a command here; errors of asapool come out as they are."""
    return CliRunner().invoke(app, [str(a) for a in args], catch_exceptions=False)


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
