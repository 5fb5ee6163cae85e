"""Predictions as files: CSV, JSON lines or Parquet, chosen by the ending of the name.

All are written set by set, so memory does not grow with the source. Parquet has typed columns: `graph` is an integer,
and the probabilities are float64 at full precision.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np

from asapool.data.targets import Target, empty_values
from asapool.errors import ConfigError, MissingExtraError
from asapool.files import csv_writer, writing
from asapool.training.predictions import Pair
from asapool.training.tasks import task_of


@dataclass(kw_only=True)
class PredictionCounts:
    """How many graphs were predicted, and as what."""

    graphs: int = 0
    predicted: dict[str, Any] = field(default_factory=dict)  # class or yes/no task → graphs; values: mean, min, max


def header(target: Target, labels: bool = False) -> list[str]:
    """Names of the columns: place and id of the graph, its true values if known, the answers.

    >>> header(Target(classes=("no", "yes")))
    ['graph', 'id', 'predicted', 'p(no)', 'p(yes)']
    >>> header(Target(kind="regression", names=("logS",)), labels=True)
    ['graph', 'id', 'measured(logS)', 'predicted(logS)']
    """
    task = task_of(target)
    known = task.labels(empty_values(target, 0), target) if labels else {}
    return ["graph", "id", *known, *task.columns(np.zeros((0, target.outputs)), target)]


def table_rows(pair: Pair, target: Target, labels: bool = False) -> Iterator[list[str]]:
    """The rows of a set as text: places in the source, probabilities with six decimals."""
    graphs, p = pair
    task = task_of(target)
    known = task.labels(graphs.y, target).values() if labels else ()
    answers = [
        column if isinstance(column, list) else [task.number(float(v)) for v in column]
        for column in task.columns(p, target).values()
    ]
    for place, name, *cells in zip(graphs.places.tolist(), graphs.ids, *known, *answers, strict=True):
        yield [str(place), name, *cells]


def json_rows(pair: Pair, target: Target) -> Iterator[dict[str, Any]]:
    """The rows of a set as plain data: numbers are numbers, rounded as in the text."""
    graphs, p = pair
    task = task_of(target)
    columns = task.columns(p, target)
    for k, (place, name) in enumerate(zip(graphs.places.tolist(), graphs.ids, strict=True)):
        cells = {
            key: column[k] if isinstance(column, list) else float(task.number(float(column[k])))
            for key, column in columns.items()
        }
        yield {"graph": place, "id": name, **cells}


def write_predictions(
    path: str | PathLike[str], pairs: Iterable[Pair], target: Target, labels: bool = False
) -> PredictionCounts:
    """Write the table as CSV, whole or not at all, one set at a time."""
    with writing(path, durable=True) as out:
        text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
        try:
            return print_predictions(text, pairs, target, labels)
        finally:
            text.flush()
            text.detach()


def print_predictions(out: TextIO, pairs: Iterable[Pair], target: Target, labels: bool = False) -> PredictionCounts:
    """Write the table as CSV to an open stream."""
    pairs = _begun(pairs)
    table = csv_writer(out)
    table.writerow(header(target, labels))
    summary = PredictionCounts()
    for pair in pairs:
        table.writerows(table_rows(pair, target, labels))
        count_predictions(summary, pair, target)
    return summary


def print_json(out: TextIO, pairs: Iterable[Pair], target: Target) -> PredictionCounts:
    """The same as one JSON document, written as the sets come."""
    pairs = _begun(pairs)
    summary, comma = PredictionCounts(), ""
    out.write('{"predictions": [')
    for pair in pairs:
        for row in json_rows(pair, target):
            out.write(f"{comma}\n{json.dumps(row, ensure_ascii=False)}")
            comma = ","
        count_predictions(summary, pair, target)
    return summary


Writer = Callable[[IO[bytes], Iterable[Pair], Target], PredictionCounts]


def save_predictions(path: str | PathLike[str], pairs: Iterable[Pair], target: Target) -> PredictionCounts:
    """Write a row per graph to a file, whole or not at all.

    Args:
        path: Name that ends in .csv, .jsonl or .parquet; a device or pipe gets CSV.
        pairs: Sets of graphs with their probabilities, as predict_source yields them.
        target: What the answers mean, that of the model.

    Returns:
        How many graphs were predicted, and as what.
    """
    write = writer_for(path)
    with writing(path, durable=True) as out:
        return write(out, pairs, target)


def writer_for(path: str | PathLike[str]) -> Writer:
    """The writer for the ending of a file name; any other ending is refused before anything is computed.

    >>> writer_for("out.csv").__name__
    '_csv'
    >>> writer_for("out.xlsx")
    Traceback (most recent call last):
        ...
    asapool.errors.ConfigError: out.xlsx: expected a name that ends in .csv, .jsonl or .parquet
    """
    place = Path(path)
    if place.exists() and not place.is_file() and not place.is_dir():
        return _csv
    try:
        return WRITERS[place.suffix.lower()]
    except KeyError:
        raise ConfigError(f"{place}: expected a name that ends in {_ENDINGS}") from None


def _csv(out: IO[bytes], pairs: Iterable[Pair], target: Target) -> PredictionCounts:
    return _as_text(out, lambda text: print_predictions(text, pairs, target))


def _json_lines(out: IO[bytes], pairs: Iterable[Pair], target: Target) -> PredictionCounts:
    summary = PredictionCounts()

    def lines(text: TextIO) -> PredictionCounts:
        for pair in pairs:
            for row in json_rows(pair, target):
                text.write(json.dumps(row, ensure_ascii=False) + "\n")
            count_predictions(summary, pair, target)
        return summary

    return _as_text(out, lines)


def _parquet(out: IO[bytes], pairs: Iterable[Pair], target: Target) -> PredictionCounts:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise MissingExtraError("pyarrow", "chem") from None
    names, summary, task = header(target), PredictionCounts(), task_of(target)
    answers = task.columns(np.zeros((0, target.outputs)), target).values()
    types = [pa.int64(), pa.string(), *(pa.string() if isinstance(c, list) else pa.float64() for c in answers)]
    schema = pa.schema(list(zip(names, types, strict=True)))
    with ParquetWriter(out, schema) as table:
        for pair in pairs:
            graphs, p = pair
            columns = [graphs.places, list(graphs.ids), *task.columns(p, target).values()]
            table.write_table(pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], schema=schema))
            count_predictions(summary, pair, target)
    return summary


def _as_text(out: IO[bytes], write: Callable[[TextIO], PredictionCounts]) -> PredictionCounts:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    try:
        return write(text)
    finally:
        text.flush()
        text.detach()


WRITERS: dict[str, Writer] = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}
_ENDINGS = " or ".join([", ".join([*WRITERS][:-1]), [*WRITERS][-1]])


def _begun(pairs: Iterable[Pair]) -> Iterable[Pair]:
    """The same sets, the first of them read: what is wrong with the source mostly shows before anything is written."""
    left = iter(pairs)
    return chain(list(islice(left, 1)), left)


def count_predictions(summary: PredictionCounts, pair: Pair, target: Target) -> None:
    """Add the predictions of a set to the summary."""
    task_of(target).count(summary.predicted, summary.graphs, pair[1], target)
    summary.graphs += len(pair[0])
