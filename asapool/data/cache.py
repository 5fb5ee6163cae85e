"""A folder of the user's for what is costly to make or fetch again: $ASAPOOL_CACHE, else ~/.cache/asapool."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from asapool.data.graphset import GraphSet
from asapool.errors import DataError


def cache_folder() -> Path:
    """Where the cache lies; it may not exist yet.

    >>> cache_folder().is_absolute()
    True
    """
    own = os.environ.get("ASAPOOL_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "asapool"


def remembered(name: str, make: Callable[[], GraphSet]) -> GraphSet:
    """The set kept under this name, or a new one, which is kept when the folder can be written."""
    path = cache_folder() / f"{name}.npz"
    with suppress(DataError, OSError):  # absent, or damaged: make it again
        return GraphSet.load(path)
    graphs = make()
    with suppress(DataError, OSError):  # a read-only home costs time, not the result
        path.parent.mkdir(parents=True, exist_ok=True)
        graphs.save(path)
    return graphs
