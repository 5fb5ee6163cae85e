"""One door for every source: load gives a whole set, stream gives it in pieces that fit the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from asapool.data.classes import Labels
from asapool.data.graphset import GraphSet
from asapool.data.options import Features, ReadOptions, Skipped
from asapool.data.recipe import adopt
from asapool.errors import ConfigError, DataError

TABLES = (".csv", ".tsv", ".parquet", ".smi")
LINES = (".jsonl", ".ndjson")
FORMATS = (
    "a TU folder, zip or name, a .csv, .tsv, .parquet or .smi with SMILES, .jsonl, a folder of GraphML or GEXF, or .npz"
)


def load(
    source: Any,
    *,
    features: Features | None = None,
    labels: Labels | None = None,
    recipe: Mapping[str, Any] | None = None,
    data_root: str | PathLike[str] | None = None,
    smiles: str | None = None,
    target: str | None = None,
    id_column: str | None = None,
    encoding: str = "utf-8",
    skip_invalid: bool = False,
    skipped: list[Skipped] | None = None,
    missing: dict[str, int] | None = None,
    workers: int | None = None,
) -> GraphSet:
    """Read any source into one packed GraphSet.

    source is a path, the name of a TU data set, "nci-alerts", "synthetic:motifs" and its kin, a list of PyG or
    NetworkX objects, or a GraphSet. docs/data.md shows one example per format; asapool.data.options explains every
    setting.

    >>> load("synthetic:cycles?graphs=6")
    GraphSet('synthetic:cycles', graphs=6, nodes=88, edges=170, features=3, classes=2)
    """
    options = ReadOptions(
        features=features, labels=labels, recipe=recipe, data_root=None if data_root is None else fspath(data_root),
        smiles=smiles, target=target, id_column=id_column, encoding=encoding, skip_invalid=skip_invalid,
        skipped=[] if skipped is None else skipped, missing={} if missing is None else missing, workers=workers,
    )  # fmt: skip
    try:
        return _read(source, options)
    except MemoryError:
        raise DataError(f"{source}: does not fit into the memory. Use a part of it, or a larger machine") from None


def stream(
    source: str | PathLike[str],
    *,
    recipe: Mapping[str, Any] | None = None,
    chunk: int = 1000,
    labels: Labels | None = None,
    smiles: str | None = None,
    target: str | None = None,
    id_column: str | None = None,
    encoding: str = "utf-8",
    skip_invalid: bool = False,
    skipped: list[Skipped] | None = None,
    missing: dict[str, int] | None = None,
) -> Iterator[GraphSet]:
    """Read JSON lines or a table of molecules in sets of up to chunk graphs, for files larger than the memory.

    Without a recipe labels are ignored, since the classes are known only when the whole file was read.
    """
    if chunk < 1:
        raise ConfigError(f"chunk must be at least 1, got {chunk}")
    options = ReadOptions(
        recipe=recipe, labels=labels or (None if recipe is not None else "ignored"), smiles=smiles, target=target,
        id_column=id_column, encoding=encoding, skip_invalid=skip_invalid, skipped=[] if skipped is None else skipped,
        missing={} if missing is None else missing, workers=1,
    )  # fmt: skip
    path = Path(source)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    suffix = path.suffix.lower()
    if suffix in LINES:
        from asapool.data.jsonlines import stream_jsonl

        return stream_jsonl(path, options, chunk)
    if suffix in TABLES:
        from asapool.data.molecule_table import stream_molecules

        return stream_molecules(path, options, chunk)
    raise DataError(
        f"{path}: only .jsonl and tables of SMILES can be read in pieces. Use load, or convert the file first"
    )


def class_column(source: str | PathLike[str], graphs: GraphSet) -> str | None:
    """The column of a table that the classes were read from; None where the source is no table of molecules."""
    return graphs.recipe.get("target") if Path(source).suffix.lower() in TABLES else None


def _read(source: Any, options: ReadOptions) -> GraphSet:
    if isinstance(source, GraphSet):
        return adopt(source, options)
    if not isinstance(source, (str, PathLike)):
        return _objects(source, options)
    text = fspath(source)
    if text == "nci-alerts":
        from asapool.data.alerts import load_alerts

        return adopt(load_alerts(), options)
    if text.startswith("synthetic:"):
        from asapool.data.synthetic import make_synthetic

        # paths have no labels, and a set of one graph has one class: nobody asked for more
        return make_synthetic(text, options if options.labels else _with_optional_labels(options))
    path = Path(text).expanduser()
    if path.is_dir():
        return _folder(path, options)
    if path.is_file():
        return _file(path, options)
    if path.suffix or path.name != text:
        raise DataError(f"{text}: there is no such file or folder. Expected {FORMATS}")
    from asapool.data.download import find_tu
    from asapool.data.tu import read_tu

    return read_tu(find_tu(text, options.data_root), options)


def _file(path: Path, options: ReadOptions) -> GraphSet:
    suffix = path.suffix.lower()
    if suffix == ".zip":
        from asapool.data.tu import read_tu

        return read_tu(path, options)
    if suffix in TABLES:
        from asapool.data.molecule_table import read_molecules

        return read_molecules(path, options)
    if suffix in LINES:
        from asapool.data.jsonlines import read_jsonl

        return read_jsonl(path, options)
    if suffix == ".npz":
        return adopt(GraphSet.load(path), options)
    raise DataError(f"{path}: no reader for {suffix or 'a file without a suffix'}. Expected {FORMATS}")


def _folder(path: Path, options: ReadOptions) -> GraphSet:
    from asapool.data.graph_folder import is_graph_folder, read_graph_folder
    from asapool.data.tu import read_tu

    if is_graph_folder(path):
        return read_graph_folder(path, options)
    raw = path / "raw"  # PyG keeps the text files there
    return read_tu(raw if not any(path.glob("*_A.txt")) and raw.is_dir() else path, options)


def _objects(source: Any, options: ReadOptions) -> GraphSet:
    """A list of PyG or NetworkX graphs."""
    if not isinstance(source, Iterable):
        raise DataError(
            f"a {type(source).__name__} is no source of graphs. Expected {FORMATS}, or a list of graph objects"
        )
    graphs = list(source)
    if not graphs:
        raise DataError("the list holds no graphs")
    if hasattr(graphs[0], "edge_index"):
        from asapool.data.pyg_objects import from_pyg

        return from_pyg(graphs, options=options)
    from asapool.data.networkx_objects import from_networkx

    return from_networkx(graphs, options=options)


def _with_optional_labels(options: ReadOptions) -> ReadOptions:
    from dataclasses import replace

    return replace(options, labels="optional")
