"""Finds TU data sets by name: in the caller's folders, in the cache, or downloaded into it. Locates the cache."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from os.path import isfile
from pathlib import Path

from asapool.data.graphset import GraphSet
from asapool.data.tu_names import TU_NAMES
from asapool.errors import DataError


def cache_folder() -> Path:
    """The folder of the cache; it may not exist yet.

    >>> cache_folder().is_absolute()
    True
    """
    folder = os.environ.get("ASAPOOL_CACHE")
    if folder:
        return Path(folder).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "asapool"


def cached(name: str, make: Callable[[], GraphSet]) -> GraphSet:
    """The set cached under this name, or a new one, which is cached if the folder is writable."""
    path = cache_folder() / f"{name}.npz"
    with suppress(DataError, OSError):  # absent or damaged: make it again
        return GraphSet.load(path)
    graphs = make()
    with suppress(DataError, OSError):  # in a read-only home the set is made each time
        path.parent.mkdir(parents=True, exist_ok=True)
        graphs.save(path)
    return graphs


def find_tu(name: str, data_root: str | Path | None = None) -> Path | None:
    """The folder or zip of a TU data set: under data_root, else $ASAPOOL_DATA, else the cache, else downloaded.

    None if it is not on this machine and TU_NAMES does not list it: such a name may be a mistyped SMILES of a
    confidential structure, and is not sent to the server.
    """
    path = local_tu(name, data_root)
    if path is not None or name not in TU_NAMES:
        return path
    return _fetch(name, list(_roots(data_root)))


def local_tu(name: str, data_root: str | Path | None = None) -> Path | None:
    """As find_tu, without the network: None if the files are not on this machine."""
    for root in _roots(data_root):
        for place in (root / f"{name}.zip", root / name, root / name / "raw", root):
            if place.suffix == ".zip" and isfile(place):
                return place
            if isfile(place / f"{name}_A.txt"):
                return place
    return None


def _roots(data_root: str | Path | None) -> Iterator[Path]:
    for root in (data_root, os.environ.get("ASAPOOL_DATA"), cache_folder() / "tu"):
        if root:
            yield Path(root).expanduser()


def _fetch(name: str, roots: list[Path]) -> Path:
    """Download with PyG's data set class into a temporary folder, which is renamed when it is complete."""
    places = ", ".join(str(root) for root in roots)
    advice = "Check the name and the network, or give the folder with --data-root or ASAPOOL_DATA"
    target = roots[-1] / name
    try:
        roots[-1].mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=roots[-1]))
    except OSError as error:
        raise DataError(
            f"{name}: not in {places}, and a download cannot be stored there ({error.strerror}). {advice}"
        ) from None
    try:
        _download(name, folder)
        if not (folder / name / "raw" / f"{name}_A.txt").is_file():
            raise DataError(f"{name}: the download contains no {name}_A.txt. {advice}")
        shutil.rmtree(target, ignore_errors=True)
        os.replace(folder / name, target)
    except DataError:
        raise
    except Exception as error:  # the network layers raise many kinds
        reason = str(error).split("\n")[0] or type(error).__name__
        raise DataError(f"{name}: not in {places}, and it could not be downloaded ({reason}). {advice}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target / "raw"


def _download(name: str, folder: Path) -> None:
    from torch_geometric.datasets import TUDataset

    # not TUDataset(...): that would also parse the text, which asapool does a dozen times faster
    fetcher = object.__new__(TUDataset)
    fetcher.root, fetcher.name, fetcher.cleaned = str(folder), name, False
    fetcher.download()
