"""Embeddings of graphs (the input of a network's head) and of pooled nodes, and their files: Parquet, CSV, npz."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from asapool.data import GraphSet
from asapool.errors import ConfigError, MissingExtraError
from asapool.files import csv_writer, writing
from asapool.models import GraphModel, method
from asapool.models.batches import check_extras, cut
from asapool.models.ensemble import EnsembleModel
from asapool.training.predictions import in_pieces

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class NodeVectors(NamedTuple):
    """The pooled nodes of several graphs at one level.

    Args:
        graph: the graph of every pooled node, its number in the set, (K,).
        node: the node of the original graph at the centre of the cluster, counted from 0 within its graph, (K,).
        x: features, (K, F).
    """

    graph: Ints
    node: Ints
    x: Floats


def embed(model: GraphModel, graphs: GraphSet, indices: npt.ArrayLike | None = None) -> Floats:
    """The embedding of every graph (or of those in `indices`), as it enters the head of the network.

    Args:
        model: a network, from asapool.models.build or a checkpoint.
        graphs: with the features that the model was made for.
        indices: numbers of graphs; None = all.

    Returns:
        Embeddings (G, W), rows in the order of the graphs.

    >>> from asapool.data import load
    >>> from asapool.models import ModelConfig, build
    >>> graphs = load("synthetic:cycles?graphs=4")
    >>> embed(build(ModelConfig(hidden=8), graphs.num_features, 2, seed=0), graphs).shape
    (4, 16)
    """
    model.eval()
    check_extras(model, graphs)

    def vectors(piece: Ints) -> Floats:
        batch = cut(model, graphs, piece)
        rows: Floats = model.embed(*batch.inputs, **model.more(batch)).float().numpy()
        return rows

    with torch.inference_mode():
        rows = in_pieces(graphs, indices, vectors)
    if not rows:  # without a graph the width is unknown
        raise ConfigError(f"{graphs.name}: there are no graphs to embed")
    return np.concatenate(rows)


def embed_nodes(model: GraphModel, graphs: GraphSet, level: int, indices: npt.ArrayLike | None = None) -> NodeVectors:
    """The pooled nodes of every graph at a level: the clusters that were kept, with their features.

    Args:
        model: a network that pools by keeping nodes or clusters.
        graphs: with the features that the model was made for.
        level: 1 = after the first pooling, up to the number of poolings.
        indices: numbers of graphs; None = all.

    Returns:
        One row per kept cluster, graph by graph.
    """
    steps = _steps(model)
    model.eval()
    check_extras(model, graphs)

    def nodes(piece: Ints) -> NodeVectors:
        batch = cut(model, graphs, piece)
        return _level_of(steps(batch.x, model.pack(*batch.inputs, batch.edge_attr)), batch, level, piece)

    with torch.inference_mode():
        parts = in_pieces(graphs, indices, nodes)
    return NodeVectors(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _steps(model: GraphModel) -> Any:
    """The function that yields the pooling steps of a batch; ConfigError if the method has none."""
    if isinstance(model, EnsembleModel):
        raise ConfigError(
            "the members of an ensemble pool each graph differently. Leave out --level to get one vector per graph, or "
            "use a single model"
        )
    why = method(model.config.method).no_levels
    steps = getattr(getattr(model, "encoder", None), "steps", None)
    if why is not None or steps is None:
        why = why or f"The method {model.config.method} does not report its levels"
        raise ConfigError(f"{why}, so it has no pooled nodes. Leave out --level to get one vector per graph")
    return steps


def _level_of(steps: Any, batch: Any, level: int, piece: Ints) -> NodeVectors:
    origin = torch.arange(batch.x.size(0))  # original node of every node of the level before
    number = 0
    for number, step in enumerate(steps, start=1):
        origin = origin[step.perm]
        if number == level:
            batch_of = np.repeat(np.arange(len(piece)), step.ptr.diff().numpy())
            node = origin.numpy() - batch.ptr.numpy()[batch_of]
            return NodeVectors(piece[batch_of], node, step.x.float().numpy())
    raise ConfigError(f"level must lie in 1 to {number}, the poolings of this model, got {level}")


class Vectors(NamedTuple):
    """Rows of a table of vectors.

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
    """Write vectors to a file, atomically.

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
    """The writer for the suffix of a file; an unknown suffix is refused before anything is computed.

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
    table, has_header = csv_writer(out), False
    for part in parts:
        if not has_header:
            table.writerow(part.names)
            has_header = True
        nodes: Sequence[list[Any]] = [[]] * len(part.id) if part.node is None else [[n] for n in part.node.tolist()]
        for graph_id, node, row in zip(part.id, nodes, part.x, strict=True):
            table.writerow([graph_id, *node, *(f"{v:.9g}" for v in row.tolist())])


def _csv(out: IO[bytes], parts: Iterable[Vectors]) -> None:
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    try:
        print_vectors(text, parts)
    finally:
        text.flush()
        text.detach()


def _npz(out: IO[bytes], parts: Iterable[Vectors]) -> None:
    all_parts = list(parts)
    arrays: dict[str, Any] = {"id": np.array([graph_id for part in all_parts for graph_id in part.id])}
    nodes = [part.node for part in all_parts if part.node is not None]
    if nodes:
        arrays["node"] = np.concatenate(nodes)
    np.savez_compressed(out, **arrays, x=np.concatenate([part.x for part in all_parts]))


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
            rows = pa.table([*columns, *(pa.array(column) for column in part.x.T)], names=part.names)
            table = ParquetWriter(out, rows.schema) if table is None else table
            table.write_table(rows)
    finally:
        if table is not None:
            table.close()


WRITERS: dict[str, Writer] = {".parquet": _parquet, ".npz": _npz, ".csv": _csv}
_ENDINGS = " or ".join([", ".join([*WRITERS][:-1]), [*WRITERS][-1]])
