"""One training run in several processes that share every batch, with torch.distributed.

Rank 0 is the process of the command. It reads the graphs, writes all files, and sends the work to the others, which
compute their part of every batch and write nothing. The others are started here (`asapool train -j N`), and then the
numbers of a step travel through shared memory, or by torchrun, on this machine or on several.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, distributed, nn
from torch._C._distributed_c10d import TCPStore  # torch.distributed re-exports it, but not for type checkers

from asapool.data import GraphSet
from asapool.errors import AsapoolError, ConfigError, TrainingError
from asapool.kernels.exchange import Exchange, ProcessLostError, memory_file
from asapool.kernels.shards import Shard, sum_over
from asapool.training.workers import become_worker, exit_cause

Ints = npt.NDArray[np.int64]
STARTING = 300.0  # seconds within which all processes must have started
LOCAL = "127.0.0.1"


def is_follower() -> bool:
    """Whether torchrun started this process with a rank other than 0."""
    return _by_torchrun() and int(os.environ["RANK"]) > 0


def follow() -> None:
    """Do the work of a process that torchrun started, and return when training has ended."""
    torch.set_num_threads(1)
    try:
        _do_share(_joined(None, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])))
    except RuntimeError as error:
        if isinstance(error, AsapoolError):
            raise
        raise TrainingError(f"rank {os.environ['RANK']}: lost the other processes ({_first_line(error)})") from None


class Processes:
    """The processes of one training run; a context manager. `gpus`: whether each may have a GPU.

    Args:
        jobs: how many; 1 = this process alone. Under torchrun, which sets the number itself, jobs must be 1.

    >>> with Processes(1) as processes, processes.sharing(print) as shard:
    ...     print(shard)
    None
    """

    gpus = True

    def __init__(self, jobs: int = 1) -> None:
        if jobs < 1:
            raise ConfigError(f"the number of processes must be at least 1, got {jobs}")
        self.torchrun = _by_torchrun()
        if self.torchrun and jobs > 1:
            raise ConfigError("torchrun has started the processes already. Leave out -j")
        self.size = int(os.environ["WORLD_SIZE"]) if self.torchrun else jobs
        self.used = False

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.torchrun and not self.used and self.size > 1:  # tell the waiting processes that there is no work
            with suppress(RuntimeError), _joined(None, 0, self.size):
                _broadcast(None)

    def start_workers(self) -> tuple[TCPStore, Sequence[Any], Exchange | None]:
        """Start the other processes; returns the store in which all meet, their handles, and their shared memory."""
        return _start(self.size)

    @contextmanager
    def sharing(self, work: Callable[..., object], *arguments: Any, advice: str = "") -> Iterator[Shard | None]:
        """Let all other processes call work(shard, *arguments), and yield the shard of this one; None if it is alone.

        Args:
            work: a module-level function that joins in every collective operation of the with block.
            arguments: sent once to every process.
            advice: the next step for the user if a process is lost.
        """
        if self.size == 1:
            yield None
            return
        self.used = True
        workers: Sequence[Any] = []
        store = exchange = None
        try:
            if not self.torchrun:
                store, workers, exchange = self.start_workers()
            with _joined(store, 0, self.size, exchange) as shard:
                _broadcast((work, arguments))
                yield shard
        except RuntimeError as error:
            if isinstance(error, AsapoolError):
                raise
            reason = _reason(workers, store)
            if reason is None and not _is_lost(error):
                raise
            text = reason or f"the connection to another process was lost ({_first_line(error)})"
            raise TrainingError(f"{text}. {advice}".rstrip()) from None
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.join()


def own_part(graphs: GraphSet, indices: Ints, shard: Shard) -> list[Ints]:
    """Cut a batch into one contiguous part per process, about equal in nodes and edges (the entries of A + I).

    >>> four = GraphSet(x=np.ones((8, 1)), ptr=[0, 5, 6, 7, 8], rowptr=[0] * 9, col=[])
    >>> [part.tolist() for part in own_part(four, np.arange(4), Shard(0, 2))]
    [[0], [1, 2, 3]]
    """
    ends = np.cumsum(graphs.entries(indices))
    middle = ends - np.diff(ends, prepend=0) / 2  # a graph belongs to the part that contains its midpoint
    cuts = np.searchsorted(middle, ends[-1] * np.arange(1, shard.size) / shard.size)
    rank = np.arange(1, shard.size)
    cuts = np.maximum.accumulate(np.clip(cuts, rank, len(indices) - shard.size + rank) - rank) + rank
    return np.split(indices, cuts)


def sum_gradients(model: nn.Module, shard: Shard, scale: float = 1.0) -> None:
    """Replace every gradient by the sum over all processes, each multiplied by its scale."""
    trained = [p for p in model.parameters() if p.requires_grad]
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in trained])
    if scale != 1.0:
        flat *= scale
    sum_over(flat, shard)
    for p, grad in zip(trained, torch.split(flat, [p.numel() for p in trained]), strict=True):
        p.grad = grad.view_as(p)


def sum_of(value: Tensor, shard: Shard) -> Tensor:
    """The sum of a scalar over all processes; the value of this process keeps its gradient."""
    total = sum_over(value.detach().clone(), shard)
    return value + (total - value.detach())


def of_rank_0(values: Sequence[float | None]) -> list[float | None]:
    """The numbers of rank 0, on every process: decisions must be the same everywhere, to the last bit."""
    sent = torch.tensor([float("nan") if v is None else v for v in values], dtype=torch.float64)
    missing = torch.tensor([v is None for v in values])
    distributed.broadcast(sent, 0)
    distributed.broadcast(missing, 0)
    return [None if gone else v for v, gone in zip(sent.tolist(), missing.tolist(), strict=True)]


def _by_torchrun() -> bool:
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


@contextmanager
def _joined(store: Any, rank: int, size: int, exchange: Exchange | None = None) -> Iterator[Shard]:
    """Join the process group; without a store, the environment says where the others are."""
    options = {} if store is None else {"store": store}
    try:
        # tensors on the CPU travel by gloo, those on a GPU by NCCL
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and distributed.is_nccl_available() else "gloo"
        distributed.init_process_group(backend, rank=rank, world_size=size, timeout=timedelta(hours=12), **options)
    except (RuntimeError, ValueError) as error:
        raise TrainingError(
            f"process {rank} of {size} cannot reach the others ({_first_line(error)}). Check the address, the port and "
            "GLOO_SOCKET_IFNAME, or train with one process"
        ) from None
    try:
        yield Shard(rank, size, exchange)
    finally:
        with suppress(RuntimeError):
            distributed.destroy_process_group()


def _start(size: int) -> tuple[Any, list[Any], Exchange | None]:
    """Start size − 1 processes on this machine, and wait until all are ready and have opened the shared memory."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    store = open_store(LOCAL, size)
    context = mp.get_context("spawn")  # a forked copy of torch's threads may hang
    file = memory_file(size)
    workers = [context.Process(target=_serve, args=(r, size, store.port, file), daemon=True) for r in range(1, size)]
    try:
        wait_until_ready(store, workers)
        exchange = None if file is None else Exchange(file, 0, size, lambda: all(w.is_alive() for w in workers))
    finally:
        if file is not None:
            file.unlink(missing_ok=True)  # all have it open, and so nothing is left behind however they end
    return store, workers, exchange


def open_store(host: str, size: int) -> TCPStore:
    """The store on this machine in which so many processes meet."""
    try:
        return TCPStore(host, 0, size, is_master=True, wait_for_workers=False)
    except (RuntimeError, ValueError) as error:
        raise TrainingError(f"no port is free on this machine ({_first_line(error)}). Train with one process") from None


def wait_until_ready(store: TCPStore, workers: Sequence[Any]) -> None:
    """Start the workers, and wait until all have joined the store."""
    size = len(workers) + 1
    for worker in workers:
        worker.start()
    until = time.monotonic() + STARTING
    while not store.check([f"ready{r}" for r in range(1, size)]):
        reason = _reason(workers, store, patience=0.0)
        if reason is not None or time.monotonic() > until:
            for worker in workers:
                worker.terminate()
            raise TrainingError(
                f"{reason or f'not all of {size} processes started within {STARTING:.0f} seconds'}. Try fewer processes"
            )
        time.sleep(0.02)


def _serve(rank: int, size: int, port: int, file: Path | None) -> None:
    """The main function of a process started by _start."""
    become_worker(rank)  # ends with rank 0, so it need not ask whether rank 0 is alive; rank 0 ends the others
    exchange = None if file is None else Exchange(file, rank, size, lambda: True)
    serve(rank, size, LOCAL, port, exchange)


def serve(rank: int, size: int, host: str, port: int, exchange: Exchange | None = None) -> None:
    """Join the store of rank 0, and do what it sends until training has ended."""
    store = TCPStore(host, port, size, is_master=False)
    store.set(f"ready{rank}", "1")
    try:
        _do_share(_joined(store, rank, size, exchange))
    except AsapoolError as error:
        with suppress(RuntimeError):
            store.set("error", str(error))
        sys.exit(1)
    except RuntimeError as error:  # if rank 0 ends early, the connection is closed, which is not an error here
        if not _is_lost(error):
            raise
        sys.exit(1)


def _do_share(joined: Any) -> None:
    with joined as shard:
        sent = _broadcast(None)
        if sent is not None:
            work, arguments = sent
            work(shard, *arguments)


def _broadcast(value: Any) -> Any:
    """Rank 0's value, on every process."""
    content = np.frombuffer(pickle.dumps(value), np.uint8).copy() if distributed.get_rank() == 0 else np.zeros(0)
    length = torch.tensor([len(content)])
    distributed.broadcast(length, 0)
    data = torch.from_numpy(content) if len(content) else torch.empty(int(length), dtype=torch.uint8)
    distributed.broadcast(data, 0)
    return value if distributed.get_rank() == 0 else pickle.loads(data.numpy().data)


def _reason(workers: Sequence[Any], store: Any, patience: float = 5.0) -> str | None:
    """Why a worker ended, if one did within a few seconds."""
    until = time.monotonic() + patience
    while True:
        ended = [(worker.exitcode, rank) for rank, worker in enumerate(workers, 1) if worker.exitcode is not None]
        if ended:
            with suppress(RuntimeError):
                if store.check(["error"]):
                    return str(store.get("error").decode())
            code, rank = min(ended)  # signals first: the others ended because the connection was closed
            return f"training process {rank + 1} of {len(workers) + 1}: {exit_cause(code)}"
        if not workers or time.monotonic() >= until:
            return None
        time.sleep(0.05)


def _is_lost(error: RuntimeError) -> bool:
    """Whether the error says that another process is gone."""
    known = isinstance(error, (ProcessLostError, distributed.DistError))
    return known or any(name in str(error) for name in ("gloo", "NCCL"))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
