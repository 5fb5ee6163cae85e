"""Which columns of a table of molecules hold the SMILES, the ids, the labels and the descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from asapool.data.classes import UNLABELLED
from asapool.data.descriptors import descriptor_columns
from asapool.data.reading import ReadOptions
from asapool.data.tables import column_of, find, guess, has_name, refuse_several, which_column
from asapool.errors import DataError

# usual names, which are compared without case and separators: CAS-Number is cas_number
SMILES_COLUMNS = ("smiles", "canonical_smiles", "smi", "smile", "structure")
CLASS_COLUMNS = ("label", "target", "class", "y", "activity", "active", "outcome")
UNIQUE_IDS = ("id", "graph_id", "mol_id", "molecule_id", "compound_id", "chembl_id")  # unique in a training set
NAMES = (
    "molecule_name", "compound", "compound_name", "cmpd_id", "molecule_chembl_id", "cas", "name", "identifier",
    "sample_id", "sample_name", "substance_id", "structure_id", "record_id", "cas_number", "cas_no", "cas_rn",
    "cas_registry_number", "inchikey", "standard_inchikey", "zinc_id", "drugbank_id", "pubchem_cid", "pubchem_id",
    "cid", "sid", "dtxsid", "molregno", "mol_name", "cmpd_name", "idx", "index", "row_id", "unnamed_0",
)  # fmt: skip
ID_COLUMNS = (*UNIQUE_IDS, *NAMES)
WHICH_LABELS = (
    f"{which_column('target', 'the classes')}. To predict all of them, add --task multilabel if they hold yes or "
    "no, or --task regression if they hold measured values"
)


class Columns(NamedTuple):
    """The names of the columns that are used."""

    smiles: str
    targets: tuple[str, ...]
    id: str | None
    descriptors: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()  # all columns, with keep_columns
    unread: tuple[str, ...] = ()  # columns that may hold labels, if labels are optional and it is not clear which


def choose_columns(header: Sequence[str], path: Path, options: ReadOptions) -> Columns:
    """The columns that the options name, else those with usual names."""
    smiles = guess(header, options.smiles, _preferred(options), path, "smiles", "the SMILES")
    reads = "" if options.recipe is None else ", a descriptor that the model reads"
    extra = [column_of(header, name, path, reads) for name in descriptor_columns(options)]
    wanted = () if options.target is None or options.label_rule == "ignored" else _names(options.target, header)
    named = [column_of(header, name, path) for name in wanted]
    taken = {smiles, *extra, *named}
    candidates = list(header) if options.id_column is not None else [n for k, n in enumerate(header) if k not in taken]
    place = find(candidates, options.id_column, ID_COLUMNS, path)
    id_column = None if place is None else candidates[place]
    used = {header[k] for k in taken} | {str(id_column)}
    targets = _targets(header, path, options, named, used)
    kept = tuple(header) if options.keep_columns else ()
    optional = options.labels == "optional" and options.recipe is None and not targets
    unread = tuple(name for name in header if name not in used) if optional else ()
    return Columns(header[smiles], targets, id_column, tuple(header[k] for k in extra), kept, unread)


def unread_note(columns: Columns, path: Path) -> list[str]:
    """A note if labels are optional and several columns may hold them."""
    if not columns.unread:
        return []
    names = ", ".join(map(repr, columns.unread[:5])) + ", …" * (len(columns.unread) > 5)
    return [f"{path}: no labels were read; they may be in {names}. {WHICH_LABELS}"]


def names_may_repeat(columns: Columns, options: ReadOptions) -> bool:
    """Whether the ids are names, which may repeat, and not ids that must be unique in a training set."""
    return options.id_column is None and not has_name(str(columns.id), UNIQUE_IDS)


def _preferred(options: ReadOptions) -> tuple[str, ...]:
    """Names to try for the SMILES column: the name in the recipe first, then the usual ones."""
    known = None if options.recipe is None else options.recipe.get("smiles")
    return tuple(dict.fromkeys((known, *SMILES_COLUMNS))) if isinstance(known, str) else SMILES_COLUMNS


def _targets(
    header: Sequence[str], path: Path, options: ReadOptions, named: Sequence[int], used: set[str]
) -> tuple[str, ...]:
    """The label columns: those named in the options, those in the recipe, one with a usual name, or what is left."""
    if options.label_rule == "ignored":
        return ()
    if options.target is not None:
        return tuple(header[k] for k in named)
    if options.recipe is not None:  # new data: only a column named as in the training data is sure to mean the same
        known = options.known_target
        names = (options.recipe.get("target"),) if known is None else known.names
        return tuple(name for name in names if isinstance(name, str) and name in header)
    left = [name for name in header if name not in used]
    left = [name for name in left if not has_name(name, ID_COLUMNS)] or left  # a second id is not a label
    if options.task in ("regression", "multilabel") and left:
        return tuple(left)
    column = _class_column(left, header, path, options)
    return () if column is None else (column,)


def _names(target: str | Sequence[str], header: Sequence[str]) -> Sequence[str]:
    """The columns that target names: a list, one name, or several separated by commas."""
    if not isinstance(target, str):
        return target
    parts = [name.strip() for name in target.split(",")]
    return parts if target not in header and len(parts) > 1 else [target]


def _class_column(left: Sequence[str], header: Sequence[str], path: Path, options: ReadOptions) -> str | None:
    """The label column: the one with a usual name, or the only one left."""
    refuse_several(left, CLASS_COLUMNS, path, "target", "the classes")
    place = find(left, None, CLASS_COLUMNS, path)
    if place is not None or len(left) == 1:
        return left[place or 0]
    if options.label_rule == "optional":
        return None
    if not left:
        raise DataError(f"{path}: there is no column with the classes. Add one {UNLABELLED}")
    columns = ", ".join(map(repr, header))
    raise DataError(
        f"{path}: no column is called {' or '.join(CLASS_COLUMNS[:3])}; the columns are {columns}. {WHICH_LABELS}"
    )
