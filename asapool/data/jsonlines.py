"""JSON lines: one graph per line, version 1 of the schema.

    {"id": "a", "nodes": 3, "edges": [[0, 1], [1, 2, 0.5]], "features": [[1, 0], [0, 1], [0, 1]], "label": "toxic"}

nodes            number of nodes, or a list of their labels (text or whole numbers; they become one-hot columns)
edges            [a, b] or [a, b, weight], nodes counted from 0; both directions unless "directed" is true
features         optional: one list of numbers per node
label            optional: the class, text or number; null or absent = no label
target           optional: a measured value 1.5, a list of them, or {"name": value} for named tasks; null = missing
id               optional: text or number, unique in a file to learn from; by default the number of the graph
directed         optional: true = each edge is a -> b only
edge_features    optional: one list of numbers per edge
truth            optional: 0 or 1 per node, 1 = part of the reason for the label
text             optional: what the graph was made from, such as a SMILES

A first line {"asapool": 1, "name": ..., "class_names": [...], "feature_names": [...], "recipe": {...}} may come before
the graphs; `asapool data convert` writes it, so that a set is restored exactly. Empty lines are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, groupby
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data.assemble import Record, assemble, refuse_duplicate_ids
from asapool.data.check import is_text
from asapool.data.classes import as_text
from asapool.data.csr import Floats, Ints, is_symmetric, owners
from asapool.data.graphset import GraphSet
from asapool.data.reading import Log, Numbered, Reading, ReadOptions, Wanted, all_pieces, apply_recipe
from asapool.data.targets import Target
from asapool.errors import DataError
from asapool.files import writing

VERSION = 1
KEYS = {"id", "nodes", "edges", "features", "label", "target", "directed", "edge_features", "truth", "text"}
MAX_NODES = 10_000_000  # of one graph, and of a small file: a mistyped count must not exhaust memory
NODES_PER_BYTE = 10  # limit for a large file


def read_jsonl(path: Path, options: ReadOptions | None = None) -> Reading:
    """Read all graphs of a file."""
    options, log = options or ReadOptions(), Log()
    header, records = _open(path, options, log)
    listed = list(records)
    graphs = _build(path, header, listed, options, log)
    if options.recipe is None:
        refuse_duplicate_ids(listed)
    return log.reading(graphs)


def stream_jsonl(path: Path, options: ReadOptions, chunk: int, wanted: Wanted = all_pieces) -> Numbered:
    """Read chunk lines at a time, so that memory does not grow with the file; only the wanted pieces are read."""
    log = Log()
    header, records = _open(path, options, log, lambda place: wanted(place // chunk))
    number = 0
    for number, group in groupby(records, lambda record: (record.place or 0) // chunk):
        piece = list(group)
        try:
            graphs = _build(path, header, piece, options, log)
        except DataError:
            if not options.skip_invalid:
                raise
            kept = [record for record in piece if _is_valid(path, header, record, options, log)]
            graphs = _build(path, header, kept, options, log) if kept else GraphSet.empty()
        yield number, log.reading(graphs)
        log.clear()
    if log.skipped:  # lines after the last readable graph
        yield number + 1, log.reading(GraphSet.empty())


def _is_valid(path: Path, header: dict[str, Any], record: Record, options: ReadOptions, log: Log) -> bool:
    """Whether a graph can be read by itself; if not, it is logged as skipped."""
    try:
        _build(path, header, [record], options, Log())
    except DataError as error:
        log.skip(record.line, str(error))
        return False
    return True


def _open(
    path: Path, options: ReadOptions, log: Log, wanted: Wanted = all_pieces
) -> tuple[dict[str, Any], Iterator[Record]]:
    """The header (empty if there is none), and an iterator over the graphs."""
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise DataError(f"{path}: the file is empty. One JSON object per line is expected")
    line, text = first
    header: dict[str, Any] = {}
    if b'"asapool"' in text:
        header = _header(_parse(text, f"{path}, line {line}"), f"{path}, line {line}")
    return header, _records(path, lines if header else chain([first], lines), options, log, wanted)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as stream:
            for line, text in enumerate(stream, start=1):
                text = text.removeprefix(b"\xef\xbb\xbf").strip() if line == 1 else text.strip()
                if text:
                    yield line, text
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def _records(
    path: Path, lines: Iterator[tuple[int, bytes]], options: ReadOptions, log: Log, wanted: Wanted
) -> Iterator[Record]:
    """The graphs whose index in the file is wanted."""
    nodes, limit = 0, max(MAX_NODES, NODES_PER_BYTE * path.stat().st_size)
    first: tuple[str, int] | None = None  # shape and line of the first target
    for place, (line, text) in enumerate(lines):
        if not wanted(place):
            continue
        at = f"{path}, line {line}"
        try:
            value = _parse(text, at)
            record = _record(value, at, line, place)
            shape = None if options.label_rule == "ignored" else _shape(value.get("target"))
            first = (shape, line) if first is None and shape is not None else first
            if shape is not None and first is not None and shape != first[0]:
                reason = f"{at}: 'target' is {shape}, but in line {first[1]} {first[0]}"
                raise DataError(f"{reason}. Give every graph the same number of values, with null for a missing one")
            nodes += record.nodes
            if nodes > limit:
                nodes -= record.nodes
                raise DataError(
                    f"{at}: {nodes + record.nodes:,} nodes so far, but a file of this size may have at most {limit:,}. "
                    "Correct 'nodes', or split the file"
                )
            yield record
        except DataError as error:
            if not options.skip_invalid:
                raise
            log.skip(line, str(error).removeprefix(f"{at}: "))


def _parse(text: bytes, at: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except UnicodeDecodeError:
        raise DataError(f"{at}: not UTF-8 text. Save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{at}: not JSON ({error}). One JSON object per line is expected") from None
    if b"\\u" in text and not is_text(json.dumps(value, ensure_ascii=False)):
        raise DataError(f"{at}: an unpaired surrogate (\\ud800 to \\udfff) is not text. Correct or remove it")
    if not isinstance(value, dict):
        raise DataError(f"{at}: expected a JSON object, got {type(value).__name__}. See docs/data.md for the schema")
    return value


def _header(value: dict[str, Any], at: str) -> dict[str, Any]:
    if value.get("asapool") != VERSION:
        raise DataError(f"{at}: version {value.get('asapool')!r} of the schema, expected {VERSION}. Update asapool")
    for key in ("class_names", "feature_names"):
        names = value.get(key, [])
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise DataError(f"{at}: {key} must be a list of text")
    if "target" in value:
        if not isinstance(value["target"], dict):
            raise DataError(f"{at}: target must be an object")
        Target.from_dict(value["target"])  # raises if it is invalid
    if not isinstance(value.get("name", ""), str) or not isinstance(value.get("recipe", {}), dict):
        raise DataError(f"{at}: name must be text and recipe an object")
    return value


def _record(value: dict[str, Any], at: str, line: int, place: int) -> Record:
    unknown = sorted(set(value) - KEYS)
    if unknown:
        raise DataError(
            f"{at}: unknown key {unknown[0]!r}, expected some of {', '.join(sorted(KEYS))}. Correct the name"
        )
    if "nodes" not in value:
        raise DataError(f"{at}: 'nodes' is missing. Say how many nodes the graph has")
    nodes = value["nodes"]
    labels: tuple[npt.NDArray[Any], ...] = ()
    if isinstance(nodes, list):
        if not all(isinstance(label, (str, int)) and not isinstance(label, bool) for label in nodes):
            raise DataError(f"{at}: the labels in 'nodes' must be text or whole numbers")
        labels = (np.array([str(label) for label in nodes], dtype=object),)
        nodes = len(nodes)
    if not isinstance(nodes, int) or isinstance(nodes, bool) or not 0 <= nodes <= MAX_NODES:
        raise DataError(
            f"{at}: 'nodes' must be a whole number up to {MAX_NODES:,} or a list of labels, got {str(nodes)[:40]!r}"
        )
    source, target, weight = _edges(value.get("edges", []), at)
    for key in ("text", "directed"):
        if key in value and not isinstance(value[key], str if key == "text" else bool):
            raise DataError(f"{at}: {key!r} must be {'text' if key == 'text' else 'true or false'}")
    for key in ("id", "label"):
        if isinstance(value.get(key), (list, dict)):
            raise DataError(f"{at}: {key!r} must be text or a number")
    truth = value.get("truth")
    marks = isinstance(truth, list) and len(truth) == nodes and all(t in (0, 1) for t in truth)
    if truth is not None and not marks:
        raise DataError(f"{at}: 'truth' must be a list of {nodes} numbers 0 or 1, one per node")
    return Record(
        at=at, line=line, place=place, nodes=nodes, source=source, target=target, weight=weight,
        directed=value.get("directed", False),
        edge_attr=_table(value.get("edge_features"), len(source), "edge_features", at),
        labels=labels, attributes=_table(value.get("features"), nodes, "features", at),
        truth=None if truth is None else np.array(truth, np.int8), label=as_text(value.get("label")),
        values=_values(value, at),
        id=None if value.get("id") is None else str(value["id"]), text=value.get("text"),
    )  # fmt: skip


def _values(value: dict[str, Any], at: str) -> dict[str, str | None] | None:
    """The targets by name; None if the graph has none."""
    if "target" not in value:
        return None
    if value.get("label") is not None:
        raise DataError(f"{at}: 'label' is the class and 'target' a measured value; give only one of them")
    target = {} if value["target"] is None else value["target"]
    if isinstance(target, list):
        target = {f"target{k}": item for k, item in enumerate(target)}
    elif not isinstance(target, dict):
        target = {"target": target}
    for name, item in target.items():
        if isinstance(item, (list, dict)):
            raise DataError(f"{at}: 'target' {name!r} must be a number or null")
    return {name: as_text(item) for name, item in target.items()}


def _shape(target: Any) -> str | None:
    """Describes an unnamed target; None if it is missing or has names."""
    if isinstance(target, list):
        return f"a list of {len(target)}"
    return None if target is None or isinstance(target, dict) else "one value"


def _edges(edges: Any, at: str) -> tuple[Ints, Ints, Floats | None]:
    if not isinstance(edges, list):
        raise DataError(f"{at}: 'edges' must be a list of [a, b] or [a, b, weight]")
    if not edges:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), None
    table = _numbers(edges)
    if table is None or table.ndim != 2 or table.shape[1] not in (2, 3):
        raise DataError(f"{at}: 'edges' must be a list of [a, b] or a list of [a, b, weight], all numbers")
    ends = table[:, :2]
    if table.dtype.kind == "f" and not bool(((np.abs(ends) < 2**53) & (ends == np.floor(ends))).all()):
        raise DataError(f"{at}: the ends of an edge must be whole numbers")
    weight = _narrow(table[:, 2]) if table.shape[1] == 3 else None
    return ends[:, 0].astype(np.int64), ends[:, 1].astype(np.int64), weight


def _table(rows: Any, expected: int, key: str, at: str) -> Floats | None:
    """Lists of numbers of the same length, one per node or edge: (expected, F)."""
    if rows is None:
        return None
    noun = "node" if key == "features" else "edge"
    if not isinstance(rows, list) or len(rows) != expected:
        count = len(rows) if isinstance(rows, list) else "none"
        raise DataError(f"{at}: {key!r} must have one list per {noun}: expected {expected}, got {count}")
    if not rows:
        return None
    table = _numbers(rows)
    if table is None or table.ndim != 2 or table.shape[1] == 0:
        raise DataError(f"{at}: {key!r} must be lists of numbers, all of the same length")
    return _narrow(table)


def _numbers(rows: list[Any]) -> npt.NDArray[Any] | None:
    try:
        table = np.array(rows)
    except (ValueError, OverflowError):
        return None
    return table if table.dtype.kind in "iuf" else None


def _narrow(values: npt.NDArray[Any]) -> Floats:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _build(path: Path, header: dict[str, Any], records: list[Record], options: ReadOptions, log: Log) -> GraphSet:
    recipe = dict(header.get("recipe") or {})
    names = tuple(header.get("feature_names") or ())
    if names and any(r.attributes is None or r.attributes.shape[1] != len(names) for r in records):
        raise DataError(f"{path}: the first line names {len(names)} features, and not every node has that many numbers")
    target = Target.from_dict(header["target"]) if "target" in header else None
    if not recipe:
        fields = assemble(
            records, name=header.get("name", path.stem), options=options, attribute_names=names,
            classes=header.get("class_names") or None, features=_default(records), target=target, log=log,
        )  # fmt: skip
        return GraphSet(**fields)
    # the features of the file are already the columns that its recipe made
    plain = ReadOptions(features="attributes", labels="ignored" if options.label_rule == "ignored" else "optional")
    fields = assemble(
        records, name=header.get("name", path.stem), options=plain, attribute_names=names,
        classes=header.get("class_names") or None, target=target,
    )  # fmt: skip
    return apply_recipe(GraphSet(**fields).with_fields(recipe=recipe), options)


def _default(records: list[Record]) -> str | None:
    return "both" if records and records[0].labels and records[0].attributes is not None else None


def write_jsonl(graphs: GraphSet, path: str | PathLike[str]) -> None:
    """Write a set so that read_jsonl gives it back exactly."""
    whole = bool((graphs.x == np.floor(graphs.x)).all() and (np.abs(graphs.x) < 2**24).all())
    x = graphs.x.astype(np.int64) if whole else graphs.x  # 1 instead of 1.0: half the size for one-hot columns
    undirected = is_symmetric(graphs.rowptr, graphs.col, graphs.weight, graphs.edge_attr)
    row = owners(graphs.rowptr)
    header: dict[str, Any] = {
        "asapool": VERSION, "name": graphs.name, "class_names": graphs.class_names,
        "feature_names": graphs.feature_names, "recipe": graphs.recipe,
    }  # fmt: skip
    if graphs.target.kind != "classification":
        header["target"] = graphs.target.to_dict()
    with writing(path) as out:
        out.write(json.dumps(header).encode() + b"\n")
        for g in range(len(graphs)):
            a, b = int(graphs.ptr[g]), int(graphs.ptr[g + 1])
            e = np.arange(graphs.rowptr[a], graphs.rowptr[b])
            if undirected:
                e = e[graphs.col[e] <= row[e]]
            ends = [(graphs.col[e] - a).tolist(), (row[e] - a).tolist()]
            value: dict[str, Any] = {"id": graphs.ids[g], "nodes": b - a}
            if graphs.weight is not None:
                ends.append(graphs.weight[e].tolist())
            value["edges"] = list(zip(*ends, strict=True))
            if not undirected:
                value["directed"] = True
            value["features"] = x[a:b].tolist()
            if graphs.edge_attr is not None:
                value["edge_features"] = graphs.edge_attr[e].tolist()
            if graphs.target.kind != "classification":
                values = [None if np.isnan(v) else v for v in graphs.y[g].tolist()]
                value["target"] = dict(zip(graphs.target.names, values, strict=True))
            elif graphs.y[g] >= 0:
                value["label"] = graphs.class_names[graphs.y[g]]
            if graphs.truth is not None:
                value["truth"] = graphs.truth[a:b].tolist()
            if graphs.source_text is not None:
                value["text"] = graphs.source_text[g]
            out.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
