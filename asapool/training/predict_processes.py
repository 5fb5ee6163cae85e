"""Predict a source in several processes: each reads and answers some of its pieces, and the order is kept."""

from __future__ import annotations

import heapq
import multiprocessing as mp
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet, Reading
from asapool.data.loading import read_numbered
from asapool.errors import AsapoolError, ConfigError, DataError, TrainingError
from asapool.models import checkpoint
from asapool.training.answering import Answering, Wanted
from asapool.training.prediction_files import Further
from asapool.training.predictions import CHUNK, Pair
from asapool.training.workers import become_worker, exit_cause

# number of the piece, what was read, the answers, further columns
Answer = tuple[int, Reading, npt.NDArray[np.float64] | None, Further | None]


def predict_in_processes(
    model: str | PathLike[str],
    source: str | PathLike[str],
    jobs: int,
    *,
    chunk: int = CHUNK,
    on_reading: Callable[[Reading], None] | None = None,
    answering: Answering | None = None,
    **options: Any,
) -> Iterator[Pair]:
    """Sets of graphs with the answers to them, in the order of the source, as predict_source gives them.

    The sets have ids and places and no features: those stay in the processes.

    Args:
        model: file of a trained model.
        source: whatever asapool.load takes, except standard input.
        jobs: number of processes, with one thread each.
        chunk: graphs that a process has in memory at a time.
        on_reading: called with what was read of every piece, in order.
        answering: which columns are wanted besides the answers; it holds them for every set.
        options: further ones of asapool.load.
    """
    if str(source) == "-":
        raise ConfigError("standard input can be read by one process only. Leave -j out, or write it to a file first")
    chosen = {name: value for name, value in options.items() if value is not None}
    wanted = Wanted() if answering is None else answering.wanted
    context = mp.get_context("spawn")
    workers = []
    try:
        for rank in range(jobs):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(
                target=_serve, args=(theirs, str(model), str(source), rank, jobs, chunk, wanted, chosen), daemon=True
            )
            process.start()
            theirs.close()
            workers.append((process, ours))
        empty, skipped = True, 0
        for _, reading, answers, further in heapq.merge(*(_receive(*worker) for worker in workers), key=lambda a: a[0]):
            skipped += len(reading.skipped)
            if on_reading is not None:
                on_reading(reading)
            if answers is not None:
                empty = False
                if answering is not None and further is not None:
                    answering.hold(reading.graphs, further)
                yield reading.graphs, answers
        if empty:
            why = f"none of the {skipped} rows could be read" if skipped else "it has none"
            raise DataError(f"{source}: graphs to predict expected, {why}. Check that this is the right file")
    finally:
        for process, pipe in workers:
            process.terminate()
            process.join()
            pipe.close()


def _receive(process: Any, pipe: Connection) -> Iterator[Answer]:
    while True:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            process.join()
            raise TrainingError(f"{exit_cause(process.exitcode or 0)}. Predict again with fewer processes") from None
        if message is None:
            return
        if isinstance(message, AsapoolError):
            raise message
        yield message


def _serve(
    pipe: Connection, model: str, source: str, rank: int, jobs: int, chunk: int, wanted: Wanted,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """A process: every piece whose number leaves the rest `rank`."""
    become_worker()
    try:
        trained = checkpoint.load(model)
        answering = Answering(trained, wanted)
        pieces = read_numbered(
            source, chunk, lambda number: number % jobs == rank, recipe=trained.recipe, labels="ignored", **options,
            **answering.options,
        )  # fmt: skip
        for number, reading in pieces:
            answers, further = None, None
            if len(reading.graphs):
                trained.check(reading.graphs, labels=False)
                answers, further = answering.answer(reading.graphs, answering.columns_of(reading, source))
            pipe.send((number, replace(reading, graphs=_bare(reading.graphs), columns=None), answers, further))
        pipe.send(None)
    except AsapoolError as error:
        pipe.send(error)
    except OSError:  # the parent has what it needs
        return


def _bare(graphs: GraphSet) -> GraphSet:
    """The set without what only a model reads, which would be most of what is sent."""
    return graphs.with_fields(
        x=np.zeros((len(graphs.x), 0), np.float32), rowptr=np.zeros(1, np.int64), col=np.zeros(0, np.int64),
        weight=None, edge_attr=None, truth=None, descriptors=None, source_text=None,
    )  # fmt: skip
