"""Pieces of a set on disk during conversion: how they are written, read, and merged into the arrays of the folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from asapool.data.csr import Ints, pointer
from asapool.data.graphset import GraphSet
from asapool.data.mapped.coding import Arrays, Packer, encode, plan
from asapool.data.mapped.folder import sample
from asapool.data.molecule_columns import names_may_repeat
from asapool.data.molecule_table import Row, build_graphs, open_rows, read_labels, recipe_of
from asapool.data.molecules import load_rdkit
from asapool.data.reading import Log, Reading, ReadOptions
from asapool.data.unreadable import allowed_rows
from asapool.errors import DataError
from asapool.files import writing


def scan_table(path: Path, options: ReadOptions) -> tuple[ReadOptions, int]:
    """Read only the labels of a table; return options with the recipe of the whole table, and its number of rows.

    Pieces read with these options have the classes or tasks of the whole table.
    """
    load_rdkit()
    columns, rows = open_rows(path, options, Log(allowed=allowed_rows(options, None, few=True)))
    present: list[dict[str, int]] = [{} for _ in columns.targets]  # distinct cells of every target → their first line
    number = 0
    for row in rows:
        number = row.place + 1
        for seen, cell in zip(present, row.labels, strict=True):
            if cell is not None:
                seen.setdefault(cell, row.line)
    if not number:
        raise DataError(f"{path}: there are column names but no rows. Add one row per molecule")
    distinct = [
        Row(line, line, "", tuple(cell if k == at else None for k in range(len(present))), None)
        for at, seen in enumerate(present)
        for cell, line in seen.items()
    ]  # together these rows have every cell value
    _, target, _ = read_labels(path, columns, distinct, options, options.label_rule)
    return replace(options, recipe=recipe_of(columns, target, options), features=None), number


def stream_shares(
    path: Path, options: ReadOptions, chunk: int, rows_in_all: int, wanted: Callable[[int], bool]
) -> Iterator[tuple[int, Reading, Ints]]:
    """As stream_molecules, with the line numbers of the graphs: number of the chunk, reading, lines."""
    log = Log(allowed=allowed_rows(options, rows_in_all, few=True))
    columns, rows = open_rows(path, options, log)
    number = -1
    while piece := list(islice(rows, chunk)):
        number += 1
        if wanted(number):
            reading = log.reading(build_graphs(path, columns, piece, replace(options, workers=1), log, "optional"))
            line = {row.place: row.line for row in piece}
            yield number, reading, np.array([line[place] for place in reading.graphs.places.tolist()], np.int64)
        log.clear()


def check_ids(path: Path, options: ReadOptions, duplicate: str | None) -> str | None:
    """Handle a duplicate id: return None if there is none, or a note that line numbers replace names; refuse others."""
    if duplicate is None:
        return None
    columns, _ = open_rows(path, options, Log())
    if names_may_repeat(columns, options):
        return f"{path}: the names in {columns.id!r} are not unique, so the line numbers are used as ids"
    raise DataError(f"{path}: id {duplicate!r} is used more than once. Give every molecule a unique id")


ROWS = ("x", "edge_attr", "weight")  # stored as in coding.py
TEXTS = ("ids", "source_text")


def part_of(reading: Reading) -> Arrays:
    """The arrays of a piece; nodes are numbered within their graph."""
    graphs = reading.graphs
    rowptr, col = graphs.rowptr, graphs.col
    begin = rowptr[graphs.ptr]
    counts, sizes = np.diff(begin), np.diff(graphs.ptr)
    notes = {
        "skipped": [list(row) for row in reading.skipped],
        "missing": dict(reading.missing),
        "notes": list(reading.notes),
        "named": graphs.named,
        "feature_names": list(graphs.feature_names),
        "classes": list(graphs.class_names),
    }
    part: Arrays = {
        "sizes": sizes,
        "counts": counts,
        "start": _narrow(rowptr[:-1] - begin[:-1].repeat(sizes)),
        "local": _narrow(col - graphs.ptr[:-1].repeat(counts)),
        "y": graphs.y,
        "places": graphs.places,
        "notes": np.frombuffer(json.dumps(notes).encode(), np.uint8),
    }
    for name in ROWS:
        rows = getattr(graphs, name)
        if rows is not None:
            part |= {f"{name}.{key}": value for key, value in encode(rows if rows.ndim == 2 else rows[:, None]).items()}
    for name in ("truth", "descriptors"):
        if getattr(graphs, name) is not None:
            part[name] = getattr(graphs, name)
    for name in TEXTS:
        texts = getattr(graphs, name)
        if texts is not None:
            content = [text.encode() for text in texts]
            part[name] = np.frombuffer(b"".join(content), np.uint8)
            part[f"{name}_ptr"] = pointer(np.array([len(text) for text in content], np.int64))
    return part


def write_part(file: Path, part: Arrays) -> None:
    """Write a piece atomically."""
    with writing(file) as out:
        np.savez(out, **part)  # type: ignore[arg-type]


def read_part(file: Path, *names: str) -> Arrays:
    """Some arrays of a piece; those it does not have are left out."""
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in names if name in arrays.files}


def notes_of(file: Path) -> dict[str, Any]:
    """Skipped rows, missing values, notes and names from the reading of a piece."""
    notes: dict[str, Any] = json.loads(bytes(read_part(file, "notes")["notes"]))
    return notes


class Merger:
    """Writes the arrays of the finished folder piece by piece, and describes them for meta.json."""

    def __init__(self, folder: Path, parts: Sequence[Path]) -> None:
        self.folder, self.parts = folder, parts
        self.files: dict[str, dict[str, Any]] = {}
        self.rows: dict[str, dict[str, Any]] = {}

    def merge(self) -> None:
        """Write everything but the texts."""
        for name, lengths in (("ptr", "sizes"), ("eptr", "counts")):
            self._write(name, [pointer(np.concatenate([read_part(p, lengths)[lengths] for p in self.parts]))])
        for name in ("start", "local"):
            self._write_narrow(name)
        for name in ("y", "places", "truth", "descriptors"):
            if read_part(self.parts[0], name):
                self._write(name, (read_part(p, name)[name] for p in self.parts))
        for name in ROWS:
            self._merge_rows(name)

    def merge_texts(self, name: str, change: Callable[[Ints], Sequence[str]] | None = None) -> None:
        """Write texts; change, if given, makes them from the places of the graphs instead."""
        if change is None and not read_part(self.parts[0], f"{name}_ptr"):
            return
        lengths: list[npt.NDArray[Any]] = []

        def contents() -> Iterator[npt.NDArray[Any]]:
            for file in self.parts:
                if change is None:
                    part = read_part(file, name, f"{name}_ptr")
                    lengths.append(np.diff(part[f"{name}_ptr"]))
                    yield part[name]
                else:
                    texts = [text.encode() for text in change(read_part(file, "places")["places"])]
                    lengths.append(np.array([len(text) for text in texts], np.int64))
                    yield np.frombuffer(b"".join(texts), np.uint8)

        self._write(name, contents())
        self._write(f"{name}_ptr", [pointer(np.concatenate(lengths))])

    def _write_narrow(self, name: str) -> None:
        widest = max((read_part(p, name)[name].dtype for p in self.parts), key=lambda dtype: dtype.itemsize)
        self._write(name, (read_part(p, name)[name].astype(widest) for p in self.parts))

    def _merge_rows(self, name: str) -> None:
        keys = [f"{name}.{key}" for key in ("table", "codes", "rows")]
        if not read_part(self.parts[0], *keys):
            return
        kind, table = plan(_bare(read_part(p, keys[0], keys[2])) for p in self.parts)
        packer = Packer(kind, table)
        width = next(int(v.shape[1]) for v in read_part(self.parts[0], keys[0], keys[2]).values())
        self._write(name, (packer.pack(_bare(read_part(p, *keys))) for p in self.parts))
        if table is not None:
            self._write(f"{name}_table", [table])
        self.rows[name] = {"kind": kind, "width": width}

    def _write(self, name: str, blocks: Any) -> None:
        """Append blocks to one .npy file; the header is rewritten once the length is known."""
        file = self.folder / f"{name}.npy"
        with writing(file) as out:
            length, kind, tail = 0, np.dtype(np.int64), ()
            for k, block in enumerate(blocks):
                if k == 0:
                    kind, tail = block.dtype, block.shape[1:]
                    _header(out, kind, (0, *tail))
                out.write(np.ascontiguousarray(block).data)
                length += len(block)
            out.seek(0)
            _header(out, kind, (length, *tail))
        self.files[name] = {
            "dtype": kind.str, "shape": [length, *tail], "bytes": file.stat().st_size, "sample": sample(file),
        }  # fmt: skip


HEADER = 256  # bytes of the header of an .npy file, enough for any length


def _header(out: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Write the header of an .npy file, always of the same length."""
    described = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    text = described.encode().ljust(HEADER - 11) + b"\n"
    out.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)


def _bare(part: Arrays) -> Arrays:
    return {name.rpartition(".")[2]: value for name, value in part.items()}


def _narrow(values: Ints) -> npt.NDArray[Any]:
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def in_memory(graphs: GraphSet, size: int) -> Iterator[GraphSet]:
    """A set in pieces of up to size graphs."""
    for start in range(0, len(graphs), size):
        yield graphs.subset(slice(start, start + size))
