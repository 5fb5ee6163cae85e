"""Predictions as files: CSV, JSON lines or Parquet, chosen by the ending of the name.

All are written set by set, so memory does not grow with the source. Parquet has typed columns: `graph` is an integer,
and the probabilities are float64 at full precision.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import IO, TextIO

import numpy as np

from asapool.errors import ConfigError, MissingExtraError
from asapool.files import csv_writer, writing
from asapool.training.predictions import Pair


@dataclass(kw_only=True)
class PredictionCounts:
    """How many graphs were predicted, and as which class."""

    graphs: int = 0
    predicted: dict[str, int] = field(default_factory=dict)  # class → number of graphs


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
) -> PredictionCounts:
    """Write the table as CSV, whole or not at all, one set at a time."""
    with writing(path, durable=True) as out:
        text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
        try:
            return print_predictions(text, pairs, classes, labels)
        finally:
            text.flush()
            text.detach()


def print_predictions(
    out: TextIO, pairs: Iterable[Pair], classes: Sequence[str], labels: bool = False
) -> PredictionCounts:
    """Write the table as CSV to an open stream."""
    pairs = _begun(pairs)
    table = csv_writer(out)
    table.writerow(header(classes, labels))
    summary = PredictionCounts()
    for pair in pairs:
        table.writerows(table_rows(pair, classes, labels))
        count_predictions(summary, pair, classes)
    return summary


def print_json(out: TextIO, pairs: Iterable[Pair], classes: Sequence[str]) -> PredictionCounts:
    """The same as one JSON document, written as the sets come."""
    pairs = _begun(pairs)
    names, summary, comma = header(classes), PredictionCounts(), ""
    out.write('{"predictions": [')
    for pair in pairs:
        for graph, own, answer, *p in table_rows(pair, classes):
            row = dict(zip(names, [int(graph), own, answer, *map(float, p)], strict=True))
            out.write(f"{comma}\n{json.dumps(row, ensure_ascii=False)}")
            comma = ","
        count_predictions(summary, pair, classes)
    return summary


Writer = Callable[[IO[bytes], Iterable[Pair], Sequence[str]], PredictionCounts]


def save_predictions(path: str | PathLike[str], pairs: Iterable[Pair], classes: Sequence[str]) -> PredictionCounts:
    """Write a row per graph to a file, whole or not at all.

    Args:
        path: Name that ends in .csv, .jsonl or .parquet; a device or pipe gets CSV.
        pairs: Sets of graphs with their probabilities, as predict_source yields them.
        classes: Class names, in the order of the probabilities.

    Returns:
        How many graphs were predicted, and as which class.
    """
    write = writer_for(path)
    with writing(path, durable=True) as out:
        return write(out, pairs, classes)


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


def _csv(out: IO[bytes], pairs: Iterable[Pair], classes: Sequence[str]) -> PredictionCounts:
    return _as_text(out, lambda text: print_predictions(text, pairs, classes))


def _json_lines(out: IO[bytes], pairs: Iterable[Pair], classes: Sequence[str]) -> PredictionCounts:
    names, summary = header(classes), PredictionCounts()

    def lines(text: TextIO) -> PredictionCounts:
        for pair in pairs:
            for graph, name, answer, *values in table_rows(pair, classes):
                row = dict(zip(names, [int(graph), name, answer, *map(float, values)], strict=True))
                text.write(json.dumps(row, ensure_ascii=False) + "\n")
            count_predictions(summary, pair, classes)
        return summary

    return _as_text(out, lines)


def _parquet(out: IO[bytes], pairs: Iterable[Pair], classes: Sequence[str]) -> PredictionCounts:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise MissingExtraError("pyarrow", "chem") from None
    names, summary = header(classes), PredictionCounts()
    types = [pa.int64(), pa.string(), pa.string(), *[pa.float64()] * len(classes)]
    schema = pa.schema(list(zip(names, types, strict=True)))
    with ParquetWriter(out, schema) as table:
        for pair in pairs:
            graphs, probability = pair
            answers = [classes[k] for k in probability.argmax(axis=1).tolist()]
            columns = [graphs.places, list(graphs.ids), answers, *probability.T]
            table.write_table(pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], schema=schema))
            count_predictions(summary, pair, classes)
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


def count_predictions(summary: PredictionCounts, pair: Pair, classes: Sequence[str]) -> None:
    """Add the predictions of a set to the summary."""
    summary.graphs += len(pair[0])
    for place, number in enumerate(np.bincount(pair[1].argmax(axis=1), minlength=len(classes)).tolist()):
        summary.predicted[classes[place]] = summary.predicted.get(classes[place], 0) + number
