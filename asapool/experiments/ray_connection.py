"""Joining a Ray cluster by its address, or starting one on this machine for as long as it is needed."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
# Ray itself waits for minutes and then ends the process, so a child of ours tries the address first
PROBE = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
except Exception as error:
    sys.exit(str(error).strip().splitlines()[0])
"""


def load_ray() -> Any:
    """Ray, told to be quiet; where it is not installed, how to get it."""
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
        if address is None:
            options |= {"num_cpus": cpus, "object_store_memory": max(LEAST_STORE, 2 * shared), "_temp_dir": folder}
            _enter(ray, "Ray could not be started on this machine", address="local", **options)
        else:
            _try_out(address)
            _enter(ray, f"Ray at {address} refused the connection", address=address, **_without_dashboard(options))
        yield ray
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _enter(ray: Any, trouble: str, **options: Any) -> None:
    try:
        ray.init(**options)
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
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=WELCOME, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ConfigError(f"what listens at {address} is no Ray that lets us in ({WELCOME:g} s). {advice}") from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"the attempt ended with code {done.returncode}"])[-1]
        raise ConfigError(f"no Ray lets us in at {address}: {_first_line(said)} {advice}")


def _first_line(text: str) -> str:
    """What went wrong, in one line that ends as a sentence.

    >>> _first_line("No space\\nTraceback …")
    'No space.'
    """
    line = (text.strip().splitlines() or ["no reason was given"])[0].strip()
    return line if line.endswith((".", "!", "?")) else f"{line}."
