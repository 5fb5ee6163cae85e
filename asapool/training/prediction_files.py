"""Files of predictions: CSV, JSON lines or Parquet, chosen by the suffix.

All are written set by set, so memory does not grow with the source. Parquet has typed columns: `graph` is an integer,
and the probabilities are float64 at full precision. In Parquet and JSON lines, columns of the input whose cells are all
numbers or empty are written as numbers; CSV has their text unchanged.
"""

from __future__ import annotations

import io
import json
import math
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple, TextIO

import numpy as np

from asapool.data import GraphSet
from asapool.data.number_columns import NumberColumns, NumberType, as_numbers
from asapool.data.targets import Target
from asapool.errors import ConfigError, MissingExtraError
from asapool.files import csv_writer, writing
from asapool.training.predictions import Pair
from asapool.training.tasks import task_of

Columns = Mapping[str, Any]  # name → a list of texts (None = empty), or an array of numbers


class Further(NamedTuple):
    """Columns besides the position, the id and the predictions.

    Args:
        before: after the id, such as the SMILES.
        after: after the predictions, such as their uncertainty.
    """

    before: Columns
    after: Columns


MakeFurther = Callable[[GraphSet, Any], Further]  # of a set and its predictions


@dataclass(kw_only=True)
class PredictionCounts:
    """How many graphs were predicted, and as what."""

    graphs: int = 0
    predicted: dict[str, Any] = field(default_factory=dict)  # class or yes/no task → graphs; values: mean, min, max


def columns_of(pair: Pair, target: Target, labels: bool = False, further: MakeFurther | None = None) -> dict[str, Any]:
    """The columns of a set: position and id of each graph, its true values if known, the predictions.

    Args:
        pair: the graphs and their predictions.
        target: what was predicted.
        labels: include the true values.
        further: makes additional columns.

    >>> graphs = GraphSet(x=np.ones((2, 1)), ptr=[0, 2], rowptr=[0, 1, 2], col=[1, 0], ids=("m1",))
    >>> list(columns_of((graphs, np.array([[0.2, 0.8]])), Target(classes=("no", "yes"))))
    ['graph', 'id', 'predicted', 'p(no)', 'p(yes)']
    """
    return _columns_and_input(pair, target, labels, further)[0]


def _columns_and_input(
    pair: Pair, target: Target, labels: bool, further: MakeFurther | None
) -> tuple[dict[str, Any], list[str]]:
    """The columns of a set, and the names of those that come from the input."""
    graphs, p = pair
    task = task_of(target)
    more = Further({}, {}) if further is None else further(graphs, p)
    columns: dict[str, Any] = {"graph": graphs.places, "id": list(graphs.ids)}
    answers = task.columns(p, target)
    taken = {*columns, *answers, *more.after}
    kept = {f"{name} (input)" if name in taken else name: cells for name, cells in more.before.items()}
    # the true values come right after the id, where the report of a run reads them
    columns |= (task.labels(graphs.y, target) if labels else {}) | kept | dict(answers) | dict(more.after)
    return columns, list(kept)


def text_rows(columns: Columns, number: Callable[[float], str]) -> Iterator[tuple[str, ...]]:
    """The rows as text: integers as they are, other numbers formatted by `number`."""
    return zip(*([_text(cell, number) for cell in _cells(column)] for column in columns.values()), strict=True)


def json_rows(
    columns: Columns, number: Callable[[float], str], exact: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """The rows as plain data: numbers rounded as in the text, except in exact columns; null for NaN and infinity."""
    plain = ([c if name in exact else _plain(c, number) for c in _cells(cells)] for name, cells in columns.items())
    for row in zip(*plain, strict=True):
        yield dict(zip(columns, row, strict=True))


def write_predictions(
    path: str | PathLike[str], pairs: Iterable[Pair], target: Target, labels: bool = False
) -> PredictionCounts:
    """Write the table as CSV, atomically, one set at a time; molecules with their SMILES."""

    def further(graphs: GraphSet, p: Any) -> Further:
        return Further(smiles_column(graphs), {})

    with writing(path, durable=True) as out:
        return _as_text(out, lambda text: print_predictions(text, pairs, target, labels, further))


def smiles_column(graphs: GraphSet) -> Columns:
    """The SMILES of graphs that were read from SMILES, as a column; no column for others."""
    is_molecules = graphs.source_text is not None and graphs.recipe.get("kind") == "smiles"
    return {"smiles": list(graphs.source_text or ())} if is_molecules else {}


def print_predictions(
    out: TextIO, pairs: Iterable[Pair], target: Target, labels: bool = False, further: MakeFurther | None = None
) -> PredictionCounts:
    """Write the table as CSV to an open stream."""
    table, summary, has_header = csv_writer(out), PredictionCounts(), False
    for pair in _first_read(pairs):
        columns = columns_of(pair, target, labels, further)
        if not has_header:
            table.writerow(list(columns))
            has_header = True
        table.writerows(text_rows(columns, task_of(target).number))
        count_predictions(summary, pair, target)
    return summary


def print_json(
    out: TextIO, pairs: Iterable[Pair], target: Target, further: MakeFurther | None = None
) -> PredictionCounts:
    """Write the table as one JSON document, one set at a time."""
    pairs = _first_read(pairs)
    summary, comma = PredictionCounts(), ""
    out.write('{"predictions": [')
    for pair in pairs:
        for row in json_rows(columns_of(pair, target, further=further), task_of(target).number):
            out.write(f"{comma}\n{json.dumps(row, ensure_ascii=False)}")
            comma = ","
        count_predictions(summary, pair, target)
    return summary


Writer = Callable[[IO[bytes], Iterable[Pair], Target, "MakeFurther | None"], PredictionCounts]


def save_predictions(
    path: str | PathLike[str], pairs: Iterable[Pair], target: Target, further: MakeFurther | None = None
) -> PredictionCounts:
    """Write a row per graph to a file, atomically.

    Args:
        path: Name that ends in .csv, .jsonl or .parquet; a device or pipe gets CSV.
        pairs: Sets of graphs with their probabilities, as predict_source yields them.
        target: That of the model.
        further: Makes additional columns.

    Returns:
        How many graphs were predicted, and as what.
    """
    write = writer_for(path)
    with writing(path, durable=True) as out:
        return write(out, pairs, target, further)


def writer_for(path: str | PathLike[str]) -> Writer:
    """The writer for the suffix of a file; an unknown suffix is refused before anything is computed.

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


def _csv(out: IO[bytes], pairs: Iterable[Pair], target: Target, further: MakeFurther | None) -> PredictionCounts:
    return _as_text(out, lambda text: print_predictions(text, pairs, target, further=further))


def _json_lines(out: IO[bytes], pairs: Iterable[Pair], target: Target, further: MakeFurther | None) -> PredictionCounts:
    summary = PredictionCounts()

    def lines(text: TextIO) -> PredictionCounts:
        for columns, numbers in _typed(pairs, target, further, summary):
            for row in json_rows(columns, task_of(target).number, numbers):
                text.write(json.dumps(row, ensure_ascii=False) + "\n")
        return summary

    return _as_text(out, lines)


def _parquet(out: IO[bytes], pairs: Iterable[Pair], target: Target, further: MakeFurther | None) -> PredictionCounts:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise MissingExtraError("pyarrow", "chem") from None
    summary, table = PredictionCounts(), None
    try:
        for columns, numbers in _typed(pairs, target, further, summary):
            arrays = {}
            for name, column in columns.items():
                if name in numbers:
                    arrays[name] = pa.array(column, pa.int64() if numbers[name] is int else pa.float64())
                    continue
                texts = isinstance(column, list)
                cells = [None if cell is None else str(cell) for cell in column] if texts else column
                arrays[name] = pa.array(cells, pa.string() if texts else None)
            rows = pa.table(arrays)
            table = ParquetWriter(out, rows.schema) if table is None else table
            table.write_table(rows)
    finally:
        if table is not None:
            table.close()
    return summary


def _typed(
    pairs: Iterable[Pair], target: Target, further: MakeFurther | None, summary: PredictionCounts
) -> Iterator[tuple[dict[str, Any], dict[str, NumberType]]]:
    """The columns of every set, with numbers in the columns of the input whose cells are all numbers or empty.

    Yields the columns and the type of each such column, the same for every set. Whether a column is one is known only
    after the last set, so the sets wait in a temporary file, unless the first set already has no such column.
    """
    rest = iter(pairs)
    numbers: NumberColumns | None = None
    with TemporaryFile() as waiting:
        for pair in rest:
            columns, kept = _columns_and_input(pair, target, False, further)
            count_predictions(summary, pair, target)
            numbers = NumberColumns(kept) if numbers is None else numbers
            numbers.update(columns)
            if numbers.possible or waiting.tell():
                pickle.dump(columns, waiting, protocol=pickle.HIGHEST_PROTOCOL)
            else:
                yield columns, {}
        end, types = waiting.tell(), {} if numbers is None else numbers.types
        waiting.seek(0)
        while waiting.tell() < end:
            columns = pickle.load(waiting)  # written above
            yield {n: as_numbers(c, types[n]) if n in types else c for n, c in columns.items()}, types


def _as_text(out: IO[bytes], write: Callable[[TextIO], PredictionCounts]) -> PredictionCounts:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    try:
        return write(text)
    finally:
        text.flush()
        text.detach()


WRITERS: dict[str, Writer] = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}
_ENDINGS = " or ".join([", ".join([*WRITERS][:-1]), [*WRITERS][-1]])


def _cells(column: Any) -> list[Any]:
    cells: list[Any] = column if isinstance(column, list) else np.asarray(column).tolist()
    return cells


def _text(cell: Any, number: Callable[[float], str]) -> str:
    if isinstance(cell, float):
        return number(cell)
    return "" if cell is None else str(cell)


def _plain(cell: Any, number: Callable[[float], str]) -> Any:
    if isinstance(cell, float):
        return float(number(cell)) if math.isfinite(cell) else None
    return cell if cell is None or isinstance(cell, (int, str)) else str(cell)


def _first_read(pairs: Iterable[Pair]) -> Iterable[Pair]:
    """The same sets with the first one already read, so that most errors occur before anything is written."""
    rest = iter(pairs)
    return chain(list(islice(rest, 1)), rest)


def count_predictions(summary: PredictionCounts, pair: Pair, target: Target) -> None:
    """Add the predictions of a set to the summary."""
    task_of(target).count(summary.predicted, summary.graphs, pair[1], target)
    summary.graphs += len(pair[0])
