"""Folders and zips of text files behind one door, with the ways a zip can do harm closed."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Protocol

from asapool.errors import DataError

BLOCK = 8 << 20  # bytes of a file held at a time
FREE = 256 << 20  # bytes any zip may unpack to
RATIO = 200  # beyond that, times the size of the zip itself: text shrinks 5 to 50 times, a bomb 1000 times
MOST = 64 << 30  # bytes no file may unpack to
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, KeyError, OSError)


class Files(Protocol):
    """Files that can be listed by name and read in blocks, wherever they lie."""

    where: str

    def names(self) -> list[str]: ...
    def blocks(self, name: str) -> Iterator[bytes]: ...


class Folder:
    """The files directly inside a folder."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)

    def names(self) -> list[str]:
        return sorted(p.name for p in self.path.iterdir() if p.is_file())

    def blocks(self, name: str) -> Iterator[bytes]:
        try:
            with (self.path / name).open("rb") as stream:
                while block := stream.read(BLOCK):
                    yield block
        except OSError as error:
            raise DataError(f"{self.path / name}: cannot be read ({error.strerror})") from None


class Zip:
    """The files of a zip, read as they are unpacked; nothing is written to disk."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.where, self.archive = str(path), archive

    def names(self) -> list[str]:
        return sorted(n for n in self.archive.namelist() if n and not n.endswith("/") and "__MACOSX" not in n)

    def blocks(self, name: str) -> Iterator[bytes]:
        with _undamaged(self.where):
            stream = self.archive.open(name)
        with stream:
            while True:
                with _undamaged(self.where):
                    block = stream.read(BLOCK)
                if not block:
                    return
                yield block


@contextmanager
def _undamaged(where: str | Path) -> Iterator[None]:
    """Damage that zipfile and zlib find, each in its own words, comes out as DataError."""
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: the zip is damaged or cut short ({error}). Fetch it again") from None


def check_sizes(archive: zipfile.ZipFile, path: Path, *, ratio: int | None = RATIO) -> None:
    """Refuse a zip whose members lie outside it or would unpack to more than any data set of its size does."""
    for name in archive.namelist():
        if name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts or name[1:2] == ":":
            raise DataError(f"{path}: {name!r} points outside the zip. Do not use this file; fetch the data set again")
    total = sum(info.file_size for info in archive.infolist())
    bound = MOST if ratio is None else min(MOST, max(FREE, ratio * os.path.getsize(path)))
    if total > bound:
        raise DataError(
            f"{path}: would unpack to {total:,} bytes, more than the bound of {bound:,}. "
            "If you trust the file, unpack it yourself and give the folder"
        )


@contextmanager
def open_files(path: Path) -> Iterator[Files]:
    """Open a folder or a zip."""
    if path.is_dir():
        yield Folder(path)
        return
    with _undamaged(path):
        archive = zipfile.ZipFile(path)
    with archive:
        check_sizes(archive, path)
        yield Zip(path, archive)
