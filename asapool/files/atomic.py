"""Atomic writes: a file is written under a temporary name in the folder of its target, then renamed.

The rename protects against a process that dies. To survive a power failure as well, the bytes must reach the disk
before the name does, and the name before anything else happens: durable=True waits for both.

A symbolic link is kept: the file it points to is replaced. Devices, pipes and /dev/stdout are written to directly.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

from asapool.errors import ConfigError, WriteError

NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # errors of file systems without fsync for folders


@contextmanager
def writing(path: str | PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing bytes; it appears under its name only if the block ends without an error.

    Args:
        path: the file to write.
        durable: return only when content and name are on the disk.

    Raises:
        WriteError: the file cannot be written. A pipe without a reader raises BrokenPipeError.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with writing(f"{folder}/a.txt") as out:
    ...         _ = out.write(b"whole")
    ...     [p.name for p in pathlib.Path(folder).iterdir()]
    ['a.txt']
    """
    try:
        with _open(path, durable) as out:
            yield out
    except (BrokenPipeError, WriteError):
        raise
    except OSError as error:
        raise WriteError(
            f"{Path(path)}: cannot be written ({error.strerror or error}). Free space or choose another place"
        ) from error


def write_text(path: str | PathLike[str], text: str, *, durable: bool = False) -> None:
    """Write a whole text file as UTF-8."""
    content = text.encode("utf-8")
    with writing(path, durable=durable) as out:
        out.write(content)


def refuse_overwriting(source: str | PathLike[str], out: str | PathLike[str]) -> None:
    """Refuse to write the output over the file or folder that is being read.

    Raises:
        ConfigError: both names mean the same file or folder.

    >>> refuse_overwriting("molecules.csv", "predictions.csv")
    """
    try:
        same = os.path.samefile(source, out) and (os.path.isfile(out) or os.path.isdir(out))  # not a terminal
    except (OSError, ValueError):  # a source need not be a file: SMILES, a synthetic set
        return
    if same:
        raise ConfigError(f"{Path(out)}: is the source, and would be overwritten. Choose another name")


def remove(path: str | PathLike[str]) -> None:
    """Remove a file if it exists."""
    try:
        Path(path).unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(f"{Path(path)}: cannot be removed ({error.strerror}). Remove it yourself") from error


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, if the file system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:  # a folder that is writable but not readable
        return
    except OSError as error:
        raise WriteError(f"{folder}: cannot be opened ({error.strerror})") from error
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in NO_FOLDER_SYNC:
            raise WriteError(
                f"{folder}: the names of its files may not be on the disk ({error.strerror}). Check the disk"
            ) from error
    finally:
        os.close(handle)


def _open(path: str | PathLike[str], durable: bool) -> AbstractContextManager[BinaryIO]:
    """Choose how to write to this path: to stdout, to a device or pipe, or by renaming."""
    with suppress(OSError):
        if os.path.samestat(os.stat(path), os.fstat(1)):
            return open(os.dup(1), "wb")  # opening it again would overwrite what was already printed
    if os.path.exists(path) and not os.path.isfile(path):
        return open(path, "wb")
    return _renamed(path, durable)


@contextmanager
def _renamed(path: str | PathLike[str], durable: bool) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise WriteError(
            f"{Path(path)}: cannot be written ({error.strerror}). Choose a folder that exists and is writable"
        ) from error
    try:
        with os.fdopen(handle, "wb") as out:
            yield cast(BinaryIO, out)
            if durable:
                out.flush()
                os.fsync(out.fileno())  # the name must not reach the disk before the bytes do
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp creates private files; use the default permissions
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync_folder(target.parent)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
