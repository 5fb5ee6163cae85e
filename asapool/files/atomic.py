"""Files appear whole or not at all: written under a temporary name beside the target, then renamed.

A rename protects from a process that dies. Where the power may fail too, the bytes must be on the disk before the name
is, and the name before anything goes on: durable=True waits for both.

A link stays a link: the file it leads to is the target. Devices and pipes are written into, and so is /dev/stdout,
wherever it goes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

from asapool.errors import DataError


@contextmanager
def writing(path: str | PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing bytes; it takes its name only when the block ends well.

    What cannot be written is a DataError whose cause is the OSError; a pipe that nobody reads is a BrokenPipeError.

    durable: come back only when file and name are on the disk, for what must survive a loss of power.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with writing(f"{folder}/a.txt") as out:
    ...         _ = out.write(b"whole")
    ...     [p.name for p in pathlib.Path(folder).iterdir()]
    ['a.txt']
    """
    try:
        with _way(path, durable) as out:
            yield out
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(
            f"{Path(path)}: cannot be written ({error.strerror or error}). Free space or choose another place"
        ) from error


def _way(path: str | PathLike[str], durable: bool) -> AbstractContextManager[BinaryIO]:
    """How to write there."""
    with suppress(OSError):
        if os.path.samestat(os.stat(path), os.fstat(1)):
            return open(os.dup(1), "wb")  # a second way into that file would write over what is printed
    if os.path.exists(path) and not os.path.isfile(path):
        return open(path, "wb")
    return _renamed(path, durable)


@contextmanager
def _renamed(path: str | PathLike[str], durable: bool) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise DataError(
            f"{Path(path)}: cannot be written ({error.strerror}). Choose a folder that exists and is yours"
        ) from error
    try:
        with os.fdopen(handle, "wb") as out:
            yield cast(BinaryIO, out)
            if durable:
                out.flush()
                os.fsync(out.fileno())  # the name must not get to the disk before the bytes do
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes private files; a data file is an ordinary one
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """See the names in a folder on the disk."""
    with suppress(OSError):  # some file systems cannot do this for a folder, and then need not
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
