"""Conversion from and to PyG's Data; edge_index row 0 is the source j, row 1 the target i."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.data.assemble import Record, assemble, refuse_duplicate_ids
from asapool.data.classes import as_text
from asapool.data.reading import ReadOptions
from asapool.data.targets import FEW
from asapool.errors import DataError, plural

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from asapool.data.graphset import GraphSet


def fields_from_pyg(
    data: Iterable[Any],
    *,
    name: str = "graphs",
    ids: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    feature_names: Sequence[str] = (),
    options: ReadOptions | None = None,
) -> dict[str, Any]:
    """The fields of a GraphSet from a list or data set of PyG's Data: x, edge_index, edge_weight, edge_attr, y, truth.

    Without x the features are one-hot degrees. A float y, or several numbers in y, are targets.
    class_names name the values 0, 1, … of y in order; -1 then means no label.
    """
    options = options or ReadOptions(labels="optional")
    data = list(data)
    measured = class_names is None and _is_measured(data)
    records = [_record(d, k, None if ids is None else str(ids[k]), class_names, measured) for k, d in enumerate(data)]
    fields = assemble(records, name=name, options=options, attribute_names=tuple(feature_names), classes=class_names)
    if options.recipe is None:
        refuse_duplicate_ids(records)
    return fields


def _record(data: Any, k: int, id: str | None, class_names: Sequence[str] | None, measured: bool) -> Record:
    at = f"graph {k}"
    if getattr(data, "edge_index", None) is None:
        raise DataError(f"{at}: expected a PyG Data with edge_index, got {type(data).__name__} without one")
    index = _array(data.edge_index)
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        raise DataError(f"{at}: edge_index must be whole numbers of shape (2, E), got {index.dtype} of {index.shape}")
    x, y = getattr(data, "x", None), getattr(data, "y", None)
    E, nodes = index.shape[1], int(data.num_nodes or 0)
    return Record(
        at=at,
        nodes=nodes,
        source=index[0].astype(np.int64),
        target=index[1].astype(np.int64),
        directed=True,  # PyG lists both directions of an undirected edge
        weight=_values(data, "edge_weight", E, at, flat=True),
        edge_attr=_values(data, "edge_attr", E, at),
        attributes=None if x is None else _values(data, "x", nodes, at),
        truth=None if getattr(data, "truth", None) is None else _array(data.truth).reshape(-1).astype(np.int8),
        label=None if measured else _label(y, at, class_names),
        values=_targets(y) if measured and y is not None else None,
        id=id,
        text=getattr(data, "smiles", None),
    )


def _array(value: Any) -> npt.NDArray[Any]:
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def _values(data: Any, key: str, rows: int, at: str, flat: bool = False) -> npt.NDArray[np.float32] | None:
    value = getattr(data, key, None)
    if value is None:
        return None
    array = _array(value)
    if array.ndim == 0 or len(array) != rows or array.dtype.kind not in "iufb" or (flat and array.size != rows):
        raise DataError(
            f"{at}: {key} must be numbers for {rows} {'nodes' if key == 'x' else 'edges'}, "
            f"got {array.dtype} of {array.shape}"
        )
    array = array.astype(np.float32)
    return array.reshape(rows) if flat else array.reshape(rows, -1) if rows else array.reshape(0, array.shape[-1])


def _is_measured(data: Sequence[Any]) -> bool:
    """Whether y holds measured values: fractions, several numbers per graph, or floats with many distinct values."""
    arrays = [_array(d.y).reshape(-1) for d in data if getattr(d, "y", None) is not None]
    if any(array.size > 1 for array in arrays):
        return True
    values = {value for array in arrays if array.dtype.kind == "f" for value in array.tolist() if value == value}
    whole = all(float(value).is_integer() for value in values)
    return not whole or (len(values) > FEW and all(array.dtype.kind == "f" for array in arrays))


def _targets(y: Any) -> dict[str, str | None]:
    values = _array(y).reshape(-1).tolist()
    return {"y" if len(values) == 1 else f"y{k}": as_text(value) for k, value in enumerate(values)}


def _label(y: Any, at: str, class_names: Sequence[str] | None) -> str | None:
    if y is None:
        return None
    value = _array(y)
    if value.size != 1:
        raise DataError(
            f"{at}: y must be one class per graph, got shape {value.shape}. Choose one target and set y to it"
        )
    text = as_text(value.reshape(-1)[0].item())
    if class_names is None or text is None:
        return text
    if text == "-1":  # as to_pyg writes it
        return None
    if not text.isdigit() or int(text) >= len(class_names):
        raise DataError(f"{at}: y is {text}, expected 0 to {len(class_names) - 1}, an index into class_names")
    return class_names[int(text)]


def to_pyg(graphs: GraphSet, i: int) -> Data:
    """Graph i as Data: x, edge_index, and edge_weight, edge_attr, y, truth, smiles if the set has them."""
    import torch
    from torch_geometric.data import Data

    a, b, begin, end = span(graphs, i)
    target = np.repeat(np.arange(b - a), np.diff(graphs.rowptr[a : b + 1]))
    fields: dict[str, Any] = {
        "x": torch.from_numpy(graphs.x[a:b].copy()),
        "edge_index": torch.from_numpy(np.stack([graphs.col[begin:end] - a, target])),
    }
    for key, values, low, high in (
        ("edge_weight", graphs.weight, begin, end),
        ("edge_attr", graphs.edge_attr, begin, end),
        ("truth", graphs.truth, a, b),
    ):
        if values is not None:
            fields[key] = torch.from_numpy(values[low:high].copy())
    if graphs.target.kind != "classification":
        fields["y"] = torch.from_numpy(graphs.y[i : i + 1].astype(np.float32))  # (1, T), as in PyG's own data sets
    elif graphs.class_names:
        fields["y"] = torch.tensor([int(graphs.y[i])])
    if graphs.source_text is not None:
        fields["smiles"] = graphs.source_text[i]
    return Data(**fields)


def span(graphs: GraphSet, i: int) -> tuple[int, int, int, int]:
    """First and last node, first and last edge of graph i; the last ones are exclusive."""
    if not -len(graphs) <= i < len(graphs):
        # IndexError, not DataError: Python's for loop ends a sequence on it
        raise IndexError(f"graph {i} was requested, but {graphs.name} has {plural(len(graphs), 'graph')}")
    i %= len(graphs)
    a, b = int(graphs.ptr[i]), int(graphs.ptr[i + 1])
    return a, b, int(graphs.rowptr[a]), int(graphs.rowptr[b])
