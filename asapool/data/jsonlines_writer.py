"""A set of graphs written as JSON lines, in the schema that asapool.data.jsonlines reads."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

import numpy as np

from asapool.data.csr import is_symmetric, owners
from asapool.data.graphset import GraphSet
from asapool.data.jsonlines import VERSION
from asapool.files import writing


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
