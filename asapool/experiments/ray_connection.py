"""Joining a Ray cluster by its address, or starting one on this machine for as long as it is needed.

A cluster that we started ends with us: after SIGTERM because the signal becomes an exception, and after SIGKILL because
a guard process waits for our end, ends what is left of that cluster and removes its folder.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from asapool.errors import ConfigError, MissingExtraError

ANSWER = 5.0  # seconds to wait for an open port
WELCOME = 30.0  # seconds to wait until a cluster has let us in
LEAST_STORE = 80 * 2**20  # bytes of shared memory below which Ray does not start
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # Ray prints what happens to its workers on standard output, which is ours
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning about graphics cards, which are not used
}
TOKEN = (
    "If the cluster asks for a token, set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to the token or RAY_AUTH_TOKEN_PATH "
    "to its file (default: ~/.ray/auth_token)"
)
# Only processes whose command line names the folder are ended; it is new and has a random name. Ray's workers end by
# themselves when their node does.
GUARD = """
import os, shutil, signal, sys, time
folder = sys.argv[1]
sys.stdin.buffer.read()
for _ in range(20):
    if not os.path.isdir(folder):
        break
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if os.fsencode(folder) in file.read():
                        os.kill(int(name), signal.SIGKILL)
            except OSError:
                pass
    shutil.rmtree(folder, ignore_errors=True)
    time.sleep(0.5)
"""
# Ray itself waits for minutes and then ends the process, so a child of ours tries the address first
PROBE = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
except Exception as error:
    sys.exit(str(error).strip().splitlines()[0])
"""


def load_ray() -> Any:
    """Ray with its messages turned off; where it is not installed, an error with the command that installs it."""
    for name, value in QUIET.items():  # Ray reads them when it is imported
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "cluster") from None
    return ray


@contextmanager
def connected(address: str | None, cpus: int | None, shared: int) -> Iterator[Any]:
    """Give Ray, connected; a connection that is there already is used and left alone.

    address: None starts a cluster on this machine with `cpus` processors (None = all) and room for `shared` bytes of
    data, and stops it afterwards; "auto" and "host:port" join one.
    """
    ray = load_ray()
    if ray.is_initialized():
        yield ray
        return
    logging.getLogger("ray").setLevel(logging.ERROR)
    options = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    # a folder of our own: Ray keeps what it wrote there, and other clusters of this machine are not disturbed; its name
    # must be short, since the sockets in it may have paths of 107 bytes at most
    short = "/tmp" if os.path.isdir("/tmp") else None
    folder = tempfile.mkdtemp(prefix="asapool-ray-", dir=short) if address is None else None
    try:
        with ExitStack() as stack:
            if folder is not None:
                stack.enter_context(guarded(folder))
            yield stack.enter_context(_joined(ray, address, cpus, shared, folder, options))
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _joined(
    ray: Any, address: str | None, cpus: int | None, shared: int, folder: str | None, options: dict[str, Any]
) -> Iterator[Any]:
    try:
        if address is None:
            options |= {"num_cpus": cpus, "object_store_memory": max(LEAST_STORE, 2 * shared), "_temp_dir": folder}
            _enter(ray, "Ray could not be started on this machine", address="local", **options)
        else:
            _try_out(address)
            _enter(ray, f"Ray at {address} refused the connection", address=address, **_without_dashboard(options))
        with _ending_on_sigterm():
            yield ray
    finally:
        ray.shutdown()


@contextmanager
def guarded(folder: str) -> Iterator[None]:
    """While the block runs, a process waits that ends the cluster of a folder should we be killed."""
    command = [sys.executable, "-c", GUARD, folder]
    silent = subprocess.DEVNULL
    # a session of its own: Ctrl-C in the terminal must not end it before us
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=silent, stderr=silent, start_new_session=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # nothing is left to do for the guard
        guard.communicate()


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Leave by an exception, so that Ray is shut down; Ray's own handler prints a native stack trace and stays."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    code = 128 + signal.SIGTERM
    received = threading.Event()

    def leave(number: int, frame: object) -> None:
        received.set()
        raise SystemExit(code)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except SystemExit:
        if received.is_set():  # Ray's calls, through which it may have passed, changed its code to 1
            raise SystemExit(code) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


def _enter(ray: Any, trouble: str, **options: Any) -> None:
    try:
        ray.init(**options)
    except SystemExit:  # Ray's own handler of SIGTERM, which it has while it starts
        raise SystemExit(128 + signal.SIGTERM) from None
    except Exception as error:
        raise ConfigError(f"{trouble}: {_first_line(str(error))}") from None


def _without_dashboard(options: dict[str, Any]) -> dict[str, Any]:
    """Only who starts a cluster decides about its dashboard."""
    return {name: value for name, value in options.items() if name != "include_dashboard"}


def _try_out(address: str) -> None:
    """Refuse an address where no Ray answers, before Ray itself waits for it."""
    advice = "Give the address that `ray start --head` printed, on a machine that is part of the cluster"
    if address != "auto":
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isdigit() or "/" in host:
            raise ConfigError(f"--address is auto or HOST:PORT, got {address!r}. {advice}")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
        except (OSError, OverflowError) as error:
            raise ConfigError(f"no Ray answers at {address} ({error}). {advice}") from None
    trouble = _probe(address, dict(os.environ))
    if trouble is None:
        return
    if "RAY_AUTH_MODE" not in os.environ and _probe(address, {**os.environ, "RAY_AUTH_MODE": "token"}) is None:
        os.environ["RAY_AUTH_MODE"] = "token"  # it asks for a token, and one is where Ray looks for it
        with suppress(ImportError, AttributeError):
            from ray._raylet import Config  # type: ignore[attr-defined]

            Config.initialize("")  # Ray has read its variables when it was imported
        return
    raise ConfigError(f"Ray at {address} refuses the connection: {trouble} {TOKEN}. {advice}")


def _probe(address: str, environment: dict[str, str]) -> str | None:
    """Why a child process cannot join the cluster, or None if it can."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=WELCOME, errors="replace", env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"there is no answer within {WELCOME:g} s."
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or [f"the attempt ended with code {done.returncode}"]
    return _first_line(lines[-1])


def _first_line(text: str) -> str:
    """What went wrong, in one line that ends as a sentence.

    >>> _first_line("No space\\nTraceback …")
    'No space.'
    """
    line = (text.strip().splitlines() or ["no reason was given"])[0].strip()
    return line if line.endswith((".", "!", "?")) else f"{line}."
