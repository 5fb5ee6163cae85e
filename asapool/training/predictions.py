"""A trained model and a source of any size: predictions as a table, row by row, and scores where there are labels."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from os import PathLike
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet, Reading
from asapool.data.loading import read_pieces
from asapool.errors import DataError
from asapool.files import csv_writer, writing
from asapool.models.checkpoint import LoadedModel
from asapool.training.metrics import Scores, score
from asapool.training.probability import predict

Pair = tuple[GraphSet, npt.NDArray[np.float64]]
Pairs = Iterator[Pair]
CHUNK = 2000  # graphs in memory at a time


@dataclass(kw_only=True)
class Summary:
    """What a prediction went through."""

    graphs: int = 0
    predicted: dict[str, int] = field(default_factory=dict)  # class → number of graphs


def predict_source(
    trained: LoadedModel,
    source: str | PathLike[str],
    *,
    labels: bool = False,
    chunk: int = CHUNK,
    on_reading: Callable[[Reading], None] | None = None,
    **options: Any,
) -> Iterator[Pair]:
    """Sets of graphs with their probabilities, in the order of the source.

    JSON lines and tables of molecules come in sets of chunk graphs, so memory does not grow with the file; other
    sources come whole. A source without any graph is refused.

    Args:
        trained: the model, with the recipe of its features.
        source: whatever asapool.load takes.
        labels: read labels too, to score by.
        chunk: graphs in memory at a time.
        on_reading: called with every Reading, before its graphs are predicted.
        options: further ones of asapool.load.
    """
    chosen = {name: value for name, value in options.items() if value is not None}
    pieces = read_pieces(
        source, recipe=trained.recipe, chunk=chunk, labels="optional" if labels else "ignored", **chosen
    )
    empty, skipped = True, 0
    for reading in pieces:
        skipped += len(reading.skipped)
        if on_reading is not None:
            on_reading(reading)
        if len(reading.graphs):
            trained.check(reading.graphs, labels=labels)
            yield reading.graphs, predict(trained.model, reading.graphs)
            empty = False
    if empty:
        why = f"none of the {skipped} rows could be read" if skipped else "it has none"
        raise DataError(f"{source}: graphs to predict expected, {why}. Check that this is the right file")


def header(classes: Sequence[str], labels: bool = False) -> list[str]:
    """Names of the columns: place and id of the graph, its class if known, the answer, a probability per class.

    >>> header(["no", "yes"])
    ['graph', 'id', 'predicted', 'p(no)', 'p(yes)']
    """
    return ["graph", "id", *(["label"] if labels else []), "predicted", *(f"p({name})" for name in classes)]


def table_rows(pair: Pair, classes: Sequence[str], labels: bool = False) -> Iterator[list[str]]:
    """The rows of a set: places in the source, probabilities with six decimals."""
    graphs, p = pair
    for k, (row, best) in enumerate(zip(p.tolist(), p.argmax(axis=1).tolist(), strict=True)):
        label = [classes[graphs.y[k]] if graphs.y[k] >= 0 else ""] if labels else []
        yield [str(graphs.places[k]), graphs.ids[k], *label, classes[best], *(f"{v:.6f}" for v in row)]


def write_predictions(
    path: str | PathLike[str], pairs: Iterable[Pair], classes: Sequence[str], labels: bool = False
) -> Summary:
    """Write the table as CSV, whole or not at all, one set at a time."""
    with writing(path, durable=True) as out:
        text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
        try:
            return print_predictions(text, pairs, classes, labels)
        finally:
            text.flush()
            text.detach()


def print_predictions(out: TextIO, pairs: Iterable[Pair], classes: Sequence[str], labels: bool = False) -> Summary:
    """Write the table as CSV to an open stream."""
    pairs = _begun(pairs)
    table = csv_writer(out)
    table.writerow(header(classes, labels))
    summary = Summary()
    for pair in pairs:
        table.writerows(table_rows(pair, classes, labels))
        count_predictions(summary, pair, classes)
    return summary


def print_json(out: TextIO, pairs: Iterable[Pair], classes: Sequence[str]) -> Summary:
    """The same as one JSON document, written as the sets come."""
    pairs = _begun(pairs)
    names, summary, comma = header(classes), Summary(), ""
    out.write('{"predictions": [')
    for pair in pairs:
        for graph, own, answer, *p in table_rows(pair, classes):
            row = dict(zip(names, [int(graph), own, answer, *map(float, p)], strict=True))
            out.write(f"{comma}\n{json.dumps(row, ensure_ascii=False)}")
            comma = ","
        count_predictions(summary, pair, classes)
    return summary


def evaluate(pairs: Iterable[Pair], classes: Sequence[str], name: str) -> Scores:
    """Score predictions against the labels of their graphs; those without a label are left out."""
    held = [(graphs.y, p) for graphs, p in pairs]
    if not held or all((y < 0).all() for y, _ in held):
        raise DataError(f"{name}: there are no labels to score by. Use asapool predict for graphs without labels")
    return score(np.concatenate([y for y, _ in held]), np.concatenate([p for _, p in held]), classes)


def _begun(pairs: Iterable[Pair]) -> Iterable[Pair]:
    """The same sets, the first of them read: what is wrong with the source mostly shows before anything is written."""
    left = iter(pairs)
    return chain(list(islice(left, 1)), left)


def count_predictions(summary: Summary, pair: Pair, classes: Sequence[str]) -> None:
    """Add the predictions of a set to the summary."""
    summary.graphs += len(pair[0])
    for place, number in enumerate(np.bincount(pair[1].argmax(axis=1), minlength=len(classes)).tolist()):
        summary.predicted[classes[place]] = summary.predicted.get(classes[place], 0) + number
