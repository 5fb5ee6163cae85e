"""Validates a GraphSet: shapes, ranges, order, and no edge between two graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.data.csr import Ints, owners
from asapool.data.targets import Target, empty_values
from asapool.errors import DataError

if TYPE_CHECKING:
    from asapool.data.graphset import GraphSet


def check(graphs: GraphSet) -> None:
    """Convert the fields of a new set to their types, or raise a DataError that says what is wrong with them."""

    def put(name: str, value: Any) -> None:
        object.__setattr__(graphs, name, value)

    for name, dtype, dims in (
        ("x", np.float32, 2), ("ptr", np.int64, 1), ("rowptr", np.int64, 1), ("col", np.int64, 1),
        ("weight", np.float32, 1), ("places", np.int64, 1), ("truth", np.int8, 1),
        ("edge_attr", np.float32, 2), ("descriptors", np.float32, 2),
    ):  # fmt: skip
        value = getattr(graphs, name)
        if value is not None:
            put(name, _array(name, value, dtype, dims))
    _check_pointers(graphs)
    G, N, E = len(graphs.ptr) - 1, len(graphs.x), len(graphs.col)
    target = graphs.target if graphs.target is not None else Target()
    if target.kind == "classification":  # class_names take precedence, so that dataclasses.replace can change them
        target = replace(target, classes=tuple(graphs.class_names))
    put("target", target)
    y = empty_values(target, G) if graphs.y is None else graphs.y
    put("y", _array("y", y, *((np.int64, 1) if target.kind == "classification" else (np.float64, 2))))
    if getattr(graphs, "places", None) is None:
        put("places", _array("places", np.arange(G), np.int64, 1))
    put("named", graphs.named and bool(graphs.ids))
    put("feature_names", tuple(graphs.feature_names) or tuple(f"x{k}" for k in range(graphs.x.shape[1])))
    put("ids", tuple(graphs.ids) or tuple(map(str, range(G))))
    put("class_names", tuple(graphs.class_names))
    if graphs.source_text is not None:
        put("source_text", tuple(graphs.source_text))
    for name, actual, expected in (
        ("y", len(graphs.y), G), ("ids", len(graphs.ids), G), ("places", len(graphs.places), G),
        ("feature_names", len(graphs.feature_names), graphs.x.shape[1]),
        ("source_text", G if graphs.source_text is None else len(graphs.source_text), G),
        ("descriptors", G if graphs.descriptors is None else len(graphs.descriptors), G),
        ("truth", N if graphs.truth is None else len(graphs.truth), N),
        ("weight", E if graphs.weight is None else len(graphs.weight), E),
        ("edge_attr", E if graphs.edge_attr is None else len(graphs.edge_attr), E),
    ):  # fmt: skip
        if actual != expected:
            raise DataError(f"{graphs.name}: {name} has {actual} entries, expected {expected}")
    _check_values(graphs)
    _check_text(graphs)


def _check_tasks(graphs: GraphSet) -> None:
    if graphs.y.shape[1] != graphs.target.tasks:
        raise DataError(f"{graphs.name}: y has {graphs.y.shape[1]} columns for {graphs.target.tasks} targets")
    if bool(np.isinf(graphs.y).any()):
        raise DataError(f"{graphs.name}: y contains infinite values. Replace or drop them")
    if graphs.target.kind == "multilabel" and not bool(np.isin(graphs.y[~np.isnan(graphs.y)], (0, 1)).all()):
        raise DataError(f"{graphs.name}: y of a multilabel target must be 0, 1 or NaN")
    if graphs.class_names:
        raise DataError(f"{graphs.name}: class_names belong to classification, and the target is {graphs.target.kind}")


def is_text(text: str) -> bool:
    """Whether text can be written to a file: an unpaired surrogate cannot.

    >>> is_text("é"), is_text("\\ud800")
    (True, False)
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _check_text(graphs: GraphSet) -> None:
    for field in ("ids", "class_names", "feature_names", "source_text"):
        texts = getattr(graphs, field)
        if texts and not is_text("".join(map(str, texts))):
            k, bad = next((k, text) for k, text in enumerate(texts) if not is_text(str(text)))
            raise DataError(
                f"{graphs.name}: {field}[{k}] is {bad!r}, and an unpaired surrogate is not text. Correct it"
            )
    if not is_text(graphs.name):
        raise DataError(f"the name {graphs.name!r} contains bytes that are not UTF-8 text. Rename the file")


def _array(name: str, value: Any, dtype: type, dims: int) -> npt.NDArray[Any]:
    given = np.asarray(value)
    whole = np.issubdtype(dtype, np.integer)
    if given.ndim != dims or (given.size and given.dtype.kind not in ("iub" if whole else "iubf")):
        kind = "whole numbers" if whole else "numbers"
        raise DataError(f"{name} must be {dims}-dimensional {kind}, got {given.dtype} of shape {given.shape}")
    array: npt.NDArray[Any] = np.ascontiguousarray(given, dtype=dtype)
    if array is value and array.flags.writeable:  # a view: making the caller's own array read-only would surprise them
        array = array.view()
    array.flags.writeable = False
    return array


def _check_pointers(graphs: GraphSet) -> None:
    for name, ptr, last, noun in (
        ("ptr", graphs.ptr, len(graphs.x), "nodes"), ("rowptr", graphs.rowptr, len(graphs.col), "edges"),
    ):  # fmt: skip
        if not len(ptr) or ptr[0] != 0 or ptr[-1] != last or bool((np.diff(ptr) < 0).any()):
            raise DataError(f"{graphs.name}: {name} must rise from 0 to {last}, the number of {noun}")
    if len(graphs.rowptr) != len(graphs.x) + 1:
        raise DataError(f"{graphs.name}: rowptr has {len(graphs.rowptr)} entries, expected {len(graphs.x) + 1}")
    if bool((np.diff(graphs.ptr) == 0).any()):
        empty = int(np.flatnonzero(np.diff(graphs.ptr) == 0)[0])
        raise DataError(f"{graphs.name}: graph {empty} has no nodes. Leave it out: an empty graph has no class")


def _check_values(graphs: GraphSet) -> None:
    N, classes = len(graphs.x), len(graphs.class_names)
    if graphs.target.kind != "classification":
        _check_tasks(graphs)
    elif graphs.y.size and (graphs.y.min() < -1 or graphs.y.max() >= classes):
        bad = graphs.y.max() if graphs.y.max() >= classes else graphs.y.min()
        raise DataError(f"{graphs.name}: class number {bad}, expected -1 (no label) to {classes - 1} (class_names)")
    if graphs.truth is not None and not bool(((graphs.truth == 0) | (graphs.truth == 1)).all()):
        raise DataError(f"{graphs.name}: truth must be 0 or 1 for every node")
    for name, values in (("x", graphs.x), ("weight", graphs.weight), ("edge_attr", graphs.edge_attr)):
        if values is not None and not bool(np.isfinite(values).all()):
            raise DataError(f"{graphs.name}: {name} contains NaN or infinity. Replace or drop those values")
    if graphs.descriptors is not None and bool(np.isinf(graphs.descriptors).any()):
        raise DataError(f"{graphs.name}: descriptors contains infinity. Replace those values, or set them to NaN")
    col: Ints = graphs.col
    if col.size and (col.min() < 0 or col.max() >= N):
        bad = col.max() if col.max() >= N else col.min()
        raise DataError(f"{graphs.name}: an edge names node {bad}, but there are {N} nodes")
    row = owners(graphs.rowptr)
    if bool(((col[1:] <= col[:-1]) & (row[1:] == row[:-1])).any()):
        raise DataError(f"{graphs.name}: the columns of a row must ascend, each once. pack_edges sorts and sums them")
    graph = owners(graphs.ptr)
    if col.size and not np.array_equal(graph[row], graph[col]):
        e = int(np.flatnonzero(graph[row] != graph[col])[0])
        raise DataError(
            f"{graphs.name}: edge {col[e]} -> {row[e]} joins graph {graph[col[e]]} to graph {graph[row[e]]}; "
            "an edge must stay in its graph"
        )
