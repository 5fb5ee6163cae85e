"""Vectors as files: Parquet, CSV or npz by the ending of the name; one row per graph or pooled node, id first."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet
from asapool.errors import ConfigError, MissingExtraError
from asapool.files import csv_writer, writing
from asapool.models import GraphModel
from asapool.training.embeddings import embed, embed_nodes


class Vectors(NamedTuple):
    """Some rows of a table of vectors.

    Args:
        id: of the graph, (R,).
        node: at the centre of the cluster, for pooled nodes; None for whole graphs.
        x: the vectors, (R, W).
    """

    id: tuple[str, ...]
    node: npt.NDArray[np.int64] | None
    x: npt.NDArray[np.float32]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return ["id", *(["node"] if self.node is not None else []), *(f"v{k}" for k in range(self.x.shape[1]))]


def vectors_of(model: GraphModel, graphs: GraphSet, level: int | None = None) -> Vectors:
    """The vectors of a set: one row per graph, or with `level` one per pooled node."""
    if level is None:
        return Vectors(graphs.ids, None, embed(model, graphs))
    graph, node, x = embed_nodes(model, graphs, level)
    return Vectors(tuple(graphs.ids[g] for g in graph.tolist()), node, x)


def save_vectors(path: str | PathLike[str], parts: Iterable[Vectors]) -> tuple[int, int]:
    """Write vectors to a file, whole or not at all.

    Args:
        path: Name that ends in .parquet, .npz or .csv.
        parts: Rows, set by set.

    Returns:
        Rows and width of the table.
    """
    write = vector_writer(path)
    size = [0, 0]

    def counted() -> Iterator[Vectors]:
        for part in parts:
            size[:] = size[0] + len(part.x), part.x.shape[1]
            yield part

    with writing(path, durable=True) as out:
        write(out, counted())
    return size[0], size[1]


Writer = Callable[[IO[bytes], Iterable[Vectors]], None]


def vector_writer(path: str | PathLike[str]) -> Writer:
    """The writer for the ending of a file name; any other ending is refused before anything is computed.

    >>> vector_writer("v.txt")
    Traceback (most recent call last):
    asapool.errors.ConfigError: v.txt: expected a name that ends in .parquet, .npz or .csv
    """
    try:
        return WRITERS[Path(path).suffix.lower()]
    except KeyError:
        raise ConfigError(f"{path}: expected a name that ends in {_ENDINGS}") from None


def print_vectors(out: Any, parts: Iterable[Vectors]) -> None:
    """Write the table as CSV to an open stream; numbers have the digits that float32 needs."""
    table, begun = csv_writer(out), False
    for part in parts:
        if not begun:
            table.writerow(part.names)
            begun = True
        nodes: Sequence[list[Any]] = [[]] * len(part.id) if part.node is None else [[n] for n in part.node.tolist()]
        for own, node, row in zip(part.id, nodes, part.x, strict=True):
            table.writerow([own, *node, *(f"{v:.9g}" for v in row.tolist())])


def _csv(out: IO[bytes], parts: Iterable[Vectors]) -> None:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    try:
        print_vectors(text, parts)
    finally:
        text.flush()
        text.detach()


def _npz(out: IO[bytes], parts: Iterable[Vectors]) -> None:
    held = list(parts)
    arrays: dict[str, Any] = {"id": np.array([own for part in held for own in part.id])}
    nodes = [part.node for part in held if part.node is not None]
    if nodes:
        arrays["node"] = np.concatenate(nodes)
    np.savez_compressed(out, **arrays, x=np.concatenate([part.x for part in held]))


def _parquet(out: IO[bytes], parts: Iterable[Vectors]) -> None:
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise MissingExtraError("pyarrow", "chem") from None
    table = None
    try:
        for part in parts:
            columns = [pa.array(part.id, pa.string()), *([] if part.node is None else [pa.array(part.node)])]
            made = pa.table([*columns, *(pa.array(column) for column in part.x.T)], names=part.names)
            table = ParquetWriter(out, made.schema) if table is None else table
            table.write_table(made)
    finally:
        if table is not None:
            table.close()


WRITERS: dict[str, Writer] = {".parquet": _parquet, ".npz": _npz, ".csv": _csv}
_ENDINGS = " or ".join([", ".join([*WRITERS][:-1]), [*WRITERS][-1]])
