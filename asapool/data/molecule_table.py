"""Tables of molecules: a column of SMILES, and one or more columns of labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asapool.data.classes import Labels, cell_class, check_labels
from asapool.data.csr import pointer
from asapool.data.decimal_commas import with_point
from asapool.data.descriptors import (
    descriptor_columns,
    missing_note,
    rdkit_descriptors,
    rdkit_names,
    read_number,
    refuse_empty,
)
from asapool.data.duplicates import merge_duplicates
from asapool.data.features import check_recipe
from asapool.data.frames import open_frame
from asapool.data.graphset import GraphSet
from asapool.data.molecule_columns import Columns, choose_columns, names_may_repeat, unread_note
from asapool.data.molecule_workers import read_many
from asapool.data.molecules import (
    ATOM_NAMES,
    VERSION,
    Molecules,
    atom_features,
    bond_features,
    load_rdkit,
    stereo_features,
)
from asapool.data.reading import Log, Numbered, Reading, ReadOptions, Skipped, Wanted, all_pieces
from asapool.data.tables import open_table
from asapool.data.targets import Labelled, Target, read_targets
from asapool.data.unreadable import allowed_rows, check_few, few_note
from asapool.errors import DataError


class Row(NamedTuple):
    """A row of the table."""

    place: int  # index among the rows of the table, from 0
    line: int
    smiles: str
    labels: tuple[str | None, ...]  # one per target column
    id: str | None
    descriptors: tuple[float, ...] = ()  # one per descriptor column
    cells: Sequence[Any] = ()  # all of them, with keep_columns


def read_molecules(path: Path, options: ReadOptions | None = None, frame: Any = None) -> Reading:
    """Read a whole table: a file, or a data frame, for which messages use the path as a name."""
    options = options or ReadOptions()
    few = options.recipe is None  # to learn from
    log = Log(allowed=allowed_rows(options, None, few=few))
    load_rdkit()
    columns, rows = open_rows(path, options, log, frame)
    listed = list(rows)
    total = len(listed) + len(log.skipped)
    if not total:
        raise DataError(f"{path}: there are column names but no rows. Add one row per molecule")
    log.allowed = allowed_rows(options, total, few=few)
    log.notes += unread_note(columns, path)
    graphs = build_graphs(path, columns, listed, options, log, options.label_rule)
    if not len(graphs):
        line, reason = log.skipped[0]
        raise DataError(f"{path}: none of the {total} molecules could be read. Line {line}: {reason}")
    if options.recipe is None:
        refuse_empty(graphs.descriptors, columns.descriptors, path)
    if log.skipped and options.skip_invalid is None:
        log.notes.append(few_note(path, log.skipped, total))
        log.noted = True
    if options.duplicates == "merge":
        graphs = merge_duplicates(graphs, str(path), log)
        if graphs.target.kind == "classification":  # ties may have left a single class
            check_labels(graphs.y, str(path), options.label_rule)
    if options.recipe is None and len(set(graphs.ids)) < len(graphs):
        graphs = _resolve_duplicate_ids(graphs, columns, listed, path, options, log)
    return log.reading(graphs)


def stream_molecules(path: Path, options: ReadOptions, chunk: int, wanted: Wanted = all_pieces) -> Numbered:
    """Read chunk rows at a time, so that memory does not grow with the file; only the wanted pieces are built."""
    load_rdkit()
    few = options.label_rule != "ignored"  # to score a model on
    log, number, total = Log(allowed=allowed_rows(options, None, few=few)), 0, 0
    log.noted = few and options.skip_invalid is None
    skipped: list[Skipped] = []
    columns, rows = open_rows(path, options, log)
    while piece := list(islice(rows, chunk)):
        total += len(piece) + len(log.skipped)
        if wanted(number):
            yield number, log.reading(build_graphs(path, columns, piece, options, log, "optional"))
        skipped += log.skipped
        log.clear()
        number += 1
    total, skipped = total + len(log.skipped), skipped + log.skipped
    if log.noted and skipped:  # whether they are few is known only now
        check_few(path, skipped, total, allowed_rows(options, total, few=few))
        log.notes.append(few_note(path, skipped, total))
    if (log.skipped or log.notes) and wanted(number):
        yield number, log.reading(GraphSet.empty())


def read_smiles_list(
    smiles: Sequence[Any], options: ReadOptions, descriptors: Sequence[tuple[float, ...]] = ()
) -> Reading:
    """Read a list of SMILES, as in load(["CCO"]); their ids are their indices.

    Args:
        smiles: the SMILES.
        options: how to read them.
        descriptors: a value for each column that `descriptor_columns(options)` names, for every molecule.
    """
    load_rdkit()
    log = Log(allowed=allowed_rows(options, len(smiles), few=False))
    for k, text in enumerate(smiles):
        if not isinstance(text, str):
            raise DataError(f"graph {k}: expected SMILES like the others, got {type(text).__name__}. Leave it out")
    needed = descriptor_columns(options)
    if needed and not descriptors:
        raise DataError(
            f"the model needs the descriptor {needed[0]!r}, and a list of SMILES has no columns. "
            "Give a table that has it"
        )
    given = descriptors or [()] * len(smiles)
    rows = [
        Row(k, k, text.strip(), (), None, values) for k, (text, values) in enumerate(zip(smiles, given, strict=True))
    ]
    rule: Labels = "optional" if options.labels is None else options.labels
    graphs = build_graphs(Path("smiles"), Columns("smiles", (), None, tuple(needed)), rows, options, log, rule)
    if not len(graphs):
        raise DataError(f"none of the {len(rows)} SMILES could be read. The first: {log.skipped[0].reason}")
    return log.reading(graphs)


def open_rows(path: Path, options: ReadOptions, log: Log, frame: Any = None) -> tuple[Columns, Iterator[Row]]:
    """The chosen columns, and an iterator over the rows of a file or a data frame."""
    if options.features not in (None, "auto"):
        raise DataError(f"{path}: molecules have fixed atom features, so features={options.features!r} does not apply")
    if options.recipe is not None:
        check_recipe(options.recipe, "smiles")
    rows = _rows(path, options, log, frame)
    columns = next(rows)
    assert isinstance(columns, Columns)
    return columns, rows  # type: ignore[return-value]


def _rows(path: Path, options: ReadOptions, log: Log, frame: Any) -> Iterator[Columns | Row]:
    """First the columns, then every row."""
    with (
        open_table(path, options.encoding) if frame is None else nullcontext(open_frame(frame, str(path))) as (
            header,
            rows,
        )
    ):
        columns = choose_columns(header, path, options)
        yield columns
        at = {name: k for k, name in enumerate(header)}
        smiles, id_column = at[columns.smiles], None if columns.id is None else at[columns.id]
        targets, extra = [at[name] for name in columns.targets], [at[name] for name in columns.descriptors]
        for place, (line, row) in enumerate(rows):
            if len(row) != len(header):
                reason = f"expected {len(header)} fields, got {len(row)} (quote fields that contain a separator)"
                if not log.allowed:
                    raise DataError(f"{path}, line {line}: {reason}")
                log.skip(line, reason)
                continue
            cells, where = row, f"{path}, line {line}"
            if options.decimal == ",":
                row = list(row)
                for k in (*targets, *extra):
                    row[k] = with_point(row[k], where, header[k])
            yield Row(
                place,
                line,
                "" if row[smiles] is None else str(row[smiles]).strip(),
                tuple(cell_class(row[k], options.classes, log.missing) for k in targets),
                None if id_column is None or row[id_column] is None else str(row[id_column]).strip() or None,
                tuple(read_number(row[k], where, header[k]) for k in extra),
                cells if options.keep_columns else (),
            )


def build_graphs(
    path: Path, columns: Columns, rows: Sequence[Row], options: ReadOptions, log: Log, rule: Labels
) -> GraphSet:
    """Pack the molecules of some rows; an empty set if none could be read."""
    molecules = read_many([row.smiles for row in rows], options.workers)
    total = len(rows) + len(log.skipped)
    for k, reason in molecules.failed:
        log.skip(rows[k].line, reason)
    check_few(path, log.skipped, total, log.allowed)
    if not len(molecules.rows):
        return GraphSet.empty()
    kept = [rows[k] for k in molecules.rows.tolist()]
    if columns.kept:
        log.columns = {name: [row.cells[k] for row in kept] for k, name in enumerate(columns.kept)}
    y, target, notes = read_labels(path, columns, kept, options, rule)
    log.notes.extend(notes)
    names = target.classes if target.kind == "classification" else ()
    computed = rdkit_names(options)
    recipe = recipe_of(columns, target, options)
    extended = recipe.get("edge_features") == "extended"
    graphs = pack_molecules(
        molecules,
        y=y,
        class_names=names,
        target=target,
        ids=tuple(str(row.line) if row.id is None else row.id for row in kept),
        named=any(row.id is not None for row in kept),
        places=[row.place for row in kept],
        descriptors=_descriptors(path, columns, kept, computed, log),
        source_text=tuple(row.smiles for row in kept),
        name=path.name.removesuffix(".gz").rpartition(".")[0] or path.stem,
        recipe=recipe,
    )
    if not extended or graphs.edge_attr is None:
        return graphs
    stereo = stereo_features([row.smiles for row in kept])
    return graphs.with_fields(edge_attr=np.concatenate([graphs.edge_attr, stereo], axis=1))


def _descriptors(
    path: Path, columns: Columns, rows: Sequence[Row], computed: Sequence[str], log: Log
) -> npt.NDArray[np.float32] | None:
    """The descriptor columns, then those that RDKit computes, (G, D); None if there are neither."""
    if not columns.descriptors and not computed:
        return None
    given = np.array([row.descriptors for row in rows], np.float32).reshape(len(rows), len(columns.descriptors))
    log.notes.extend(missing_note(given, columns.descriptors, str(path)))
    return np.concatenate([given, rdkit_descriptors([row.smiles for row in rows], computed)], axis=1)


def recipe_of(columns: Columns, target: Target, options: ReadOptions) -> dict[str, Any]:
    """How these molecules became graphs and labels: the recipe in the options, or a new one."""
    if options.recipe is not None:
        recipe = dict(options.recipe)
    else:
        names = target.classes if target.kind == "classification" else ()
        recipe = {"version": VERSION, "kind": "smiles", "smiles": columns.smiles,
                  "target": ", ".join(columns.targets) or None, "classes": list(names)}  # fmt: skip
        if target.kind != "classification":
            recipe["task"] = target.to_dict()
        computed = rdkit_names(options)
        if columns.descriptors or computed:
            recipe["descriptors"] = {"columns": list(columns.descriptors), "rdkit": computed}
    if options.edge_features == "extended":
        recipe["edge_features"] = "extended"
    return recipe


def read_labels(path: Path, columns: Columns, rows: Sequence[Row], options: ReadOptions, rule: Labels) -> Labelled:
    cells: dict[str, list[str | None]] = {
        name: [row.labels[k] for row in rows] for k, name in enumerate(columns.targets)
    }
    known = options.known_target
    if known is not None:
        cells = {name: cells.get(name, [None] * len(rows)) for name in known.names}
    return read_targets(
        cells or {"label": [None] * len(rows)}, str(path), rule=rule, task=options.known_task, known=known,
        classes=options.classes, lines=[row.line for row in rows],
    )  # fmt: skip


def pack_molecules(molecules: Molecules, **fields: Any) -> GraphSet:
    """The packed set of molecules that were read; fields are the remaining fields of the GraphSet."""
    ptr = pointer(molecules.atoms)
    first = np.repeat(ptr[:-1], molecules.bonds)
    row = molecules.ends[:, 0] + first
    return GraphSet(
        x=atom_features(molecules.codes), ptr=ptr, rowptr=pointer(np.bincount(row, minlength=int(ptr[-1]))),
        col=molecules.ends[:, 1] + first, edge_attr=bond_features(molecules.kinds), feature_names=ATOM_NAMES, **fields,
    )  # fmt: skip


def _resolve_duplicate_ids(
    graphs: GraphSet, columns: Columns, rows: Sequence[Row], path: Path, options: ReadOptions, log: Log
) -> GraphSet:
    """Handle ids that repeat in a set to learn from: names are replaced by line numbers, repeated ids are refused.

    A split by ids could not tell two molecules with the same id apart.
    """
    line = {row.place: row.line for row in rows}
    if names_may_repeat(columns, options):
        log.notes.append(f"{path}: the names in {columns.id!r} are not unique, so the line numbers are used as ids")
        ids = tuple(str(line[place]) for place in graphs.places.tolist())
        return graphs.with_fields(ids=ids, named=False)
    seen: dict[str, int] = {}
    for graph_id, place in zip(graphs.ids, graphs.places.tolist(), strict=True):
        if graph_id in seen:
            advice = "Give every molecule a unique id"
            if options.duplicates != "merge":
                advice += ", or merge the rows of each molecule with duplicates='merge' (--duplicates merge)"
            raise DataError(
                f"{path}, line {line[place]}: id {graph_id!r} was used before, in line {line[seen[graph_id]]}. {advice}"
            )
        seen[graph_id] = place
    return graphs
