"""The table of readers: which files can be read, by which function, and a phrase that describes each format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from asapool.data.reading import Numbered, Reading, ReadOptions, Wanted

Read = Callable[[Path, ReadOptions], Reading]
ReadPieces = Callable[[Path, ReadOptions, int, Wanted], Numbered]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A file format: the suffixes of its files and the functions that read it."""

    name: str
    suffixes: tuple[str, ...]  # () = folders
    sentence: str  # describes the source, for messages and `asapool data list`
    module: str
    whole: str  # function of the module: (path, options) -> Reading
    pieces: str | None = None  # (path, options, chunk, wanted) -> numbered Readings of up to chunk graphs each
    table: bool = False  # has named columns

    def read(self, path: Path, options: ReadOptions) -> Reading:
        """Read a whole file or folder."""
        return cast(Read, getattr(import_module(self.module), self.whole))(path, options)

    def read_pieces(self, path: Path, options: ReadOptions, chunk: int, wanted: Wanted) -> Numbered:
        """Read the wanted pieces, of up to chunk graphs each."""
        assert self.pieces is not None
        return cast(ReadPieces, getattr(import_module(self.module), self.pieces))(path, options, chunk, wanted)


READERS = (
    Reader(
        name="TU", suffixes=(".zip",), sentence="a TU folder, zip or name", module="asapool.data.tu", whole="read_tu"
    ),
    Reader(
        name="molecules", table=True,
        suffixes=(".csv", ".tsv", ".parquet", ".smi", ".sdf", ".csv.gz", ".tsv.gz", ".smi.gz", ".sdf.gz"),
        sentence="a .csv, .tsv, .parquet, .smi or .sdf with molecules (also .gz)",
        module="asapool.data.molecule_table", whole="read_molecules", pieces="stream_molecules",
    ),
    Reader(
        name="JSON lines", suffixes=(".jsonl", ".ndjson"), sentence="a .jsonl with one graph per line",
        module="asapool.data.jsonlines", whole="read_jsonl", pieces="stream_jsonl",
    ),
    Reader(
        name="GraphML", suffixes=(), sentence="a folder of GraphML or GEXF files",
        module="asapool.data.graph_files", whole="read_graph_folder",
    ),
    Reader(
        name="npz", suffixes=(".npz",), sentence="an .npz that asapool saved", module="asapool.data.loading",
        whole="read_saved",
    ),
    Reader(
        name="mapped", suffixes=(".graphs",), sentence="a .graphs folder that asapool data convert wrote",
        module="asapool.data.mapped.folder", whole="read_map", pieces="stream_map",
    ),
)  # fmt: skip


def reader_of(path: Path) -> Reader | None:
    """The reader for a file name, or None."""
    name = path.name.lower()
    return next((r for r in READERS for suffix in r.suffixes if name.endswith(suffix)), None)


def formats() -> str:
    """All formats in one phrase, for messages."""
    *most, last = (reader.sentence for reader in READERS)
    return f"{', '.join(most)}, or {last}"
