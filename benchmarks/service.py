"""`asapool serve` in a process of its own, for the benchmarks that send requests to it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil


@contextmanager
def running_service(model: str, workers: int = 1) -> Iterator[tuple[str, psutil.Process]]:
    """The address of a service that answers, and its process; it is stopped at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "asapool", "serve", model, "--port", str(port), "--workers", str(workers)]
    service = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                httpx.get(f"{address}/health")
                break
            except httpx.HTTPError:
                assert service.poll() is None, "the service ended"
                time.sleep(0.5)
        yield address, psutil.Process(service.pid)
    finally:
        service.terminate()
        service.wait(30)
