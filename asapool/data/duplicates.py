"""Molecules that a set contains more than once: counted, or merged into one graph each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asapool.data.csr import Ints
from asapool.data.descriptors import parsed
from asapool.data.graphset import GraphSet
from asapool.data.molecules import load_rdkit
from asapool.data.reading import Log
from asapool.errors import MissingExtraError, plural


class Duplicates(NamedTuple):
    """How many molecules a set contains more than once; a random split puts some of them into two parts."""

    molecules: int  # distinct molecules that occur more than once
    graphs: int  # graphs that are one of these molecules
    contradicting: int  # those of these molecules that have more than one class


def duplicates(graphs: GraphSet) -> Duplicates:
    """Count the molecules that `merge_duplicates` would merge; zero if the graphs were not made from SMILES.

    Sets that are not in memory are not searched: that would read all of their molecules before every training run.
    """
    if graphs.mapped is not None or graphs.recipe.get("kind") != "smiles" or graphs.source_text is None:
        return Duplicates(0, 0, 0)
    try:
        repeated = [graphs.y[rows] for rows in _rows_of_molecules(graphs) if len(rows) > 1]
    except MissingExtraError:  # training on a saved set does not need rdkit
        return Duplicates(0, 0, 0)
    contradicting = sum(len(set(map(repr, y.tolist()))) > 1 for y in repeated)
    return Duplicates(len(repeated), sum(map(len, repeated)), contradicting)


def merge_duplicates(graphs: GraphSet, where: str, log: Log) -> GraphSet:
    """The set with one graph per molecule, the first of its rows; a note in the log says what was merged.

    Rows are of the same molecule if their canonical SMILES and their descriptors are equal. Measured values are
    averaged; the majority decides classes and yes/no tasks, and a tie is a missing label.

    Args:
        graphs: molecules that were read from a table.
        where: the table, for the note.
        log: of the reading; its columns are shortened too.
    """
    molecules = _rows_of_molecules(graphs)
    repeated = [rows for rows in molecules if len(rows) > 1]
    if not repeated:
        return graphs
    y, ties = graphs.y.copy(), 0
    for rows in repeated:
        given = y[rows]
        y[rows[0]] = _label(given, graphs.target.kind)
        ties += bool((_known(given).any(axis=0) & ~_known(y[rows[0]])).any())
    first = np.array([rows[0] for rows in molecules])
    if log.columns is not None:
        log.columns = {name: [cells[i] for i in first] for name, cells in log.columns.items()}
    log.notes.append(_note(repeated, ties, graphs.target.kind, where))
    return graphs.with_fields(y=y).subset(first)


def _label(y: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    """The label of a molecule from those of its rows, (R,) or (R, T).

    >>> _label(np.array([1, 0, 1, -1]), "classification").item(), _label(np.array([1, 0]), "classification").item()
    (1, -1)
    >>> _label(np.array([[1.0, np.nan], [2.0, np.nan]]), "regression").tolist()
    [1.5, nan]
    """
    known = _known(y)
    if kind == "classification":
        counts = np.bincount(y[known], minlength=1)
        best = np.flatnonzero(counts == counts.max())
        return np.array(best[0] if len(best) == 1 and known.any() else -1)
    mean = np.full(y.shape[1], np.nan)
    np.divide(np.where(known, y, 0).sum(axis=0), known.sum(axis=0), out=mean, where=known.any(axis=0))
    return mean if kind == "regression" else np.where(np.isnan(mean) | (mean == 0.5), np.nan, mean > 0.5)


def _known(y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    known: npt.NDArray[np.bool_] = ~np.isnan(y) if y.dtype.kind == "f" else y >= 0
    return known


def _note(repeated: Sequence[Ints], ties: int, kind: str, where: str) -> str:
    rows, how = sum(map(len, repeated)), "the majority decides their labels"
    if kind == "regression":
        how = "their measured values are averaged"
    elif ties:
        how += f", and a tie ({plural(ties, 'molecule')}) counts as a missing one"
    return f"{where}: merged {rows:,} rows of {plural(len(repeated), 'molecule')}; {how}"


def _rows_of_molecules(graphs: GraphSet) -> list[Ints]:
    """The graphs of every molecule, in the order of the first: those with equal canonical SMILES and descriptors."""
    Chem = load_rdkit()
    groups: dict[tuple[str, ...], list[int]] = {}
    values = np.empty((len(graphs), 0)) if graphs.descriptors is None else graphs.descriptors
    triples = zip(graphs.source_text or (), parsed(graphs), values.tolist(), strict=True)
    for i, (text, mol, row) in enumerate(triples):
        name = text if mol is None else Chem.MolToSmiles(mol)
        groups.setdefault((name, *map(repr, row)), []).append(i)
    return [np.array(rows) for rows in groups.values()]
