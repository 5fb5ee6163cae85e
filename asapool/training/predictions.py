"""Predictions of a trained model for a set in memory or a source of any size, their scores, and validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asapool.data import GraphSet, Reading
from asapool.data.batch import Batch
from asapool.data.loading import read_pieces
from asapool.data.targets import Target
from asapool.errors import DataError, GraphTooLargeError, RefusedGraphsError
from asapool.kernels.shards import Shard, all_rows
from asapool.models import DirectModel, GraphModel
from asapool.models.batches import cut
from asapool.models.checkpoint import LoadedModel
from asapool.models.ensemble import EnsembleModel
from asapool.training.assessment import intervals_by_task
from asapool.training.device import on_device_of
from asapool.training.tasks import task_of

Pair = tuple[GraphSet, npt.NDArray[np.float64]]  # a set and its predictions (G, K)
CHUNK = 2000  # graphs in memory at a time
PIECE = 8_192  # nodes per forward pass: enough to be fast, few enough to stay in the cache


def pieces(graphs: GraphSet, indices: npt.ArrayLike | None = None, nodes: int = PIECE) -> list[npt.NDArray[np.int64]]:
    """Cut a list of graphs (all, by default) into pieces of about that many nodes; a large graph is one piece.

    >>> trio = GraphSet(x=np.ones((6, 1)), ptr=[0, 2, 4, 6], rowptr=[0] * 7, col=[])
    >>> [piece.tolist() for piece in pieces(trio, nodes=4)]
    [[0, 1], [2]]
    """
    chosen = np.arange(len(graphs)) if indices is None else np.asarray(indices, dtype=np.int64)
    if len(chosen) == 0:
        return []
    ends = np.cumsum(np.diff(graphs.ptr)[chosen])
    number = np.maximum(ends - 1, 0) // nodes
    return np.split(chosen, np.flatnonzero(np.diff(number)) + 1)


Result = TypeVar("Result")


def in_pieces(
    graphs: GraphSet, indices: npt.ArrayLike | None, run: Callable[[npt.NDArray[np.int64]], Result]
) -> list[Result]:
    """run(piece) for all pieces; graphs whose pooling would need too much memory are refused in one error."""
    results, refused = [], dict[int, str]()
    for piece in pieces(graphs, indices):
        try:
            results.append(run(piece))
        except GraphTooLargeError:
            for i in piece.tolist():  # try the graphs of the piece one at a time
                try:
                    results.append(run(np.array([i])))
                except GraphTooLargeError as error:
                    refused[i] = error.reason
    if refused:
        raise refused_graphs(graphs, refused)
    return results


def refused_graphs(graphs: GraphSet, refused: dict[int, str]) -> RefusedGraphsError:
    """The error for graphs that a model cannot process: number in the set → reason."""
    named = {i: f"id {graphs.ids[i]!r} {reason}" for i, reason in refused.items()}
    first, more = min(named), f" (and {len(named) - 1} more)" if len(named) > 1 else ""
    return RefusedGraphsError(f"{graphs.name}, graph {graphs.places[first]}{more}: {named[first]}", named)


def logits_of(model: GraphModel, batch: Batch, vectors: list[Tensor] | None = None) -> Tensor:
    """The logits for a batch, without gradients or dropout, (B, C).

    Args:
        model: the network.
        batch: the graphs.
        vectors: a list to which the embeddings (B, W) are appended, or None.
    """
    if any(part.training for part in model.modules()):
        model.eval()
    batch = on_device_of(model, batch)
    more = model.more(batch)
    with torch.inference_mode():
        if vectors is None or model.may_pad(batch.x):
            logits: Tensor = model(*batch.inputs, **more)
        if vectors is not None:
            v = model.embed(*batch.inputs, **more)
            vectors.append(v.float().cpu())
            logits = logits if model.may_pad(batch.x) else model.logits_from(v)
    return logits.cpu()


def predict(model: GraphModel, graphs: GraphSet, indices: npt.ArrayLike | None = None) -> npt.NDArray[np.float64]:
    """The predictions for every graph (or those in `indices`), in their order, (G, K).

    Classes: the probability of every class, p = softmax(logits). Yes/no tasks: that of yes. Measured values: the values
    in their unit. A graph for which the logits are not finite is refused.
    """
    mean: npt.NDArray[np.float64] = predict_members(model, graphs, indices).mean(axis=0)
    return mean


def _predict(
    model: GraphModel, graphs: GraphSet, indices: npt.ArrayLike | None = None, vectors: list[Tensor] | None = None
) -> npt.NDArray[np.float64]:
    """The predictions of one model (G, K); the embeddings are appended to `vectors` if it is given."""
    if isinstance(model, DirectModel):
        chosen = np.arange(len(graphs)) if indices is None else np.asarray(indices, dtype=np.int64)
        return model.predict_graphs(graphs, chosen)
    target = model.target or Target()
    task = task_of(target)

    def answers(piece: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        logits = logits_of(model, cut(model, graphs, piece), vectors).double()
        unknown = torch.nonzero(~logits.isfinite().all(dim=1))
        if len(unknown):
            i = int(piece[int(unknown[0])])
            raise DataError(
                f"{graphs.name}, graph {graphs.places[i]} (id {graphs.ids[i]!r}): finite logits expected, the model "
                f"gave {logits[int(unknown[0])].tolist()}. Look for huge features or edge weights in this graph; if "
                "there are none, train the model again with a lower train.lr"
            )
        p: npt.NDArray[np.float64] = task.answers(logits, target).numpy()
        return p

    rows = in_pieces(graphs, indices, answers)
    return np.concatenate(rows) if rows else np.zeros((0, model.num_classes))


class Answered(NamedTuple):
    """Predictions and embeddings of graphs.

    Args:
        members: the predictions of every member of an ensemble, or of the single model, (N, G, K).
        vectors: the embeddings, (G, W); for an ensemble those of all members, concatenated.
    """

    members: npt.NDArray[np.float64]
    vectors: npt.NDArray[np.float32]


def predict_with_vectors(model: GraphModel, graphs: GraphSet) -> Answered:
    """The predictions for and embeddings of at least one graph, in one pass through the network."""
    answers, vectors = [], []
    for member in _members(model):
        embedded: list[Tensor] = []
        answers.append(_predict(member, graphs, vectors=embedded))
        vectors.append(torch.cat(embedded).numpy())
    return Answered(np.stack(answers), np.concatenate(vectors, axis=1))


def predict_members(
    model: GraphModel, graphs: GraphSet, indices: npt.ArrayLike | None = None
) -> npt.NDArray[np.float64]:
    """The predictions of every member of an ensemble, (N, G, K); N = 1 for other models."""
    return np.stack([_predict(member, graphs, indices) for member in _members(model)])


def _members(model: GraphModel) -> list[GraphModel]:
    return model.models if isinstance(model, EnsembleModel) else [model]


def predict_source(
    trained: LoadedModel,
    source: str | PathLike[str],
    *,
    labels: bool = False,
    chunk: int = CHUNK,
    on_reading: Callable[[Reading], None] | None = None,
    **options: Any,
) -> Iterator[Pair]:
    """Sets of graphs with their predictions, in the order of the source.

    JSON lines and tables of molecules are read in sets of `chunk` graphs, so memory does not grow with the file; other
    sources are read at once. A source without any graph is refused.

    Args:
        trained: the model, with its feature recipe.
        source: whatever asapool.load takes.
        labels: read labels too, for scoring.
        chunk: graphs in memory at a time.
        on_reading: called with every Reading, before its graphs are predicted.
        options: other options of asapool.load.
    """

    def answer(reading: Reading) -> Pair:
        return reading.graphs, predict(trained.model, reading.graphs)

    return answer_source(trained, source, answer, labels=labels, chunk=chunk, on_reading=on_reading, **options)


def answer_source(
    trained: LoadedModel,
    source: str | PathLike[str],
    answer: Callable[[Reading], Result],
    *,
    labels: bool = False,
    chunk: int = CHUNK,
    on_reading: Callable[[Reading], None] | None = None,
    **options: Any,
) -> Iterator[Result]:
    """answer(reading) for all graphs of a source, with the features that the model was trained on.

    With skip_invalid, graphs that the model cannot process are left out and listed in the `refused` of a Reading; other
    arguments as in predict_source.
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    readings = read_pieces(
        source, recipe=trained.recipe, chunk=chunk, labels="optional" if labels else "ignored", **chosen
    )
    empty, skipped = True, 0
    for reading in readings:
        skipped += len(reading.skipped)
        if on_reading is not None:
            on_reading(reading)
        if len(reading.graphs):
            trained.check(reading.graphs, labels=labels)
            answered, result = answer_or_skip(reading, answer, bool(chosen.get("skip_invalid")))
            skipped += len(answered.refused)
            if on_reading is not None and answered.refused:
                on_reading(Reading(graphs=answered.graphs, refused=answered.refused))
            if result is not None:
                yield result
                empty = False
    if empty:
        raise nothing_to_predict(source, skipped)


def answer_or_skip(reading: Reading, answer: Callable[[Reading], Result], skip: bool) -> tuple[Reading, Result | None]:
    """answer(reading); with `skip`, only for the graphs that the model can process, None if there are none."""
    try:
        return reading, answer(reading)
    except RefusedGraphsError as error:
        if not skip:
            raise DataError(f"{error}. Leave out such graphs with --skip-invalid (skip_invalid=True)") from None
        reading = reading.without(error.refused)
        return reading, answer(reading) if len(reading.graphs) else None


def nothing_to_predict(source: str | PathLike[str], skipped: int) -> DataError:
    """The error for a source without any graph to predict."""
    why = f"none of the {skipped} rows could be read" if skipped else "got none"
    return DataError(f"{source}: expected graphs to predict, {why}. Check that this is the right file")


def evaluate(pairs: Iterable[Pair], target: Target, name: str) -> dict[str, Any]:
    """Score predictions against the labels of their graphs; those without a label are left out.

    Args:
        pairs: sets of graphs and their predictions.
        target: of the model.
        name: of the source, for messages.

    Returns:
        The scores for the kind of target; "intervals", 95 % bootstrap intervals over graphs (with several tasks also
        "intervals_of_tasks"); "trivial", the scores of the trivial baseline and a test of the difference; "warnings".
    """
    labelled = [(graphs.y[graphs.labelled], p[graphs.labelled]) for graphs, p in pairs]
    if not sum(len(y) for y, _ in labelled):
        columns = "" if target.kind == "classification" else f" in {', '.join(map(repr, target.names[:3]))}"
        raise DataError(
            f"{name}: there are no labels to score by{columns}. Name the column with --target, or use asapool predict "
            "for graphs without labels"
        )
    y, p = np.concatenate([y for y, _ in labelled]), np.concatenate([p for _, p in labelled])
    task = task_of(target)
    # the mean of the training graphs if the model file has it, else the best constant prediction for these graphs
    answer = np.array(target.mean) if target.mean else task.trivial(y, target)
    trivial = task.compare(y, p, answer, target)
    intervals, of_tasks = intervals_by_task(task.parts(y, p, target), task.metrics, len(y))
    return task.score(y, p, target) | {
        "intervals": intervals,
        **({"intervals_of_tasks": of_tasks} if len(of_tasks) > 1 else {}),
        "trivial": trivial,
        "warnings": task.warnings(y, p, target, "given", trivial),
    }


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Validation:
    """The validation part in pieces, distributed over the processes.

    Batches are cut once and reused in every epoch; those of a mapped set are cut again in every epoch.
    """

    pieces: list[Ints]
    targets: list[Tensor]
    batches: Callable[[], Iterable[Batch]]
    shard: Shard | None

    @classmethod
    def prepare(cls, model: GraphModel, graphs: GraphSet, val: Ints, shard: Shard | None) -> Validation:
        """Cut the validation graphs; with several processes only the pieces of this one."""
        all_pieces = pieces(graphs, val)
        first, step = (0, 1) if shard is None else (shard.rank, shard.size)
        own = all_pieces[first::step]
        cached = None if graphs.mapped is not None else [cut(model, graphs, piece) for piece in own]

        def batches() -> Iterable[Batch]:
            return (cut(model, graphs, piece) for piece in own) if cached is None else cached

        return cls(all_pieces, [graphs.targets(piece) for piece in all_pieces], batches, shard)

    def logits(self, model: GraphModel) -> list[Tensor]:
        """The logits of the model, piece by piece."""
        own = [logits_of(model, batch) for batch in self.batches()]
        if self.shard is None or not self.pieces:
            return own
        size = self.shard.size
        rows = [[len(piece) for piece in self.pieces[r::size]] for r in range(size)]
        outputs = torch.cat(own) if own else torch.zeros(0, model.num_classes)
        everything = all_rows(outputs, [sum(counts) for counts in rows], self.shard)
        parts: list[Any] = [None] * len(self.pieces)
        for r, of_rank in enumerate(torch.split(everything, [sum(counts) for counts in rows])):
            parts[r::size] = torch.split(of_rank, rows[r])
        return parts
