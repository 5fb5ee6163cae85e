"""Predictions for a source with all columns of their file, computed in one process or in several."""

from __future__ import annotations

import heapq
import multiprocessing as mp
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from os import PathLike
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet, Reading
from asapool.data.loading import read_numbered
from asapool.errors import AsapoolError, ConfigError, DataError, TrainingError
from asapool.models import checkpoint
from asapool.models.checkpoint import LoadedModel
from asapool.models.ensemble import EnsembleModel
from asapool.training.device import resolve_device
from asapool.training.prediction_files import Further, smiles_column
from asapool.training.predictions import (
    CHUNK,
    Pair,
    answer_or_skip,
    answer_source,
    nothing_to_predict,
    predict_members,
    predict_with_vectors,
)
from asapool.training.trust import Uncertainty, answers_of_tasks
from asapool.training.workers import become_worker, exit_cause


class Wanted(NamedTuple):
    """The additional columns of a file of predictions.

    Args:
        uncertainty: calibrated probabilities and the distance from the training graphs; the spread of an ensemble is
            always included.
        coverage: of conformal sets and intervals; None = without them.
        calibration: "temperature" or "isotonic".
        keep_columns: all columns of a table.
    """

    uncertainty: bool = False
    coverage: float | None = None
    calibration: str = "temperature"
    keep_columns: bool = False


class Answering:
    """Predicts sources, and computes the additional columns.

    Use: `pairs = answering.pairs(source)`, then `save_predictions(path, pairs, target, answering.further)`.

    Args:
        trained: the model.
        wanted: which columns.
    """

    def __init__(self, trained: LoadedModel, wanted: Wanted | None = None) -> None:
        self.trained, self.wanted = trained, wanted or Wanted()
        needed = self.wanted.uncertainty or self.wanted.coverage is not None
        self.sure = Uncertainty(trained, self.wanted.coverage, self.wanted.calibration) if needed else None
        self._further: WeakKeyDictionary[GraphSet, Further] = WeakKeyDictionary()

    @property
    def options(self) -> dict[str, Any]:
        """The options of asapool.load that the columns need."""
        return {"keep_columns": True} if self.wanted.keep_columns else {}

    def notes(self) -> list[str]:
        """What a user should know about the columns."""
        return [] if self.sure is None else self.sure.notes()

    def pairs(
        self, source: str | PathLike[str], on_reading: Callable[[Reading], None] | None = None, **options: Any
    ) -> Iterator[Pair]:
        """Sets of graphs with their predictions, in the order of the source; arguments as in predict_source."""

        def answer(reading: Reading) -> Pair:
            p, further = self.answer(reading.graphs, self.columns_of(reading, source))
            self.hold(reading.graphs, further)
            return reading.graphs, p

        return answer_source(self.trained, source, answer, on_reading=on_reading, **options, **self.options)

    def columns_of(self, reading: Reading, source: str | PathLike[str]) -> Mapping[str, Any]:
        """The columns of the table to keep; with keep_columns, a source that is not a table is refused."""
        if self.wanted.keep_columns and reading.columns is None and len(reading.graphs):
            raise DataError(f"{source}: has no columns to keep, because it is not a table. Leave out --keep-columns")
        return reading.columns or {}

    def answer(self, graphs: GraphSet, columns: Mapping[str, Any]) -> tuple[Any, Further]:
        """The predictions for a set, (G, K), and the additional columns."""
        kept = {name: cells for name, cells in columns.items() if name != "id"}  # which has its own column
        before = kept or smiles_column(graphs)
        model, after = self.trained.model, dict[str, Any]()
        vectors: npt.NDArray[np.float32] | None = None
        if self.sure is not None and self.sure.reads_vectors and len(graphs):
            members, vectors = predict_with_vectors(model, graphs)
        else:
            members = predict_members(model, graphs)
        p = members.mean(axis=0)
        if isinstance(model, EnsembleModel):
            after = spread_columns(members, self.trained)
        if self.sure is not None:
            after |= self.sure.columns(p, vectors)
        return p, Further(before, after)

    def hold(self, graphs: GraphSet, further: Further) -> None:
        """Keep the columns of a set for as long as the set is in use."""
        self._further[graphs] = further

    def further(self, graphs: GraphSet, p: Any) -> Further:
        """The additional columns of a set that `pairs` yielded."""
        return self._further[graphs]


def spread_columns(members: Any, trained: LoadedModel) -> dict[str, Any]:
    """The standard deviation over the members of an ensemble: of the predicted class, of yes, or of the value.

    Args:
        members: their predictions, (N, G, K).
        trained: the ensemble.
    """
    target, deviation, mean = trained.target, members.std(axis=0), members.mean(axis=0)
    if target.outputs == target.tasks:
        return {f"spread({name})": column for name, column in zip(target.names, deviation.T, strict=True)}
    [p] = answers_of_tasks(mean, target)
    return {"spread": deviation[np.arange(len(mean)), p.argmax(axis=1)]}


# number of the piece, what was read, the predictions, additional columns
Answer = tuple[int, Reading, npt.NDArray[np.float64] | None, Further | None]


def predict_in_processes(
    model: str | PathLike[str],
    source: str | PathLike[str],
    jobs: int,
    *,
    chunk: int = CHUNK,
    on_reading: Callable[[Reading], None] | None = None,
    answering: Answering | None = None,
    device: str = "cpu",
    **options: Any,
) -> Iterator[Pair]:
    """Sets of graphs with their predictions, in the order of the source, as predict_source yields them.

    The sets have ids and places but no features, which stay in the processes.

    Args:
        model: file of a trained model.
        source: whatever asapool.load takes, except standard input.
        jobs: number of processes, with one thread each.
        chunk: graphs that a process has in memory at a time.
        on_reading: called with what was read of every piece, in order.
        answering: computes the additional columns, and keeps them for every set.
        device: as in resolve_device; several GPUs are taken in turn.
        options: other options of asapool.load.
    """
    if str(source) == "-":
        raise ConfigError("standard input can be read by one process only. Leave out -j, or write it to a file first")
    chosen = {name: value for name, value in options.items() if value is not None}
    wanted = Wanted() if answering is None else answering.wanted
    context = mp.get_context("spawn")
    workers = []
    try:
        for rank in range(jobs):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(
                target=_serve, args=(sender, str(model), str(source), rank, jobs, chunk, wanted, device, chosen),
                daemon=True,
            )  # fmt: skip
            process.start()
            sender.close()
            workers.append((process, receiver))
        empty, skipped = True, 0
        for _, reading, answers, further in heapq.merge(*(_receive(*worker) for worker in workers), key=lambda a: a[0]):
            skipped += len(reading.skipped) + len(reading.refused)
            if on_reading is not None:
                on_reading(reading)
            if answers is not None:
                empty = False
                if answering is not None and further is not None:
                    answering.hold(reading.graphs, further)
                yield reading.graphs, answers
        if empty:
            raise nothing_to_predict(source, skipped)
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
    pipe: Connection, model: str, source: str, rank: int, jobs: int, chunk: int, wanted: Wanted, device: str,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Work of one process: every piece whose number is `rank` modulo the number of processes."""
    become_worker(rank)
    try:
        trained = checkpoint.load(model)
        trained.model.to(resolve_device(device))
        answering = Answering(trained, wanted)
        pieces = read_numbered(
            source, chunk, lambda number: number % jobs == rank, recipe=trained.recipe, labels="ignored", **options,
            **answering.options,
        )  # fmt: skip

        def answer(reading: Reading) -> tuple[npt.NDArray[np.float64], Further]:
            return answering.answer(reading.graphs, answering.columns_of(reading, source))

        for number, reading in pieces:
            result = None
            if len(reading.graphs):
                trained.check(reading.graphs, labels=False)
                reading, result = answer_or_skip(reading, answer, bool(options.get("skip_invalid")))
            answers, further = result or (None, None)
            pipe.send((number, replace(reading, graphs=_bare(reading.graphs), columns=None), answers, further))
        pipe.send(None)
    except AsapoolError as error:
        pipe.send(error)
    except OSError:  # the parent has closed the pipe
        return


def _bare(graphs: GraphSet) -> GraphSet:
    """The set without the features, which would be most of the data sent to the parent."""
    return graphs.with_fields(
        x=np.zeros((len(graphs.x), 0), np.float32), rowptr=np.zeros(1, np.int64), col=np.zeros(0, np.int64),
        weight=None, edge_attr=None, truth=None, descriptors=None, source_text=None,
    )  # fmt: skip
