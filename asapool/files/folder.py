"""A folder that one process at a time works in: its lock, and small files that appear whole or not at all."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

from asapool.errors import CheckpointError, DataError, TrainingError
from asapool.files.atomic import writing

LOCK = ".lock"
HALF_WRITTEN = re.compile(r"\..+\.(safetensors|json|csv|toml|md|html|svg|png)\.[a-z0-9_]{8}")


@contextmanager
def working_in(folder: str | PathLike[str]) -> Iterator[Path]:
    """Make the folder if need be, and hold its lock; a second process is refused.

    The system gives the lock back when the process ends, however it ends.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise TrainingError(f"{path}: cannot be written ({error.strerror}). Choose another folder with --out") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 32).decode("ascii", "replace").strip()
            whose = f"process {holder}" if holder else "another process"
            raise TrainingError(
                f"{path}: {whose} is working in this folder. Wait for it, or choose another with --out"
            ) from None
        _sign(handle, path)
        _sweep(path)
        yield path
    finally:
        os.close(handle)


def _sign(handle: int, path: Path) -> None:
    """Leave our number for the message a second process will show."""
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
    except OSError as error:
        raise TrainingError(
            f"{path}: cannot be written ({error.strerror}). Free space or choose another folder"
        ) from None


def _sweep(path: Path) -> None:
    """Remove what a killed process left half-written; the names are those of asapool.files.atomic."""
    for left in path.iterdir():
        if HALF_WRITTEN.fullmatch(left.name) and left.is_file():
            left.unlink(missing_ok=True)


@contextmanager
def whole(path: str | PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """Write a file that appears whole or not at all; a full or read-only disk stops the work, which can go on later.

    durable: see it on the disk, for what cannot be made again from other files (asapool.files.atomic).
    """
    inside: BaseException | None = None
    try:
        with writing(path, durable=durable) as out:
            try:
                yield out
            except DataError as error:  # of what is being written, not of the writing
                inside = error
                raise
    except DataError as error:
        if error is inside:
            raise
        raise TrainingError(str(error)) from None


def write_text(path: str | PathLike[str], text: str, *, durable: bool = False) -> None:
    """Write a whole text file."""
    with whole(path, durable=durable) as out:
        out.write(text.encode("utf-8"))


def write_json(path: str | PathLike[str], value: Any, *, durable: bool = False) -> None:
    """Write plain data for people and programs to read; NaN is not JSON and is refused."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", durable=durable)


def read_json(path: str | PathLike[str]) -> Any:
    """Read what write_json wrote."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise CheckpointError(f"{path}: is not JSON: {error}. Remove the file and run again") from None


def write_csv(
    path: str | PathLike[str], header: Sequence[str], rows: Iterable[Sequence[Any]], *, durable: bool = False
) -> None:
    """Write a whole table."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    write_text(path, text.getvalue(), durable=durable)
