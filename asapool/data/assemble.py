"""Packs graphs that are read one by one (JSON lines, GraphML, NetworkX, PyG, synthetic) into one set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data.csr import Bytes, Edges, Floats, Ints, mirrored, pack_edges, pointer
from asapool.data.features import Nodes, check_recipe, columns, resolve, write_recipe
from asapool.data.reading import Log, ReadOptions
from asapool.data.targets import Labelled, Target, read_targets
from asapool.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Record:
    """One graph of a source; nodes are numbered from 0 within the graph."""

    at: str  # its position in the source, for messages: "graphs.jsonl, line 3"
    line: int = 0
    place: int | None = None  # index in the source, from 0; None = its index in the list given to assemble
    nodes: int
    source: Ints
    target: Ints
    directed: bool = False  # False = each edge is listed once and stands for both directions
    weight: Floats | None = None
    edge_attr: Floats | None = None
    labels: tuple[npt.NDArray[Any], ...] = ()
    attributes: Floats | None = None
    truth: Bytes | None = None
    label: str | None = None  # the class
    values: Mapping[str, str | None] | None = None  # the targets by name, if the graph has no single class
    id: str | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        """Refuse a graph that is invalid by itself."""
        if self.nodes < 1:
            raise DataError(f"{self.at}: the graph has no nodes. Leave it out: an empty graph has no class")
        if len(self.source):
            low, high = min(self.source.min(), self.target.min()), max(self.source.max(), self.target.max())
            if low < 0 or high >= self.nodes:
                bad = high if high >= self.nodes else low
                raise DataError(
                    f"{self.at}: an edge names node {bad}, but nodes are 0 to {self.nodes - 1}. Correct the edge"
                )
        for noun, values in (
            ("a node feature", self.attributes), ("an edge weight", self.weight), ("an edge feature", self.edge_attr),
        ):  # fmt: skip
            if values is not None and not bool(np.isfinite(values).all()):
                raise DataError(f"{self.at}: {noun} is NaN or infinite. Replace or drop that value")


def assemble(
    records: Sequence[Record],
    *,
    name: str,
    options: ReadOptions,
    attribute_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = (),
    features: str | None = None,
    classes: Sequence[str] | None = None,
    target: Target | None = None,
    log: Log | None = None,
) -> dict[str, Any]:
    """Pack records into the fields of a GraphSet.

    features: what the columns of x are made from if the options do not say.
    """
    if not records:
        raise DataError(f"{name}: there are no graphs. Check that this is the right file")
    _check_alike(records)
    sizes = np.array([r.nodes for r in records], np.int64)
    ptr = pointer(sizes)
    N = int(ptr[-1])
    edges = _edges(records, ptr)
    attributes = None if records[0].attributes is None else np.concatenate([_not_none(r.attributes) for r in records])
    labels = [np.concatenate([r.labels[k] for r in records]) for k in range(len(records[0].labels))]
    if attributes is not None and not attribute_names:
        attribute_names = tuple(f"x{k}" for k in range(attributes.shape[1]))
    nodes = Nodes(np.diff(edges.rowptr), labels, attributes, attribute_names, label_names)
    if options.recipe is not None:
        check_recipe(options.recipe, "graph")
        recipe = dict(options.recipe)
    else:
        choice = options.features if options.features not in (None, "auto") else features
        recipe = write_recipe(resolve(choice, nodes, name), nodes, name)
    x, feature_names = columns(recipe, nodes, name)
    y, described, notes = _targets(records, name, options, classes, target)
    class_names = described.classes if described.kind == "classification" else ()
    if log is not None:
        log.notes.extend(notes)
    recipe |= {"classes": list(class_names)}
    if described.kind != "classification":
        recipe["task"] = described.to_dict()
    return {
        "x": x, "ptr": ptr, "rowptr": edges.rowptr, "col": edges.col, "weight": edges.weight,
        "edge_attr": edges.edge_attr, "y": y, "class_names": class_names, "target": described,
        "feature_names": feature_names, "ids": _ids(records), "named": any(r.id is not None for r in records),
        "places": _places(records), "name": name, "truth": _truth(records, N), "source_text": _text(records),
        "recipe": recipe,
    }  # fmt: skip


def _targets(
    records: Sequence[Record], name: str, options: ReadOptions, classes: Sequence[str] | None, target: Target | None
) -> Labelled:
    """y and its meaning: the targets if any record has some, else the classes."""
    known = options.known_target or (target if options.recipe is None else None)
    measured = any(r.values is not None for r in records)
    if not measured and known is None:
        if options.known_task not in (None, "classification"):
            raise DataError(f"{name}: no graph has targets, only classes, so task={options.task!r} does not apply")
        labels = [None if options.label_rule == "ignored" else r.label for r in records]
        columns: dict[str, Sequence[str | None]] = {"label": labels}
        task: str | None = "classification"
    else:
        names = known.names if known is not None else tuple(dict.fromkeys(n for r in records for n in r.values or ()))
        ignored = options.label_rule == "ignored" or (
            options.recipe is not None and options.known_target is None and len(names) > 1
        )
        columns = {n: [None if ignored else (r.values or {}).get(n) for r in records] for n in names or ("target",)}
        task = options.known_task
        unknown = next((n for r in records for n in r.values or () if n not in names), None)
        if unknown is not None and options.recipe is None:
            raise DataError(f"{name}: target {unknown!r}, expected {', '.join(map(repr, names))}")
    return read_targets(
        columns, name, rule=options.label_rule, task=task, known=known, classes=options.classes or classes
    )


def _not_none(value: Floats | None) -> Floats:
    assert value is not None
    return value


def _check_alike(records: Sequence[Record]) -> None:
    """Refuse graphs that differ in the number of features or labels per node."""
    first = records[0]
    width = None if first.attributes is None else first.attributes.shape[1]
    for r in records:
        actual = None if r.attributes is None else r.attributes.shape[1]
        if actual != width:
            raise DataError(
                f"{r.at}: {actual or 'no'} features per node, but {first.at} has {width or 'none'}. "
                "Give every node the same number"
            )
        if len(r.labels) != len(first.labels):
            raise DataError(
                f"{r.at}: {len(r.labels) or 'no'} labels per node, but {first.at} has {len(first.labels) or 'none'}. "
                "Give every node the same number"
            )


def _edges(records: Sequence[Record], ptr: Ints) -> Edges:
    counts = np.array([len(r.source) for r in records], np.int64)
    shift = np.repeat(ptr[:-1], counts)
    source = np.concatenate([r.source for r in records]).astype(np.int64) + shift
    target = np.concatenate([r.target for r in records]).astype(np.int64) + shift
    weight = edge_attr = None
    if any(r.weight is not None for r in records):  # a graph without weights among weighted graphs gets all ones
        weight = np.concatenate([np.ones(len(r.source), np.float32) if r.weight is None else r.weight for r in records])
    wide = [r for r in records if r.edge_attr is not None and len(r.source)]
    if wide:
        width = _not_none(wide[0].edge_attr).shape[1]
        for r in records:
            actual = None if r.edge_attr is None else r.edge_attr.shape[1]
            if len(r.source) and actual != width:
                features = "feature" if actual == 1 else "features"
                raise DataError(
                    f"{r.at}: {actual or 'no'} {features} per edge, but {wide[0].at} has {width}. "
                    "Give every edge the same number"
                )
        edge_attr = np.concatenate([_not_none(r.edge_attr) for r in records if len(r.source)])
    undirected = np.repeat([not r.directed for r in records], counts)
    N = int(ptr[-1])
    _refuse_both_ways(source[undirected], target[undirected], records, ptr)
    source, target, weight, edge_attr = mirrored(source, target, weight, edge_attr, undirected)
    return pack_edges(source, target, N, weight, edge_attr)


def _refuse_both_ways(source: Ints, target: Ints, records: Sequence[Record], ptr: Ints) -> None:
    """Refuse an undirected edge listed both as a-b and as b-a, which would silently count twice."""
    N = int(ptr[-1])
    key = np.minimum(source, target) * N + np.maximum(source, target)
    up, down = np.unique(key[source < target]), np.unique(key[source > target])
    twice = np.intersect1d(up, down, assume_unique=True)
    if len(twice):
        a, b = divmod(int(twice[0]), N)
        g = int(np.searchsorted(ptr, a, side="right")) - 1
        a, b = a - int(ptr[g]), b - int(ptr[g])
        raise DataError(
            f"{records[g].at}: the undirected edge {a}-{b} is listed in both directions. "
            "List it once, or mark the graph as directed"
        )


def refuse_duplicate_ids(records: Sequence[Record]) -> None:
    """Refuse two graphs with the same id in a set to learn from: a split by ids could not tell them apart."""
    seen: dict[str, Record] = {}
    for r, graph_id in zip(records, _ids(records), strict=True):
        if graph_id in seen:
            raise DataError(
                f"{r.at}: id {graph_id!r} was used before, at {seen[graph_id].at}. Give every graph a unique id"
            )
        seen[graph_id] = r


def _places(records: Sequence[Record]) -> Ints:
    return np.array([k if r.place is None else r.place for k, r in enumerate(records)], np.int64)


def _ids(records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(
        str(place) if r.id is None else r.id for r, place in zip(records, _places(records).tolist(), strict=True)
    )


def _truth(records: Sequence[Record], N: int) -> Bytes | None:
    if all(r.truth is None for r in records):
        return None
    return np.concatenate([np.zeros(r.nodes, np.int8) if r.truth is None else r.truth for r in records])


def _text(records: Sequence[Record]) -> tuple[str, ...] | None:
    if all(r.text is None for r in records):
        return None
    return tuple(r.text or "" for r in records)
