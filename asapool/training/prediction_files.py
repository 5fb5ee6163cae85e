"""Predictions as files: CSV, JSON lines or Parquet, chosen by the ending of the name.

All are written set by set, so memory does not grow with the source. Parquet has typed columns: `graph` is an integer,
and the probabilities are float64 at full precision.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import IO, TextIO

from asapool.errors import ConfigError, MissingExtraError
from asapool.files import writing
from asapool.training import predictions as p

Writer = Callable[[IO[bytes], Iterable[p.Pair], Sequence[str]], p.Summary]


def save_predictions(path: str | PathLike[str], pairs: Iterable[p.Pair], classes: Sequence[str]) -> p.Summary:
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


def _csv(out: IO[bytes], pairs: Iterable[p.Pair], classes: Sequence[str]) -> p.Summary:
    return _as_text(out, lambda text: p.print_predictions(text, pairs, classes))


def _json_lines(out: IO[bytes], pairs: Iterable[p.Pair], classes: Sequence[str]) -> p.Summary:
    names, summary = p.header(classes), p.Summary()

    def lines(text: TextIO) -> p.Summary:
        for pair in pairs:
            for graph, name, answer, *values in p.table_rows(pair, classes):
                row = dict(zip(names, [int(graph), name, answer, *map(float, values)], strict=True))
                text.write(json.dumps(row, ensure_ascii=False) + "\n")
            p.count_predictions(summary, pair, classes)
        return summary

    return _as_text(out, lines)


def _parquet(out: IO[bytes], pairs: Iterable[p.Pair], classes: Sequence[str]) -> p.Summary:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise MissingExtraError("pyarrow", "chem") from None
    names, summary = p.header(classes), p.Summary()
    types = [pa.int64(), pa.string(), pa.string(), *[pa.float64()] * len(classes)]
    schema = pa.schema(list(zip(names, types, strict=True)))
    with ParquetWriter(out, schema) as table:
        for pair in pairs:
            graphs, probability = pair
            answers = [classes[k] for k in probability.argmax(axis=1).tolist()]
            columns = [graphs.places, list(graphs.ids), answers, *probability.T]
            table.write_table(pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], schema=schema))
            p.count_predictions(summary, pair, classes)
    return summary


def _as_text(out: IO[bytes], write: Callable[[TextIO], p.Summary]) -> p.Summary:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    try:
        return write(text)
    finally:
        text.flush()
        text.detach()


WRITERS: dict[str, Writer] = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}
_ENDINGS = " or ".join([", ".join([*WRITERS][:-1]), [*WRITERS][-1]])
