"""Processes for tests, each with its own number, signals, streams and exit code, but with torch already loaded.

A new interpreter takes seconds to import torch, scipy and scikit-learn. So each worker of pytest has one server
(multiprocessing's fork server) which imports these libraries and nothing else: no asapool, no gradients, no threads.
Children are forked from it. What an interpreter does before the first line (its options, PYTHON… variables, which
modules get loaded) is not tested this way; such tests start `sys.executable`.
"""

import io
import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import traceback
import warnings
import weakref
from pathlib import Path
from tempfile import mkdtemp

LIBRARIES = ["torch", "scipy.stats", "sklearn.isotonic", "sklearn.neighbors", "networkx", "typer.testing"]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(LIBRARIES)


class Child:
    """A function in a process of its own; used like a subprocess.Popen with text pipes.

    Args:
        function: of a module; its module is imported in the child.
        args: its arguments.
        env: the child's environment.
        start_new_session: as in subprocess.Popen.
    """

    def __init__(self, function, *args, env=None, start_new_session=False):
        self._folder = Path(mkdtemp())
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        outset = (str(self._folder), dict(os.environ if env is None else env), start_new_session)
        self._process = CONTEXT.Process(target=_enter, args=(outset, function, args))
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        """The exit code, −n for signal n, None while it runs."""
        return self._process.exitcode

    def poll(self):
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout)
        return self.returncode

    def communicate(self, timeout=None):
        """Its standard output and standard error, when it has ended."""
        self.wait(timeout)
        return tuple((self._folder / name).read_text(encoding="utf-8") for name in ("out", "err"))


def run_python(code, env=None, seconds=240):
    """What subprocess.run([sys.executable, "-c", code]) returns, with text."""
    child = Child(_execute, code, env=env)
    out, err = child.communicate(seconds)
    return subprocess.CompletedProcess(code, child.returncode, out, err)


def _execute(code):
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


def _enter(outset, function, args):
    folder, env, start_new_session = outset
    if start_new_session:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores Ctrl-C
    os.environ.clear()
    os.environ.update(env)
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
    streams = [os.open(os.path.join(folder, name), flags) for name in ("out", "err")]
    os._exit(as_interpreter(function, args, *streams))


def as_interpreter(function, args, out, err, unbuffered=False):
    """Call a function as a new interpreter runs a program; returns the exit code.

    Args:
        function: the program.
        args: its arguments.
        out: number of an open file for standard output.
        err: number of an open file for standard error.
        unbuffered: as with PYTHONUNBUFFERED=1.
    """
    os.dup2(out, 1)
    os.dup2(err, 2)
    raw = open(1, "wb", buffering=0, closefd=False)  # noqa: SIM115 (open until the process ends)
    sys.stdout = io.TextIOWrapper(raw if unbuffered else io.BufferedWriter(raw), "utf-8", write_through=unbuffered)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    warnings.resetwarnings()
    for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", kind)
    logging.root.handlers.clear()
    try:
        function(*args)
        code = 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
    except OSError:
        code = 120  # as Python does
    return code
