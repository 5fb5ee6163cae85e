"""Node features: labels, attributes or degrees become the columns of x; a recipe gives new data the same columns.

A recipe is plain JSON data:
    {"version": 1, "kind": "graph", "features": "labels", "labels": [["1", "2", "3"]], "classes": ["-1", "1"]}
"labels" has one list of known labels per label column, "attributes" the names of the attribute columns,
"max_degree" the degree of the last column, which all higher degrees share, "classes" the class names in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data.csr import Floats, Ints
from asapool.errors import DataError, choose

Recipe = dict[str, Any]
VERSION = 1
CHOICES = ("auto", "labels", "attributes", "both", "degree", "constant")
MAX_LABELS = 4096  # a column with more distinct values than this does not hold labels
MAX_DEGREE = 64  # this degree and all higher ones share one column


@dataclass(frozen=True)
class Nodes:
    """The node data of a source, before it becomes columns."""

    degree: Ints  # (N,)
    labels: Sequence[npt.NDArray[Any]] = ()  # one array (N,) per label column, whole numbers or text
    attributes: Floats | None = None  # (N, A)
    attribute_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    noun: str = "node"  # edges are described in the same way


def resolve(features: str | None, nodes: Nodes, where: str) -> str:
    """The features to use; "auto" means labels if there are any, else attributes, else degrees."""
    choice = choose("features", features or "auto", CHOICES)
    if choice == "auto":
        return "labels" if nodes.labels else "attributes" if nodes.attributes is not None else "degree"
    absent = {"labels": not nodes.labels, "attributes": nodes.attributes is None}
    for kind, missing in absent.items():
        if missing and choice in (kind, "both"):
            other = [f"'{name}'" for name, no in absent.items() if not no]
            choices = ", ".join([*other, "'degree'"])
            raise DataError(f"{where}: there are no {nodes.noun} {kind}. Choose features={choices} or 'constant'")
    return choice


def write_recipe(features: str, nodes: Nodes, where: str) -> Recipe:
    """Describe how x is made from these nodes."""
    recipe: Recipe = {"version": VERSION, "kind": "graph", "features": features}
    if features in ("attributes", "both"):
        recipe["attributes"] = list(nodes.attribute_names)
    if features in ("labels", "both"):
        recipe["labels"] = [_known(column, where) for column in nodes.labels]
    if features == "degree":
        recipe["max_degree"] = int(min(nodes.degree.max(initial=0), MAX_DEGREE))
    return recipe


def check_recipe(recipe: Mapping[str, Any], kind: str) -> None:
    """Refuse a recipe of the wrong version or kind: molecules have their own kind, all other graphs share one."""
    if recipe.get("version") != VERSION:
        raise DataError(f"the recipe has version {recipe.get('version')!r}, expected {VERSION}. Update asapool")
    if recipe.get("kind") != kind:
        raise DataError(
            f"the recipe is for sources of kind {recipe.get('kind')!r}, and this one is {kind!r}. "
            "Give new graphs in the format of the training data"
        )
    if kind == "graph" and recipe.get("features") not in CHOICES[1:]:
        raise DataError(
            f"the recipe asks for features {recipe.get('features')!r}, expected one of {_list(CHOICES[1:])}"
        )


def columns(recipe: Mapping[str, Any], nodes: Nodes, where: str) -> tuple[Floats, tuple[str, ...]]:
    """Make x and its column names according to the recipe: attributes first, then one-hot labels.

    >>> nodes = Nodes(np.array([1, 1]), labels=[np.array([7, 5])])
    >>> columns({"features": "labels", "labels": [["5", "6", "7"]]}, nodes, "two nodes")[0].tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    features, N = recipe["features"], len(nodes.degree)
    if features == "constant":
        return np.ones((N, 1), np.float32), ("constant",)
    if features == "degree":
        last = int(recipe["max_degree"])
        names = (*(f"degree={d}" for d in range(last)), f"degree>={last}")
        return _one_hot([np.minimum(nodes.degree, last)], [last + 1]), names
    resolve(features, nodes, where)
    names = ()
    if features in ("attributes", "both"):
        expected = tuple(recipe["attributes"])
        if nodes.attribute_names != expected:
            raise DataError(
                f"{where}: {nodes.noun} attributes {_list(nodes.attribute_names)}, expected {_list(expected)}"
            )
        names = expected
        if features == "attributes":
            return _attributes(nodes), names
    tables: list[list[str]] = recipe["labels"]
    if len(tables) != len(nodes.labels):
        raise DataError(f"{where}: {len(nodes.labels)} label columns, expected {len(tables)}")
    at = f"{where}: {nodes.noun}"
    codes = [_codes(column, table, at) for column, table in zip(nodes.labels, tables, strict=True)]
    hot = _one_hot(codes, [len(table) for table in tables])
    prefixes = nodes.label_names or tuple("label" if len(tables) == 1 else f"label{k}" for k in range(len(tables)))
    names += tuple(f"{p}={label}" for p, table in zip(prefixes, tables, strict=True) for label in table)
    return (hot if features == "labels" else np.concatenate([_attributes(nodes), hot], axis=1)), names


def _attributes(nodes: Nodes) -> Floats:
    assert nodes.attributes is not None
    return nodes.attributes


def _known(column: npt.NDArray[Any], where: str) -> list[str]:
    """The labels that get a column, in order.

    For whole numbers with few gaps, every number from the smallest to the largest gets one, as in PyG and the authors'
    code.
    """
    seen = np.array(sorted(set(column.tolist())), object) if column.dtype == object else np.unique(column)
    if column.dtype.kind in "iu" and seen.size:
        low, high = int(seen[0]), int(seen[-1])
        if high - low + 1 <= 2 * seen.size and high - low < MAX_LABELS:
            return [str(label) for label in range(low, high + 1)]
    if seen.size > MAX_LABELS:
        raise DataError(
            f"{where}: {seen.size:,} different labels, at most {MAX_LABELS:,} can be columns. "
            "Choose --features attributes, degree or constant (features='degree')"
        )
    return [str(label) for label in seen.tolist()]


def _codes(column: npt.NDArray[Any], table: list[str], where: str) -> Ints:
    """The index of every label in the table, (N,); text comes as an array of objects, because labels may be long."""
    if column.dtype == object:
        index_of = {label: k for k, label in enumerate(table)}
        codes = np.fromiter((index_of.get(label, -1) for label in column.tolist()), np.int64, len(column))
        _refuse_unknown(column[codes < 0], table, where)
        return codes
    try:
        known: npt.NDArray[Any] = np.array(table, dtype=np.int64 if column.dtype.kind in "iu" else str)
    except ValueError:
        known, column = np.array(table, dtype=str), column.astype(str)
    order = np.argsort(known, kind="stable")
    place = np.searchsorted(known, column, sorter=order)
    code = order[np.minimum(place, len(known) - 1)] if len(known) else np.zeros(len(column), np.int64)
    wrong = known[code] != column if len(known) else np.ones(len(column), bool)
    _refuse_unknown(column[wrong], table, where)
    return code.astype(np.int64)


def _refuse_unknown(labels: npt.NDArray[Any], table: list[str], where: str) -> None:
    if len(labels):
        new = sorted({str(label) for label in labels.tolist()})
        raise DataError(
            f"{where} label {_list(new)} does not occur in the data the recipe was made from, "
            f"which has {_list(table)}. Drop those graphs, or retrain with them"
        )


def _one_hot(codes: Sequence[Ints], widths: Sequence[int]) -> Floats:
    """One-hot columns of every label column; codes has one array (N,) per label column."""
    N, start = len(codes[0]), 0
    x = np.zeros((N, sum(widths)), np.float32)
    for code, width in zip(codes, widths, strict=True):
        x.reshape(-1)[np.arange(N) * x.shape[1] + start + code] = 1  # flat indices: faster than x[rows, columns]
        start += width
    return x


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name if len(name) <= 60 else name[:57] + "...") for name in map(str, names[:8]))
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "") or "none"
