"""Caches the machine code of a loop on disk, safe for several processes that compile at the same time.

numba numbers the files of a loop (loop.1.nbc, loop.2.nbc) and lists them in an index. Two processes that compile the
loop for different arguments at the same time use the same number, and then one of them loads the other's code. Here the
name of a file is derived from the argument types, so no coordination is needed, and a checksum protects its content.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core.serialize import dumps


class CodeFiles:
    """The files of one loop, one for each combination of argument types.

    Args:
        folder: the folder of the files.
        base: prefix of their names.
        stamp: what the code depends on besides the arguments; files of another stamp are out of date.
    """

    def __init__(self, folder: str | Path, base: str, stamp: object) -> None:
        self.folder, self.base = Path(folder), base
        self.stamp = _digest(repr(stamp).encode())[:12]

    def path(self, key: object) -> Path:
        """The file for these argument types."""
        return self.folder / f"{self.base}.{self.stamp}.{_digest(repr(key).encode())[:20]}.nbc"

    def save(self, key: object, data: object) -> None:
        """Save the code for these argument types, and remove files that are out of date."""
        content = dumps((repr(key), data))
        path = self.path(key)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
        try:
            partial.write_bytes(_digest(content).encode() + content)
            os.replace(partial, path)
        except BaseException:
            with suppress(OSError):
                partial.unlink()
            raise
        for old in (*self.folder.glob(f"{self.base}.*nbc"), *self.folder.glob(f"{self.base}.nbi")):
            if not old.name.startswith(f"{self.base}.{self.stamp}."):
                with suppress(OSError):
                    old.unlink()

    def load(self, key: object) -> Any:
        """The code for these argument types; None if there is none, or its file is damaged."""
        try:
            content = self.path(key).read_bytes()
        except OSError:
            return None
        checksum, content = content[:64], content[64:]
        if checksum != _digest(content).encode():
            return None
        name, data = pickle.loads(content)
        return data if name == repr(key) else None

    def flush(self) -> None:
        """Remove all files of this stamp."""
        for path in self.folder.glob(f"{self.base}.{self.stamp}.*.nbc"):
            path.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
