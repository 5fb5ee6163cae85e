"""Micro-batches: requests that arrive while the model is busy go through it together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asapool.data import GraphSet
from asapool.serve.requests import MoleculeRequest, Refusal

Job = MoleculeRequest | GraphSet
Answer = Callable[[Sequence[Job]], list[Any]]


def count(job: Job) -> int:
    """The number of graphs in a job."""
    return len(job.smiles) if isinstance(job, MoleculeRequest) else len(job)


class Batcher:
    """One thread that runs the model, and the queue in front of it.

    A request is answered at once when the model is idle, so a single client does not wait; under load the queue fills
    while a batch runs, and the next batch takes all of it, up to `most` graphs.

    Args:
        answer: maps jobs to results; an exception in place of a result concerns that job alone.
        waiting: maximum number of jobs in the queue; more are refused.
        seconds: time limit of a job.
        most: maximum number of graphs in a batch.
        on_batch: called with the number of graphs of every batch.
    """

    def __init__(
        self, answer: Answer, *, waiting: int, seconds: float, most: int = 512,
        on_batch: Callable[[int], None] = lambda graphs: None,
    ) -> None:  # fmt: skip
        self.answer, self.seconds, self.most, self.on_batch = answer, seconds, most, on_batch
        self.queue: asyncio.Queue[tuple[Job, asyncio.Future[Any]]] = asyncio.Queue(waiting)
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start answering requests."""
        self.task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Answer all waiting requests, then stop."""
        while not self.queue.empty():
            await asyncio.sleep(0.01)
        if self.task is not None:
            self.task.cancel()
        await asyncio.to_thread(self.thread.shutdown)

    async def predict(self, job: Job) -> Any:
        """The result of a job."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            self.queue.put_nowait((job, future))
        except asyncio.QueueFull:
            raise Refusal(503, "too many requests are waiting. Try again in a moment") from None
        return await self._timed(future)

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function that needs the model in the model's thread."""
        return await self._timed(asyncio.get_running_loop().run_in_executor(self.thread, function, *args))

    async def _timed(self, future: asyncio.Future[Any]) -> Any:
        try:
            return await asyncio.wait_for(future, self.seconds)
        except TimeoutError:
            raise Refusal(503, f"no answer within {self.seconds:g} seconds. Send fewer or smaller graphs") from None

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self.queue.get()]
            graphs = count(batch[0][0])
            while graphs < self.most and not self.queue.empty():
                batch.append(self.queue.get_nowait())
                graphs += count(batch[-1][0])
            batch = [(job, future) for job, future in batch if not future.done()]  # drop jobs whose client gave up
            if not batch:
                continue
            self.on_batch(sum(count(job) for job, _ in batch))
            try:
                results = await loop.run_in_executor(self.thread, self.answer, [job for job, _ in batch])
            except Exception as error:
                results = [error] * len(batch)
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
