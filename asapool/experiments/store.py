"""Store: the records of many Runs in a folder, one line each, append-only.

A line is appended in one write, followed by an fsync: a crash at any moment leaves complete lines and at most one
partial line at the end, which the next writer cuts off and readers ignore.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from asapool.errors import CheckpointError, DataError, TrainingError
from asapool.experiments.record import RunRecord, better
from asapool.files import sync_folder, working_in

FILE = "runs.jsonl"
COMPLETE = re.compile(rb'"checksum":"[0-9a-f]{16}"}.$', re.DOTALL)  # a record and one byte instead of the line end


class Store:
    """The records in a folder, open for writing by one process at a time; made by Store.open."""

    def __init__(self, folder: Path, handle: int) -> None:
        self.folder = folder
        self._handle = handle
        self._size = os.fstat(handle).st_size
        self._records: dict[str, RunRecord] = {}

    @classmethod
    @contextmanager
    def open(cls, folder: str | PathLike[str]) -> Iterator[Store]:
        """Lock the folder for writing; a second writer is refused, a partial last line is cut off."""
        _refuse_a_run(Path(folder))
        with working_in(folder) as path:
            handle = _open(path / FILE)
            try:
                _cut_torn_line(path / FILE, handle)
                store = cls(path, handle)
                store._records = _read(path / FILE, RunRecord.light)
                yield store
            finally:
                os.close(handle)

    @staticmethod
    def read(folder: str | PathLike[str], *, light: bool = False) -> dict[str, RunRecord]:
        """The records of a folder by the key of their Run; of several records of a Run, the finished or last one.

        light: without curves and probabilities, for many records at once.
        """
        path = Path(folder) / FILE
        if not path.is_file():
            raise DataError(f"{folder}: contains no {FILE}. Give a folder written by asapool reproduce")
        return _read(path, RunRecord.light if light else _same)

    def append(self, record: RunRecord) -> None:
        """Add a record and sync it to disk; a second record of a finished Run is refused.

        If the disk is full, the file is cut back to its last complete line, and nothing is lost.
        """
        key = record.run.key
        if self.finished(key):
            raise DataError(f"{self.folder / FILE}: the run {key} is already finished and has a record")
        line = record.to_line().encode("utf-8") + b"\n"
        try:
            written = os.write(self._handle, line)
            if written < len(line):
                raise OSError(28, "No space left on device")
            os.fsync(self._handle)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._handle, self._size)
            raise TrainingError(
                f"{self.folder / FILE}: cannot be written ({error.strerror}). Free space and run the command again"
            ) from None
        self._size += len(line)
        self._records[key] = record.light()

    def finished(self, key: str) -> bool:
        """Whether the Run of this key has its scores."""
        return key in self._records and self._records[key].finished

    def records(self) -> dict[str, RunRecord]:
        """The records by key, without curves and probabilities; not to be changed by the caller."""
        return self._records


def _same(record: RunRecord) -> RunRecord:
    return record


def _refuse_a_run(folder: Path) -> None:
    """Refuse a folder of asapool train, whose files have other meanings and whose report would be overwritten."""
    if all((folder / name).exists() for name in ("config.toml", "split.json")):
        raise CheckpointError(
            f"{folder}: contains a run of asapool train, and other training runs need their own folder. "
            "Choose another with --out"
        )


def _open(path: Path) -> int:
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise TrainingError(f"{path}: cannot be written ({error.strerror}). Choose another folder with --out") from None
    sync_folder(path.parent)
    return handle


def _cut_torn_line(path: Path, handle: int) -> None:
    """Remove a partial line that a crash left at the end."""
    size = end = os.fstat(handle).st_size
    tail = b""
    while end > 0 and b"\n" not in tail:
        step = min(1 << 16, end)
        end -= step
        tail = os.pread(handle, step, end)
    keep = end + tail.rfind(b"\n") + 1
    if keep < size:
        try:
            os.ftruncate(handle, keep)
        except OSError as error:
            raise TrainingError(f"{path}: cannot be repaired ({error.strerror}). Choose another folder") from None


def _read(path: Path, keep: Callable[[RunRecord], RunRecord]) -> dict[str, RunRecord]:
    records: dict[str, RunRecord] = {}
    lines_of: dict[str, int] = {}
    try:
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    _check_torn(line, path, number)
                    break
                record = _parse(line, path, number)
                key = record.run.key
                before = records.get(key)
                if before is not None and before.finished and record.finished:
                    _check_second(before, record, path, lines_of[key], number)
                elif before is None or not before.finished:
                    records[key], lines_of[key] = keep(record), number
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    return records


def _parse(line: bytes, path: Path, number: int) -> RunRecord:
    try:
        return RunRecord.from_line(line)
    except DataError as error:
        raise DataError(f"{path}, line {number}: {error}. Remove the line to repeat its run") from None


def _check_torn(line: bytes, path: Path, number: int) -> None:
    """Accept a partial last line, unless the record is complete and only its line end is damaged."""
    if COMPLETE.search(line):
        raise DataError(f"{path}, line {number}: the end of the line is damaged. Remove the line to repeat its run")


def _check_second(one: RunRecord, other: RunRecord, path: Path, first: int, second: int) -> None:
    """Two finished records of one Run must have the same scores."""
    try:
        better(one, other)
    except DataError as error:
        raise DataError(f"{path}, lines {first} and {second}: {error}") from None
