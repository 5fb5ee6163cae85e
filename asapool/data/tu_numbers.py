"""Reads tables of numbers from text, block by block with numpy; only a block that numpy refuses is read by line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.errors import DataError

WHOLE = re.compile(rb"[+-]?\d{1,18}(\.0*)?")
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ENDS = bytes.maketrans(b"\n\r\t", b",  ")  # a single separator, so that numpy notices a missing number


def read_table(
    blocks: Iterable[bytes], file: str, dtype: type[np.int64] | type[np.float32], columns: int | None = None
) -> npt.NDArray[Any]:
    """Read comma-separated numbers, the same number on every line.

    blocks are the bytes of the file in order; columns None = as many as on the first line; returns (lines, columns).

    >>> read_table([b"1, 2\\r\\n3,", b" 4\\n"], "A.txt", np.int64).tolist()
    [[1, 2], [3, 4]]
    """
    parts: list[npt.NDArray[Any]] = []
    line = 1
    for block in _whole_lines(blocks):
        if columns is None:
            columns = block.split(b"\n", 1)[0].count(b",") + 1
        part = _fast(block, dtype, columns)
        if part is None:
            part = _careful(block, file, dtype, columns, line)
        parts.append(part)
        line += len(part)
    if not parts:
        raise DataError(f"{file}: the file is empty. Fetch the data set again")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def expect_lines(table: npt.NDArray[Any], file: str, lines: int, because: str) -> None:
    """Refuse a table without exactly this many lines, the number that another file implies."""
    if len(table) != lines:
        raise DataError(f"{file}: {len(table)} lines, but {because}. Fetch the data set again")


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut blocks at line ends; empty lines at the end of the file are dropped."""
    rest = b""
    for block in blocks:
        rest += block
        # keep back the last non-empty line: if only empty lines follow, it is the end of the file
        end = rest.rstrip().rfind(b"\n")
        if end >= 0:
            yield rest[:end]
            rest = rest[end + 1 :]
    if rest.strip():
        yield rest.rstrip()


def _fast(block: bytes, dtype: type[Any], columns: int) -> npt.NDArray[Any] | None:
    """Parse the whole block with numpy; None if any of it is not a plain number."""
    lines = block.count(b"\n") + 1
    if columns > 1 and not _even(block, columns):
        return None
    try:
        flat = np.fromstring(block.translate(ENDS), np.int64 if dtype is np.int64 else np.float64, sep=",")
    except ValueError:
        return None
    if flat.size != lines * columns:
        return None
    if dtype is np.int64:
        # numpy turns a number that is too large into the largest int64
        return None if flat.size and abs(flat).max() >= 10**18 else flat.reshape(lines, columns)
    with np.errstate(over="ignore"):
        narrow = flat.astype(np.float32)
    return narrow.reshape(lines, columns) if bool(np.isfinite(narrow).all()) else None


def _even(block: bytes, columns: int) -> bool:
    """Every line has columns - 1 commas."""
    text = np.frombuffer(block, np.uint8)
    marks = text[(text == 44) | (text == 10)] == 10  # True = line end
    if (len(marks) + 1) % columns:
        return False
    return bool(marks[columns - 1 :: columns].all()) and int(marks.sum()) == len(marks) // columns


def _careful(block: bytes, file: str, dtype: type[Any], columns: int, line: int) -> npt.NDArray[Any]:
    """Parse line by line: accept what numpy does not, such as 1.0 for 1, or raise an error that names the line."""
    rows: list[list[float]] = []
    for number, text in enumerate(block.split(b"\n"), start=line):
        fields = [field.strip() for field in text.split(b",")]
        if len(fields) != columns:
            shown = "nothing" if not text.strip() else f"{len(fields)}"
            raise DataError(f"{file}, line {number}: expected {columns} numbers, got {shown}. Fetch the data set again")
        rows.append([_number(field, file, number, dtype) for field in fields])
    return np.array(rows, dtype=dtype).reshape(len(rows), columns)


def _number(field: bytes, file: str, line: int, dtype: type[Any]) -> float:
    kind = "a whole number" if dtype is np.int64 else "a number"
    shown = field[:40].decode("utf-8", "replace")
    if dtype is np.int64 and WHOLE.fullmatch(field):
        return int(field.split(b".")[0])
    if dtype is np.float32:
        value = float(field) if NUMBER.fullmatch(field) else math.nan
        if abs(value) <= float(np.finfo(np.float32).max):
            return value
        if NUMBER.fullmatch(field) or field.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity"):
            raise DataError(f"{file}, line {line}: expected a finite number, got {shown!r}. Replace or drop that value")
    raise DataError(f"{file}, line {line}: expected {kind}, got {shown!r}. Fetch the data set again")
