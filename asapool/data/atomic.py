"""Files appear whole or not at all: written under a temporary name beside the target, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO, cast

from asapool.errors import DataError


@contextmanager
def writing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing bytes; it takes its name only when the block ends well.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with writing(f"{folder}/a.txt") as out:
    ...         _ = out.write(b"whole")
    ...     [p.name for p in pathlib.Path(folder).iterdir()]
    ['a.txt']
    """
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise DataError(
            f"{target}: cannot be written ({error.strerror}). Choose a folder that exists and is yours"
        ) from None
    try:
        with os.fdopen(handle, "wb") as out:
            yield cast(BinaryIO, out)
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes private files; a data file is an ordinary one
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise DataError(
                f"{target}: cannot be written ({error.strerror or error}). Free space or choose another place"
            ) from None
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
