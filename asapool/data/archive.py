"""One interface to the text files of a folder or a zip; a zip that could do harm is refused."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Protocol

from asapool.errors import DataError

BLOCK = 8 << 20  # bytes of a file read at a time
FREE = 256 << 20  # bytes that a zip of any size may unpack to
RATIO = 200  # a larger zip: this many times its own size; text compresses 5 to 50 times, a zip bomb 1000 times
MOST = 64 << 30  # bytes that no file may exceed when unpacked
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, KeyError, OSError)


class Files(Protocol):
    """Files that can be listed by name and read in blocks, in a folder or in a zip."""

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
    """The files of a zip, unpacked while they are read; nothing is written to disk."""

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
    """Turn the various errors that zipfile and zlib raise for a damaged file into DataError."""
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: the zip is damaged or cut short ({error}). Fetch it again") from None


def check_sizes(archive: zipfile.ZipFile, path: Path, *, ratio: int | None = RATIO) -> None:
    """Refuse a zip with paths that point outside it, or that would unpack to more than a data set of its size can."""
    for name in archive.namelist():
        if name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts or name[1:2] == ":":
            raise DataError(f"{path}: {name!r} points outside the zip. Do not use this file; fetch the data set again")
    total = sum(info.file_size for info in archive.infolist())
    limit = MOST if ratio is None else min(MOST, max(FREE, ratio * os.path.getsize(path)))
    if total > limit:
        raise DataError(
            f"{path}: would unpack to {total:,} bytes, more than the limit of {limit:,}. "
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
