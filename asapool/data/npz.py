"""A GraphSet as an .npz file, and the hash that identifies a set.

The file is an ordinary npz: one .npy member per array, and `meta.npy`, the bytes of a JSON text with everything else.
Nothing in it is pickled, and the fingerprint inside is checked when the file is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.data.archive import check_sizes
from asapool.data.targets import Target
from asapool.errors import DataError
from asapool.files import writing

if TYPE_CHECKING:
    from asapool.data.graphset import GraphSet

VERSION = 1
ARRAYS = ("x", "ptr", "rowptr", "col", "y", "weight", "truth", "edge_attr", "descriptors")
NAMES = ("class_names", "feature_names", "ids", "source_text")


def digest(graphs: GraphSet) -> str:
    """Hash the arrays, byte for byte in little-endian order, and the names: 32 hexadecimal digits."""
    sha = hashlib.sha256()
    for name in ARRAYS:
        array = getattr(graphs, name)
        if array is not None:
            sha.update(f"{name}{array.shape}{array.dtype.kind}{array.itemsize}".encode())
            for block in array.blocks() if graphs.mapped is not None and hasattr(array, "blocks") else (array,):
                sha.update(np.ascontiguousarray(block, array.dtype.newbyteorder("<")).data)
    for piece in _json_pieces([getattr(graphs, name) for name in NAMES]):
        sha.update(piece.encode())
    if graphs.target.kind != "classification":
        sha.update(json.dumps(graphs.target.to_dict()).encode())
    return sha.hexdigest()[:32]


def _json_pieces(lists: Sequence[Sequence[str] | None]) -> Iterator[str]:
    """The text that json.dumps gives for lists of texts, piece by piece.

    >>> "".join(_json_pieces([["a", "b"], None, []]))
    '[["a", "b"], null, []]'
    """
    for k, texts in enumerate(lists):
        yield ", " if k else "["
        if texts is None:
            yield "null"
            continue
        yield "["
        for start in range(0, len(texts), 10_000):
            yield (", " if start else "") + json.dumps(list(texts[start : start + 10_000]))[1:-1]
        yield "]"
    yield "]"


def save(graphs: GraphSet, path: str | PathLike[str]) -> None:
    """Write graphs to path; the same graphs give the same bytes."""
    meta = {
        "format": "asapool-graphset", "version": VERSION, "name": graphs.name, "recipe": graphs.recipe,
        "fingerprint": graphs.fingerprint, **{name: _plain(getattr(graphs, name)) for name in NAMES},
    }  # fmt: skip
    if graphs.target != Target(classes=graphs.class_names):
        meta["target"] = graphs.target.to_dict()
    members: dict[str, npt.NDArray[Any]] = {"meta": np.frombuffer(json.dumps(meta).encode(), np.uint8)}
    members |= {name: np.asarray(getattr(graphs, name)) for name in ARRAYS if getattr(graphs, name) is not None}
    # level 1 compresses one-hot columns a hundredfold and is as fast as the disk
    with writing(path) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in members.items():
            # a member opened by name has no timestamp, so the same graphs give the same bytes
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _plain(texts: Sequence[str] | None) -> list[str] | None:
    return None if texts is None else list(texts)


def read(path: str | PathLike[str], make: Callable[..., GraphSet]) -> GraphSet:
    """Read what save wrote and pass its fields to make; a file that was changed or truncated is refused."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        members = _members(path)
        meta = json.loads(bytes(members.pop("meta")))
        if not isinstance(meta, dict) or meta.get("format") != "asapool-graphset":
            raise DataError(f"{path}: not a set of graphs that asapool saved")
        if meta.get("version") != VERSION:
            raise DataError(f"{path}: version {meta.get('version')} of the format, expected {VERSION}. Update asapool")
        names = {name: None if meta[name] is None else tuple(map(str, meta[name])) for name in NAMES}
        target = Target.from_dict(meta["target"]) if "target" in meta else None
        graphs = make(name=str(meta["name"]), recipe=dict(meta["recipe"]), target=target, **names, **members)
        if graphs.fingerprint != meta["fingerprint"]:
            raise DataError(f"{path}: the content does not match its fingerprint. Make the file again")
    except DataError:
        raise
    except (Exception, MemoryError) as error:  # for a damaged file zipfile, zlib and numpy raise many kinds
        raise DataError(f"{path}: not a set of graphs that asapool saved ({error}). Make the file again") from None
    return graphs


def _members(path: Path) -> dict[str, npt.NDArray[Any]]:
    with zipfile.ZipFile(path) as archive:
        check_sizes(archive, path, ratio=None)
        members = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name not in (*ARRAYS, "meta"):
                raise DataError(f"{path}: unexpected part {info.filename!r}; not a set of graphs that asapool saved")
            members[name] = np.lib.format.read_array(io.BytesIO(archive.read(info)), allow_pickle=False)
        return members
