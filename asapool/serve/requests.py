"""From the body of a request to graphs: SMILES, a table, our JSON schema or GraphML; nothing is written to disk.

Every client error is a `Refusal` with a status code and one sentence.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asapool.data import GraphSet
from asapool.data.decimal_commas import DECIMAL_COMMA
from asapool.data.descriptors import descriptor_columns, read_number
from asapool.data.molecule_columns import ID_COLUMNS, SMILES_COLUMNS
from asapool.data.reading import ReadOptions
from asapool.data.tables import csv_rows, find
from asapool.errors import AsapoolError, DataError
from asapool.models.checkpoint import LoadedModel
from asapool.serve.settings import ServeSettings

LONGEST = 4000  # characters of one SMILES; a longer one is not read
FIELDS = ("smiles", "ids", "descriptors", "graphs", "csv", "column", "jsonl", "graphml", "target", "occlusion", "index")


class Refusal(Exception):  # noqa: N818  it is a response, not a failure
    """A rejected request: its status code, and a sentence that says why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@dataclass(frozen=True)
class MoleculeRequest:
    """SMILES of a request, the names of the molecules, and for each the descriptors that the model reads."""

    smiles: list[str]
    ids: list[str]
    descriptors: list[tuple[float, ...]]


def joined(jobs: Sequence[MoleculeRequest]) -> MoleculeRequest:
    """The molecules of several requests, one after another."""
    return MoleculeRequest(
        [text for job in jobs for text in job.smiles], [name for job in jobs for name in job.ids],
        [values for job in jobs for values in job.descriptors],
    )  # fmt: skip


def the_one(job: MoleculeRequest | GraphSet, index: Any) -> MoleculeRequest | GraphSet:
    """The graph of a request with this index, from 0, as a request of its own."""
    count = len(job) if isinstance(job, GraphSet) else len(job.smiles)
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
        raise Refusal(422, f"index must be a whole number from 0 to {count - 1}, got {json.dumps(index)[:40]}")
    if isinstance(job, GraphSet):
        return job.subset([index])
    return MoleculeRequest([job.smiles[index]], [job.ids[index]], [job.descriptors[index]])


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object of a body."""

    def refuse(constant: str) -> Any:
        raise Refusal(400, f"the body contains {constant}, which is not JSON. Leave the value out, or write null")

    try:
        value = json.loads(body.decode("utf-8"), parse_constant=refuse)
    except UnicodeDecodeError:
        raise Refusal(400, "the body is not UTF-8 text. Send JSON in UTF-8") from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:100]
        raise Refusal(400, f"the body is not JSON ({reason})") from None
    if not isinstance(value, dict):
        raise Refusal(400, 'the body must be a JSON object, such as {"smiles": ["CCO"]}')
    unknown = sorted(set(value) - set(FIELDS))
    if unknown:
        raise Refusal(422, f"unknown field {unknown[0][:40]!r}; the fields are {', '.join(FIELDS)}")
    return value


def read_request(request: Mapping[str, Any], model: LoadedModel, settings: ServeSettings) -> MoleculeRequest | GraphSet:
    """The molecules of a request, or its graphs, ready for the model."""
    kinds = [name for name in ("smiles", "csv", "graphs", "jsonl", "graphml") if request.get(name) is not None]
    if len(kinds) != 1:
        given = "none" if not kinds else " and ".join(kinds)
        raise Refusal(422, f"give one of smiles, csv, graphs, jsonl and graphml, got {given}")
    kind = kinds[0]
    if kind in ("smiles", "csv"):
        if model.recipe.get("kind") != "smiles":
            raise Refusal(422, "the model was not trained on molecules, so it cannot read SMILES. Send graphs")
        needed = descriptor_columns(ReadOptions(recipe=model.recipe))
        return (_molecules if kind == "smiles" else _table)(request, needed, settings)
    try:
        graphs = _graphml(request["graphml"], model) if kind == "graphml" else _records(request[kind], model, settings)
        model.check(graphs)
    except AsapoolError as error:
        raise Refusal(422, _public(error)) from None
    _limit(len(graphs), settings)
    sizes = graphs.ptr[1:] - graphs.ptr[:-1]
    if len(sizes) and int(sizes.max()) > settings.max_nodes:
        raise Refusal(422, f"a graph has {int(sizes.max())} nodes; at most {settings.max_nodes} are allowed")
    return graphs


def _molecules(request: Mapping[str, Any], needed: Sequence[str], settings: ServeSettings) -> MoleculeRequest:
    given = request["smiles"]
    smiles = [given] if isinstance(given, str) else given
    if not isinstance(smiles, list):
        raise Refusal(422, "smiles must be a string or a list of strings")
    smiles = ["" if text is None else text for text in smiles]  # an empty SMILES costs only its row
    wrong = next((k for k, text in enumerate(smiles) if not isinstance(text, str)), None)
    if wrong is not None:
        raise Refusal(422, f"smiles[{wrong}]: expected a string, got {json.dumps(smiles[wrong])[:40]}")
    ids = request.get("ids")
    if ids is None:
        ids = [str(k) for k in range(len(smiles))]
    if not isinstance(ids, list) or len(ids) != len(smiles) or not all(isinstance(i, (str, int)) for i in ids):
        raise Refusal(422, f"ids must be a list of {len(smiles)} strings, one per SMILES")
    descriptors = _descriptors(request.get("descriptors"), needed, smiles)
    return _checked(smiles, [str(i)[:200] for i in ids], descriptors, settings)


def _descriptors(given: Any, needed: Sequence[str], smiles: Sequence[str]) -> list[tuple[float, ...]]:
    """The values that the model reads of every molecule; null is a missing value, and other descriptors are ignored."""
    if not needed:
        return [()] * len(smiles)
    if not isinstance(given, dict) or not set(needed) <= set(given):
        missing = next(name for name in needed if not isinstance(given, dict) or name not in given)
        example = json.dumps({missing: [None] * min(len(smiles), 2)})
        raise Refusal(
            422, f"the model reads the descriptor {missing!r}: send its value for every SMILES, as in "
            f'"descriptors": {example}, or a csv with that column',
        )  # fmt: skip
    columns = []
    for name in needed:
        cells = given[name] if isinstance(given[name], list) else [given[name]]
        if len(cells) != len(smiles):
            raise Refusal(
                422, f"descriptors: {name!r} has {len(cells)} values for {len(smiles)} SMILES. Give one per SMILES"
            )
        columns.append([_number(cell, f"descriptors[{k}]", name) for k, cell in enumerate(cells)])
    return list(zip(*columns, strict=True))


def _number(cell: Any, where: str, name: str) -> float:
    try:
        return read_number(cell, where, name)
    except DataError as error:
        if isinstance(cell, str) and DECIMAL_COMMA.fullmatch(cell.strip()):
            raise Refusal(
                422, f"{where}: expected a finite number for the descriptor {name!r}, got {cell.strip()[:40]!r}. "
                "Write it with a decimal point",
            ) from None  # fmt: skip
        raise Refusal(422, str(error)[:500]) from None


def _table(request: Mapping[str, Any], needed: Sequence[str], settings: ServeSettings) -> MoleculeRequest:
    text, column = request["csv"], request.get("column")
    if not isinstance(text, str) or not isinstance(column, (str, type(None))):
        raise Refusal(422, "csv and column must be strings")
    try:
        rows = [row for _, row in csv_rows(io.StringIO(text.lstrip("\ufeff")), Path("table.csv"))]
    except csv.Error as error:
        raise Refusal(422, f"csv: cannot be read ({str(error)[:100]})") from None
    if not rows:
        raise Refusal(422, "csv: the table is empty")
    header = [name.strip() for name in rows[0]]
    candidates = (column,) if column else SMILES_COLUMNS
    place = find(header, None, candidates, Path("csv"))
    if place is None and len(header) == 1 and column is None:
        place, header = 0, []  # a list of SMILES without a header
    if place is None:
        raise Refusal(422, f"csv: no column {column or SMILES_COLUMNS[0]!r:.100}; name the SMILES column in `column`")
    body = rows[1:] if header else rows
    missing = next((name for name in needed if name not in header), None)
    if missing is not None:
        raise Refusal(422, f"csv: there is no column {missing!r}, a descriptor that the model reads. Add it")
    twice = next((name for name in needed if header.count(name) > 1), None)
    if twice is not None:
        raise Refusal(422, f"csv: two columns are called {twice!r}. Rename one of them")
    extra = [header.index(name) for name in needed]
    id_column = find(header, None, ID_COLUMNS, Path("csv"))
    smiles = [row[place].strip() if place < len(row) else "" for row in body]
    ids = [
        row[id_column][:200] if id_column is not None and id_column < len(row) else str(k) for k, row in enumerate(body)
    ]
    descriptors = [
        tuple(_number(row[c] if c < len(row) else None, f"csv, row {k}", header[c]) for c in extra)
        for k, row in enumerate(body, start=1)
    ]
    return _checked(smiles, ids, descriptors, settings)


def _checked(
    smiles: list[str], ids: list[str], descriptors: list[tuple[float, ...]], settings: ServeSettings
) -> MoleculeRequest:
    _limit(len(smiles), settings)
    return MoleculeRequest(smiles, ids, descriptors)


def _limit(count: int, settings: ServeSettings) -> None:
    if count == 0:
        raise Refusal(422, "there is no graph in the request")
    if count > settings.max_graphs:
        raise Refusal(
            413, f"{count} graphs in one request; at most {settings.max_graphs} are allowed. Send several requests"
        )


def _records(given: Any, model: LoadedModel, settings: ServeSettings) -> GraphSet:
    """Graphs in the schema of docs/data.md: a list of objects, or JSON lines."""
    from asapool.data.jsonlines import read_jsonl

    if isinstance(given, str):
        lines = [line for line in given.splitlines() if line.strip()]
    elif isinstance(given, list) and all(isinstance(record, dict) for record in given):
        lines = [json.dumps(record) for record in given]
    else:
        raise Refusal(422, "graphs must be a list of objects, and jsonl a string with one object per line")
    _limit(len(lines), settings)
    handle = os.memfd_create("request")  # a file in memory: the readers need a file, but nothing is written to disk
    try:
        os.write(handle, "\n".join(lines).encode("utf-8", "replace"))
        options = ReadOptions(recipe=model.recipe, labels="ignored")
        return read_jsonl(Path(f"/proc/self/fd/{handle}"), options).graphs
    finally:
        os.close(handle)


def _graphml(text: Any, model: LoadedModel) -> GraphSet:
    import networkx as nx

    from asapool.trained import TrainedModel

    if not isinstance(text, str) or "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise Refusal(422, "graphml must be the text of a GraphML file without a document type")
    try:
        graph = nx.parse_graphml(text)
    except Exception as error:  # networkx's parser raises many kinds of errors
        raise Refusal(422, f"graphml: cannot be read ({type(error).__name__})") from None
    return TrainedModel(model).read([graph])


def _public(error: AsapoolError) -> str:
    """The error message without the name of the in-memory file."""
    import re

    return re.sub(r"/proc/self/fd/\d+", "graphs", str(error))[:500]
