"""Tables of molecules for a conversion: first their labels alone, then some of their pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from asapool.data.csr import Ints
from asapool.data.molecule_table import ID_COLUMNS, STRICT, Row, build_graphs, open_rows, read_labels, recipe_of
from asapool.data.molecules import load_rdkit
from asapool.data.reading import Log, Reading, ReadOptions
from asapool.errors import DataError


def scan_table(path: Path, options: ReadOptions) -> tuple[ReadOptions, int]:
    """Read the labels of a table and no molecule: options with the recipe of the whole table, and how many rows it has.

    Pieces that are read with these options have the classes, or the tasks, of the whole table.
    """
    load_rdkit()
    columns, rows = open_rows(path, options, Log())
    present: list[dict[str, None]] = [{} for _ in columns.targets]  # the different cells of every target, in order
    number, missing = 0, False
    for row in rows:
        number = row.place + 1
        for seen, cell in zip(present, row.labels, strict=True):
            if cell is None:
                missing = True
            else:
                seen[cell] = None
    if not number:
        raise DataError(f"{path}: there are column names but no rows. Add one row per molecule")
    longest = max([len(seen) for seen in present], default=0) + missing
    cells = [[*seen, *[None] * (longest - len(seen))] for seen in present]
    sample = [
        Row(k, k, "", tuple(column[k] for column in cells), None) for k in range(longest)
    ]  # as many rows as the column with most different cells
    _, target, _ = read_labels(path, columns, sample, options, options.label_rule)
    return replace(options, recipe=recipe_of(columns, target, options), features=None), number


def stream_shares(
    path: Path, options: ReadOptions, chunk: int, wanted: Callable[[int], bool]
) -> Iterator[tuple[int, Reading, Ints]]:
    """As stream_molecules, of the wanted chunks only: the number, the reading, and the lines of its graphs."""
    log = Log()
    columns, rows = open_rows(path, options, log)
    number = -1
    while held := list(islice(rows, chunk)):
        number += 1
        if wanted(number):
            reading = log.reading(build_graphs(path, columns, held, replace(options, workers=1), log, "optional"))
            line = {row.place: row.line for row in held}
            yield number, reading, np.array([line[place] for place in reading.graphs.places.tolist()], np.int64)
        log.clear()


def check_ids(path: Path, options: ReadOptions, twice: str | None) -> str | None:
    """What is done where an id of a table is used twice: None, or a note that lines become the ids."""
    if twice is None:
        return None
    columns, _ = open_rows(path, options, Log())
    if options.id_column is None and str(columns.id).lower() not in ID_COLUMNS[:STRICT]:
        return f"{path}: the names in {columns.id!r} are not unique, so the lines of the file are the ids"
    raise DataError(f"{path}: id {twice!r} is used more than once. Give every molecule an id of its own")
