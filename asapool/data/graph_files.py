"""Folders of GraphML or GEXF files, with a CSV that gives the class of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from asapool.data.classes import UNLABELLED, cell_class
from asapool.data.decimal_commas import with_point
from asapool.data.graphset import GraphSet
from asapool.data.reading import Log, Reading, ReadOptions
from asapool.data.tables import checked_rows, guess, open_table, refuse_several
from asapool.errors import DataError

SUFFIXES = (".graphml", ".gexf")
TABLES = (".csv", ".tsv")
FILE_COLUMNS = ("file", "filename", "graph", "graph_id", "id", "name")
CLASS_COLUMNS = ("label", "class", "target", "y")


def is_graph_folder(path: Path) -> bool:
    """Whether a folder contains GraphML or GEXF files."""
    return path.is_dir() and any(p.suffix.lower() in SUFFIXES for p in path.iterdir())


def read_graph_folder(path: Path, options: ReadOptions | None = None) -> Reading:
    """Read every file of the folder, in the order of the labels CSV, or of the file names if there is none."""
    options, log = options or ReadOptions(), Log()
    files = {p.name: p for p in sorted(path.iterdir()) if p.suffix.lower() in SUFFIXES}
    tables = [p for p in sorted(path.iterdir()) if p.suffix.lower() in TABLES]
    if len(tables) > 1:
        raise DataError(f"{path}: several tables, {', '.join(p.name for p in tables)}. Keep the one with the labels")
    labels: dict[str, Any]
    if tables and options.label_rule != "ignored":
        labels = _labels(tables[0], files, options, log)
    elif options.label_rule == "required":
        raise DataError(f"{path}: no labels CSV. Add labels.csv with the columns file and label {UNLABELLED}")
    else:
        labels = dict.fromkeys(files)
    graphs, kept, places = [], [], []
    for place, name in enumerate(labels):
        try:
            graphs.append(_read(files[name]))
            kept.append(name)
            places.append(place)
        except DataError as error:
            if not options.skip_invalid:
                raise
            log.skip(place + 1, str(error))
    graph_set = GraphSet.from_networkx(
        graphs,
        [labels[name] for name in kept],
        name=path.name,
        ids=[Path(name).stem for name in kept],
        options=options,
        places=[str(files[name]) for name in kept],
    )
    return log.reading(graph_set.with_fields(places=np.array(places)))


def _labels(table: Path, files: dict[str, Path], options: ReadOptions, log: Log) -> dict[str, Any]:
    """The class of every file; a row may name a file with or without its suffix."""
    stems = {p.stem: name for name, p in files.items()}
    with open_table(table, options.encoding) as (header, rows):
        file_column = guess(header, options.id_column, FILE_COLUMNS, table, "id_column", "the names of the files")
        if options.target is None:
            refuse_several(header, CLASS_COLUMNS, table, "target", "the classes")
        named = None if options.target is None else str(options.target)
        label_column = guess(header, named, CLASS_COLUMNS, table, "target", "the classes")
        labels: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for line, row in checked_rows(rows, header, table):
            cell = str(row[file_column]).strip()
            name = cell if cell in files else stems.get(cell, "")
            if not name:
                raise DataError(
                    f"{table}, line {line}: {cell!r} is not a GraphML or GEXF file of this folder. Correct the name"
                )
            if name in labels:
                raise DataError(
                    f"{table}, line {line}: {cell!r} was listed before, in line {lines[name]}. List every file once"
                )
            value = row[label_column]
            if options.decimal == ",":
                value = with_point(value, f"{table}, line {line}", header[label_column])
            labels[name], lines[name] = cell_class(value, options.classes, log.missing), line
    missing = sorted(set(files) - set(labels))
    if missing:
        raise DataError(
            f"{table}: no line for {missing[0]} ({len(missing)} files are not listed). List every file once"
        )
    return labels


def _read(path: Path) -> Any:
    import networkx as nx

    try:
        graph = nx.read_graphml(path) if path.suffix.lower() == ".graphml" else nx.read_gexf(path)
    except Exception as error:  # for a damaged file the XML and NetworkX readers raise many kinds
        raise DataError(f"{path}: not readable as {path.suffix[1:]} ({error}). Write the file again") from None
    if path.suffix.lower() == ".gexf":
        for node, data in graph.nodes(data=True):
            if data.get("label") == str(node):  # GEXF repeats the node's name there, which is not a feature
                del data["label"]
    for *_, data in graph.edges(data=True):
        data.pop("id", None)
    return graph
