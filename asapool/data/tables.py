"""Tables (CSV, TSV, Parquet, .smi, SDF) as a header and numbered rows.

Structures in SDF files become SMILES, so that atoms, bonds and scaffolds are as in any other table of molecules.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from asapool.data.archive import FREE, RATIO
from asapool.data.molecules import load_rdkit, parse
from asapool.errors import DataError, MissingExtraError

ITEM = re.compile(r">.*<([^>]+)>.*")
END = "$$$$"
TITLE = "id"


def sdf_header(text: io.TextIOBase) -> list[str]:
    """The columns: smiles, id, then every data item in the file, in order of appearance."""
    names = dict.fromkeys(
        match[1] for line in text if line.startswith(">") and (match := ITEM.fullmatch(line.rstrip()))
    )
    return ["smiles", TITLE, *(name for name in names if name.lower() not in ("smiles", TITLE))]


def sdf_rows(text: io.TextIOBase, header: Sequence[str]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Every record with its first line; a structure that RDKit cannot read has an empty SMILES."""
    Chem = load_rdkit()
    from rdkit import rdBase

    for line, record in _records(text):
        with rdBase.BlockLogs():
            mol = Chem.MolFromMolBlock(_block(record))
        smiles = "" if mol is None else Chem.MolToSmiles(mol)
        items = _items(record)
        title = record[0].strip() or next((items[name] for name in items if name.lower() == TITLE), None)
        yield line, [smiles, title, *(items.get(name) for name in header[2:])]


def _records(text: io.TextIOBase) -> Iterator[tuple[int, list[str]]]:
    record: list[str] = []
    first = 1
    for number, raw in enumerate(text, start=1):
        line = raw.rstrip("\r\n")
        if line.strip() == END:
            if any(part.strip() for part in record):
                yield first, record
            record, first = [], number + 1
        else:
            record.append(line)
    if any(part.strip() for part in record):  # a last record without its $$$$
        yield first, record


def _block(record: Sequence[str]) -> str:
    end = next((k for k, line in enumerate(record) if line.startswith("M  END")), len(record) - 1)
    return "\n".join(record[: end + 1]) + "\n"


def _items(record: Sequence[str]) -> dict[str, str]:
    """The data items: '> <NAME>', then the lines of the value up to an empty one."""
    items: dict[str, str] = {}
    name: str | None = None
    for line in record:
        match = ITEM.fullmatch(line) if line.startswith(">") else None
        if match:
            name = match[1]
            items[name] = ""
        elif not line.strip():
            name = None
        elif name is not None:
            items[name] = f"{items[name]} {line.strip()}".strip()
    return items


Rows = Iterator[tuple[int, Sequence[Any]]]
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SEPARATORS = re.compile(r"[\W_]+")  # between the words of a column's name
SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # a first line that tells Excel the separator


@contextmanager
def open_table(path: Path, encoding: str = "utf-8") -> Iterator[tuple[list[str], Rows]]:
    """Open a table; rows are read lazily, each with its line number (in Parquet its row number, from 1)."""
    kind = path.name.lower().removesuffix(".gz")
    if kind.endswith(".parquet"):
        yield _open_parquet(path)
        return
    with open_bytes(path) as stream:
        try:
            # utf-8-sig: spreadsheets put a byte order mark before the first column's name
            known = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
            text = io.TextIOWrapper(stream, known, newline="", errors="replace" if kind.endswith(".sdf") else "strict")
        except LookupError:
            raise DataError(f"{path}: {encoding!r} is not the name of a text encoding") from None
        if kind.endswith(".sdf"):
            header = sdf_header(text)
            with open_bytes(path) as again:
                records = io.TextIOWrapper(again, known, newline="", errors="replace")  # held until its file is closed
                yield header, _guarded(sdf_rows(records, header), path, encoding)
            return
        if kind.endswith(".smi"):
            yield ["smiles", "id"], _guarded(_smi_rows(text), path, encoding)
            return
        rows = _guarded(csv_rows(text, path), path, encoding)
        first = next(rows, None)
        if first is None:
            raise DataError(f"{path}: the file is empty. A line with column names and one line per graph are expected")
        header = [str(name).strip() for name in first[1]]
        twice = {name for name in header if header.count(name) > 1}
        if twice and looks_like_data(header):
            raise no_header(header, path)
        if twice:
            raise DataError(f"{path}, line {first[0]}: two columns are called {min(twice)!r}. Rename one of them")
        yield header, rows


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file; a .gz is unpacked, up to the size that a text file compressed to its size can have."""
    try:
        stream: BinaryIO = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    with stream:
        if not path.name.lower().endswith(".gz"):
            yield stream
            return
        limit = max(FREE, RATIO * path.stat().st_size)
        yield cast(BinaryIO, io.BufferedReader(_Unpacked(stream, path, limit), 1 << 20))


class _Unpacked(io.RawIOBase):
    """The bytes of a gzip file, up to a limit."""

    def __init__(self, stream: BinaryIO, path: Path, limit: int) -> None:
        self.gz, self.path, self.limit, self.count = gzip.GzipFile(fileobj=stream), path, limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.gz.read(len(buffer))
        self.count += len(data)
        if self.count > self.limit:
            raise DataError(
                f"{self.path}: unpacks to more than the limit of {self.limit:,} bytes. "
                "If you trust the file, unpack it yourself"
            )
        buffer[: len(data)] = data
        return len(data)


def csv_rows(text: io.TextIOBase, path: Path) -> Rows:
    """The rows of a table with their line numbers, blank ones left out.

    The first line decides between commas, semicolons and tabs, unless it is `sep=;`, as spreadsheet programs write it.
    """
    start = text.readline()
    declared = SEPARATOR.fullmatch(start.rstrip("\r\n"))
    if declared:
        start = text.readline()
    if not start:
        return
    separator = (
        declared[1]
        if declared
        else "\t"
        if path.name.lower().removesuffix(".gz").endswith(".tsv")
        else max(",;\t", key=start.count)
    )
    reader = csv.reader(chain([start], text), delimiter=separator)
    before = 1 if declared else 0
    line = before + 1
    for row in reader:
        if any(field.strip() for field in row):
            yield line, row
        line = before + reader.line_num + 1


def _smi_rows(text: io.TextIOWrapper) -> Rows:
    for line, row in enumerate(text, start=1):
        fields = row.split(None, 1)
        if fields:
            yield line, [fields[0], fields[1].strip() if len(fields) > 1 else None]


def _guarded(rows: Rows, path: Path, encoding: str) -> Rows:
    """The rows; errors of the csv module and of decoding become DataError."""
    line = 0
    try:
        for line, row in rows:
            yield line, row
    except csv.Error as error:
        raise DataError(f"{path}, after line {line}: not a table ({error}). Save it again as CSV") from None
    except UnicodeError:
        wrong, byte, likely = _undecodable(path, encoding)
        raise DataError(
            f"{path}, line {wrong}: byte 0x{byte:02x} is not {encoding} text. "
            f"Save the file as UTF-8, or name its encoding, such as encoding={likely!r} (--encoding {likely})"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _undecodable(path: Path, encoding: str) -> tuple[int, int, str]:
    with open_bytes(path) as stream:
        for line, text in enumerate(stream, start=1):
            try:
                text.decode(encoding)
            except UnicodeDecodeError as error:
                return line, text[error.start], "utf-16" if text[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
    return line, 0, "latin-1"


def _open_parquet(path: Path) -> tuple[list[str], Rows]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingExtraError("pyarrow", "chem") from None
    try:
        file = ParquetFile(path)
        header = [str(name) for name in file.schema_arrow.names]
    except (ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not readable as Parquet ({error}). Write the file again") from None

    def rows() -> Rows:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=4096):
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    yield number, row
        except (ArrowException, OSError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{path}, after row {number}: not readable as Parquet ({error}). Write the file again"
            ) from None

    return header, rows()


def checked_rows(rows: Rows, header: Sequence[str], path: Path) -> Rows:
    """The rows; one whose number of fields is not that of the header is refused."""
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(
                f"{path}, line {line}: expected {len(header)} fields, got {len(row)}. "
                "Quote fields that contain a separator"
            )
        yield line, row


def guess(
    header: Sequence[str], named: str | None, usual: Sequence[str], path: Path, option: str | None, what: str
) -> int:
    """The index of a column: the one named, else the one with a usual name, else an error.

    option: the setting that names the column, for the message; None = there is none, so it must have a usual name.
    """
    column = find(header, named, usual, path)
    if column is None and path.suffix and looks_like_data(header):  # the names of a data frame may be numbers
        raise no_header(header, path)
    if column is None:
        columns = ", ".join(map(repr, header))
        raise DataError(
            f"{path}: no column is called {' or '.join(usual[:3])}; the columns are {columns}. "
            + (f"Rename the one that holds {what} to {usual[0]!r}" if option is None else which_column(option, what))
        )
    return column


def looks_like_data(header: Sequence[str]) -> bool:
    """Whether a first line is a row of data: a cell is a number, several are empty, or the only one is SMILES.

    >>> looks_like_data(["CCO", "1"]), looks_like_data(["CCO"]), looks_like_data(["smiles", "y"])
    (True, True, False)
    """
    if len(header) == 1 and header[0] and parse(header[0]) is not None:
        return True
    return header.count("") > 1 or any(NUMBER.fullmatch(name) for name in header)


def no_header(header: Sequence[str], path: Path) -> DataError:
    """The error for a table without a header line."""
    first = ",".join(header)
    shown = first if len(first) <= 60 else first[:57] + "..."
    return DataError(
        f"{path}: expected a header line with column names, but the first line, {shown!r}, looks like data. "
        f"Add a header, such as {'smiles,label' if len(header) > 1 else 'smiles'}"
    )


def find(header: Sequence[str], named: str | None, usual: Sequence[str], path: Path) -> int | None:
    """As guess, but None if no column has a usual name."""
    if named is not None:
        return column_of(header, named, path)
    return next((k for wanted in usual for k, name in enumerate(header) if has_name(name, (wanted,))), None)


def has_name(column: str, usual: Sequence[str]) -> bool:
    """Whether a column has one of the usual names; case and separators do not count.

    >>> [has_name(name, ("compound_id", "unnamed_0")) for name in ("CompoundID", "compound id", "Unnamed: 0", "ID")]
    [True, True, True, False]
    """
    return _plain(column) in map(_plain, usual)


def _plain(name: str) -> str:
    # pandas writes its index as a column without a name, and reads it as "Unnamed: 0"
    return SEPARATORS.sub("", name.lower()) if name else "unnamed0"


def column_of(header: Sequence[str], named: str, path: Path, what: str = "") -> int:
    """The index of a column that the caller named; what: an explanation for the error message."""
    if named not in header:
        close = [name for name in header if name.lower() == named.lower()] or get_close_matches(named, header, 1)
        advice = f". Did you mean {close[0]!r}?" if close else ""
        columns = ", ".join(map(repr, header))
        raise DataError(f"{path}: there is no column {named!r}{what}; the columns are {columns}{advice}")
    return list(header).index(named)


def refuse_several(header: Sequence[str], usual: Sequence[str], path: Path, option: str, what: str) -> None:
    """Refuse to choose if more than one column has a usual name."""
    matches = [name for name in header if has_name(name, usual)]
    if len(matches) > 1:
        raise DataError(
            f"{path}: expected one column with {what}, got {' and '.join(map(repr, matches))}. "
            + which_column(option, what)
        )


def which_column(option: str, what: str) -> str:
    """Advice to name a column with an option."""
    return f"Say which one holds {what}: {option}=NAME (--{option.replace('_', '-')} NAME)"
