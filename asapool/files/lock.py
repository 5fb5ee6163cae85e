"""A lock that lets one process at a time work in a folder."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from asapool.errors import WriteError
from asapool.files.atomic import remove

LOCK = ".lock"
HALF_WRITTEN = re.compile(r"\..+\.(safetensors|json|jsonl|csv|parquet|toml|md|html|svg|png|pdf|npz)\.[a-z0-9_]{8}")


@contextmanager
def working_in(folder: str | PathLike[str]) -> Iterator[Path]:
    """Create the folder if needed and hold its lock; a second process is refused.

    The operating system releases the lock when the process ends, even if it is killed.
    """
    path = Path(folder)
    handle = _open_lock(path)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 32).decode("ascii", "replace").strip()
            who = f"process {holder}" if holder else "another process"
            raise WriteError(
                f"{path}: {who} is working in this folder. Wait for it, or choose another with --out"
            ) from None
        _write_pid(handle, path)
        _remove_half_written(path)
        yield path
    finally:
        os.close(handle)


def _open_lock(path: Path) -> int:
    try:
        path.mkdir(parents=True, exist_ok=True)
        # O_NOFOLLOW: a link in place of the lock would have its target overwritten
        return os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WriteError(f"{path / LOCK}: is a symbolic link, and a lock must be a file. Remove it") from error
        raise WriteError(f"{path}: cannot be written ({error.strerror}). Choose another folder with --out") from error


def _write_pid(handle: int, path: Path) -> None:
    """Record the process id for the message that a second process shows."""
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
    except OSError as error:
        raise WriteError(
            f"{path}: cannot be written ({error.strerror}). Free space or choose another folder"
        ) from error


def _remove_half_written(path: Path) -> None:
    """Remove the temporary files of a killed process; the names are those of asapool.files.atomic."""
    for file in path.iterdir():
        if HALF_WRITTEN.fullmatch(file.name) and file.is_file():
            remove(file)
