"""Join a Ray cluster by its address, or start one on this machine for as long as it is needed.

A cluster started here ends with this process: after SIGTERM because the signal becomes an exception, and after SIGKILL
because a guard process waits for that, ends the rest of the cluster and removes its folder.
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

logger = logging.getLogger(__name__)
ANSWER = 5.0  # seconds to wait for an open port
WELCOME = 30.0  # seconds to wait for a cluster to accept the connection
LEAST_STORE = 80 * 2**20  # bytes of shared memory that Ray needs to start
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # keeps Ray's messages about workers off standard output
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # avoids a warning about GPUs, which are not used
}
TOKEN = (
    "If the cluster requires a token, set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to the token or RAY_AUTH_TOKEN_PATH "
    "to its file (default: ~/.ray/auth_token)"
)
# Only processes whose command line contains the folder are ended; it is new and has a random name. Ray's workers end
# by themselves when their node does.
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
# Ray itself waits for minutes and then ends the process, so a child process tries the address first
PROBE = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
except Exception as error:
    sys.exit(str(error).strip().splitlines()[0])
"""


def load_ray() -> Any:
    """Import Ray with its messages turned off; if it is missing, the error says how to install it."""
    for name, value in QUIET.items():  # Ray reads them when it is imported
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "cluster") from None
    return ray


@contextmanager
def connected(address: str | None, cpus: int | None, shared: int) -> Iterator[Any]:
    """Yield Ray, connected; an existing connection is used and left open.

    address: None starts a cluster on this machine with `cpus` processors (None = all) and room for `shared` bytes of
    data, and stops it afterwards; "auto" and "host:port" join one.
    """
    ray = load_ray()
    if ray.is_initialized():
        yield ray
        return
    logging.getLogger("ray").setLevel(logging.ERROR)
    options = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    # our own folder, because Ray does not clean up its files, and to stay clear of other clusters on this machine; its
    # name must be short, since paths of sockets have at most 107 bytes
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
    logger.info("%s", "starting Ray on this machine" if address is None else f"connecting to Ray at {address}")
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
    """Run a guard process during the block, which ends the cluster of a folder if this process is killed."""
    command = [sys.executable, "-c", GUARD, folder]
    silent = subprocess.DEVNULL
    # its own session, so that Ctrl-C in the terminal does not end it first
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=silent, stderr=silent, start_new_session=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # leaves the guard nothing to do
        guard.communicate()


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that Ray is shut down; Ray's own handler prints a stack trace and stays."""
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
        if received.is_set():  # Ray may have changed the exit code to 1
            raise SystemExit(code) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


def _enter(ray: Any, trouble: str, **options: Any) -> None:
    try:
        ray.init(**options)
    except SystemExit:  # from Ray's own SIGTERM handler during start-up
        raise SystemExit(128 + signal.SIGTERM) from None
    except Exception as error:
        raise ConfigError(f"{trouble}: {_first_line(str(error))}") from None


def _without_dashboard(options: dict[str, Any]) -> dict[str, Any]:
    """The options without the dashboard, which only the process that starts a cluster can set."""
    return {name: value for name, value in options.items() if name != "include_dashboard"}


def _try_out(address: str) -> None:
    """Refuse an address at which no Ray cluster responds, before Ray itself waits for it."""
    advice = "Give the address that `ray start --head` printed, on a machine that is part of the cluster"
    if address != "auto":
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isdigit() or "/" in host:
            raise ConfigError(f"--address is auto or HOST:PORT, got {address!r}. {advice}")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
        except (OSError, OverflowError) as error:
            raise ConfigError(f"no Ray cluster at {address} ({error}). {advice}") from None
    trouble = _probe(address, dict(os.environ))
    if trouble is None:
        return
    if "RAY_AUTH_MODE" not in os.environ and _probe(address, {**os.environ, "RAY_AUTH_MODE": "token"}) is None:
        os.environ["RAY_AUTH_MODE"] = "token"  # it requires a token, and Ray finds one
        with suppress(ImportError, AttributeError):
            from ray._raylet import Config  # type: ignore[attr-defined]

            Config.initialize("")  # Ray read its variables when it was imported
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
        return f"no response within {WELCOME:g} s."
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or [f"the attempt ended with code {done.returncode}"]
    return _first_line(lines[-1])


def _first_line(text: str) -> str:
    """The first line of an error message, ending with a full stop.

    >>> _first_line("No space\\nTraceback …")
    'No space.'
    """
    line = (text.strip().splitlines() or ["no reason was given"])[0].strip()
    return line if line.endswith((".", "!", "?")) else f"{line}."
