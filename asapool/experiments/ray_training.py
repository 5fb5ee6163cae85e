"""One training run whose batches are shared by processes of a Ray cluster; rank 0 is the process of the command."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any

import torch
from torch._C._distributed_c10d import TCPStore  # torch.distributed re-exports it, but not for type checkers

from asapool import __version__
from asapool.errors import ConfigError
from asapool.experiments.ray_connection import connected
from asapool.kernels.exchange import Exchange
from asapool.training.parallel import Processes, open_store, serve, wait_until_ready


class RayProcesses(Processes):
    """As Processes, but all processes except rank 0 are tasks of a Ray cluster, one processor each.

    Args:
        jobs: number of processes, rank 0 included.
        address: of a running cluster; None starts Ray on this machine and stops it afterwards.
    """

    gpus = False  # rank 0 is not a task, so Ray would give its GPU to another process

    def __init__(self, jobs: int, address: str | None = None) -> None:
        super().__init__(jobs)
        if jobs < 2:
            raise ConfigError("--engine ray shares every batch among the processes of -j. Add -j with at least 2")
        self.address = address
        self._open = ExitStack()
        self._ray: Any = None

    def __enter__(self) -> RayProcesses:
        self._ray = self._open.enter_context(connected(self.address, self.size - 1, 0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def start_workers(self) -> tuple[TCPStore, Sequence[Any], Exchange | None]:
        """Submit the tasks, and wait until all have joined."""
        host = self._ray.util.get_node_ip_address()
        store = open_store(host, self.size)
        workers = [RayWorker(self._ray, rank, self.size, host, store.port) for rank in range(1, self.size)]
        try:
            wait_until_ready(store, workers)
        except BaseException:
            for worker in workers:
                worker.terminate()
            raise
        return store, workers, None


class RayWorker:
    """The task of one rank, with the methods of a multiprocessing.Process."""

    def __init__(self, ray: Any, rank: int, size: int, host: str, port: int) -> None:
        self._ray, self._arguments = ray, (__version__, rank, size, host, port)
        self._task: Any = None

    def start(self) -> None:
        """Submit the task."""
        # no retries: a process that joins later would wait for exchanges that are over
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(share_training).remote(*self._arguments)

    @property
    def exitcode(self) -> int | None:
        """None while the task waits or runs, 0 after its end, 1 if it failed or its machine was lost."""
        if not self._ray.wait([self._task], timeout=0)[0]:
            return None
        try:
            self._ray.get(self._task)
        except self._ray.exceptions.RayError:
            return 1
        return 0

    def terminate(self) -> None:
        """Cancel the task if it has not ended."""
        if self._task is not None and self.exitcode is None:
            with suppress(self._ray.exceptions.RayError):
                self._ray.cancel(self._task, force=True)

    def join(self) -> None:
        """Wait some seconds for the end of the task."""
        if self._task is not None:
            self._ray.wait([self._task], timeout=5)


def share_training(version: str, rank: int, size: int, host: str, port: int) -> None:
    """The task of one rank on a machine of the cluster."""
    if version != __version__:
        TCPStore(host, port, size, is_master=False).set(
            "error", f"a machine of the cluster has asapool {__version__}, this one {version}. Install the same version"
        )
        return
    torch.set_num_threads(1)
    serve(rank, size, host, port)
