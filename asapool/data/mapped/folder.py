"""A finished .graphs folder: one .npy file per array, and meta.json, which is written last and describes all of them.

    ptr, eptr (G+1,)   first node and first edge of each graph          y, places, descriptors (G, …)   as in a GraphSet
    start (N,)         first edge of each node, within its graph        local (E,)           neighbour, within its graph
    x, edge_attr, weight   rows, stored as in coding.py                 ids, source_text     UTF-8 bytes, with a pointer

When the folder is opened, the sizes of the files and samples of their bytes are compared with meta.json; before every
batch, their sizes and modification times are checked again.
"""

from __future__ import annotations

import json
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data.csr import Floats, Ints
from asapool.data.graphset import GraphSet
from asapool.data.mapped.arrays import MappedSelection
from asapool.data.mapped.coding import KINDS, unpack
from asapool.data.reading import Log, Numbered, Reading, ReadOptions, Wanted, all_pieces, apply_recipe
from asapool.data.targets import Target
from asapool.errors import DataError

FORMAT, VERSION, META = "asapool-graphs", 1, "meta.json"
SAMPLES, SAMPLE = 64, 4096  # number and size in bytes of the blocks of each file that are compared on opening


class Stored:
    """An open folder."""

    def __init__(self, path: Path, fingerprint: str | None = None, described: str = META) -> None:
        self.path = path.resolve()
        self.meta = self._read_meta(described)
        if fingerprint is not None and self.meta["fingerprint"] != fingerprint:
            raise self._changed()
        self.files: dict[str, dict[str, Any]] = self.meta["files"]
        self.rows_of: dict[str, dict[str, Any]] = self.meta["rows"]
        self.widths = {name: int(how["width"]) for name, how in self.rows_of.items()}
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._tables = {
            name: self.array(f"{name}_table") for name, how in self.rows_of.items() if how["kind"] == "codes"
        }
        self.times = {name: self._stat(name) for name in self.files}

    def __reduce__(self) -> tuple[Any, ...]:
        return Stored, (self.path, self.meta["fingerprint"])

    @cached_property
    def ptr(self) -> Ints:
        """(G+1,) first node of each graph."""
        return self.array("ptr")

    @cached_property
    def eptr(self) -> Ints:
        """(G+1,) first edge of each graph."""
        return self.array("eptr")

    def array(self, name: str) -> npt.NDArray[Any]:
        """An array of the folder, memory-mapped."""
        if name not in self._arrays:
            try:
                mapped = np.load(self._file(name), mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError) as error:
                raise DataError(f"{self._file(name)}: cannot be read ({error}). Convert the source again") from None
            how = self.files[name]
            if list(mapped.shape) != how["shape"] or mapped.dtype.str != how["dtype"]:
                raise self._changed()
            self._arrays[name] = np.asarray(mapped).view(np.ndarray)
        return self._arrays[name]

    def rows(self, name: str, at: Ints) -> Floats:
        """Rows of x, edge_attr or weight, decoded, (n, width)."""
        kind, width = self.rows_of[name]["kind"], self.widths[name]
        return unpack(kind, self.array(name).take(at, axis=0), self._tables.get(name), width)

    def check_unchanged(self) -> None:
        """Raise an error if a file was changed or truncated since the folder was opened."""
        if any(self._stat(name) != before for name, before in self.times.items()):
            raise self._changed()

    def check_samples(self) -> None:
        """Compare sizes and samples of all files with meta.json."""
        for name, how in self.files.items():
            size = self._stat(name)[0]
            if size != how["bytes"]:
                raise DataError(
                    f"{self._file(name)}: expected {how['bytes']:,} bytes, got {size:,}: it was truncated or changed. "
                    "Convert the source again"
                )
            if sample(self._file(name)) != how["sample"]:
                raise self._changed()

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.npy"

    def _stat(self, name: str) -> tuple[int, int]:
        try:
            info = self._file(name).stat()
        except OSError as error:
            raise DataError(
                f"{self._file(name)}: cannot be read ({error.strerror}). Convert the source again"
            ) from None
        return info.st_size, info.st_mtime_ns

    def _changed(self) -> DataError:
        return DataError(
            f"{self.path}: its files were changed after they were written, or while they were in use. "
            "Convert the source again, and leave the folder unchanged"
        )

    def _read_meta(self, described: str) -> dict[str, Any]:
        file = self.path / described
        if not file.is_file():
            raise DataError(
                f"{self.path}: has no {META}, so the conversion was not finished. Repeat `asapool data convert`, which "
                "continues where it was stopped"
            )
        try:
            meta: dict[str, Any] = json.loads(file.read_text())
            known = meta.get("format") == FORMAT
        except (OSError, ValueError, AttributeError) as error:
            raise DataError(f"{file}: cannot be read ({error}). Convert the source again") from None
        if not known or meta.get("version") != VERSION:
            raise DataError(
                f"{file}: not a folder of graphs that this version of asapool wrote. Convert the source again"
            )
        needed = ("files", "rows", "fingerprint", "name", "recipe", "target", "class_names", "feature_names", "named")
        if not all(key in meta for key in needed) or any(how["kind"] not in KINDS for how in meta["rows"].values()):
            raise DataError(f"{file}: is incomplete. Convert the source again")
        return meta


def sample(file: Path) -> int:
    """A checksum of blocks spread evenly over a file; of a small file, all of it."""
    size, crc = file.stat().st_size, 0
    with file.open("rb") as stream:
        for k in range(SAMPLES):
            stream.seek(max(0, (size - SAMPLE) * k // (SAMPLES - 1)))
            crc = zlib.crc32(stream.read(SAMPLE), crc)
            if size <= SAMPLE:
                break
    return crc


def open_map(path: Path, described: str = META) -> GraphSet:
    """The set in a folder, described by the file `described`; its graphs stay on disk until they are used."""
    stored = Stored(path, described=described)
    stored.check_samples()
    meta = stored.meta
    selection = MappedSelection(stored)
    graphs = GraphSet.trusted(
        **selection.fields(), mapped=selection, y=stored.array("y"), places=stored.array("places"), name=meta["name"],
        recipe=meta["recipe"], target=Target.from_dict(meta["target"]), class_names=tuple(meta["class_names"]),
        feature_names=tuple(meta["feature_names"]), named=bool(meta["named"]),
        descriptors=stored.array("descriptors") if "descriptors" in stored.files else None,
    )  # fmt: skip
    if meta["fingerprint"]:
        graphs.__dict__["fingerprint"] = meta["fingerprint"]
    return graphs


def stream_map(path: Path, options: ReadOptions, chunk: int, wanted: Wanted = all_pieces) -> Numbered:
    """Read the wanted pieces, of chunk graphs each."""
    graphs = apply_recipe(open_map(path), options)
    for number, start in enumerate(range(0, len(graphs), chunk)):
        if wanted(number):
            yield number, Log().reading(graphs.subset(slice(start, start + chunk)))


def read_map(path: Path, options: ReadOptions) -> Reading:
    """Read a folder that `asapool data convert` wrote."""
    return Log().reading(apply_recipe(open_map(path), options))
