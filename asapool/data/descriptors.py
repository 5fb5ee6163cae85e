"""Descriptors: numbers that belong to a whole molecule, from columns of its table or computed by RDKit.

The recipe of a set names them, `{"descriptors": {"columns": [...], "rdkit": [...]}}`, so that new molecules get the
same ones in the same order. A missing number is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asapool.data.csr import Floats
from asapool.data.molecules import load_rdkit
from asapool.data.options import ReadOptions
from asapool.errors import DataError

MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?")


def descriptor_columns(options: ReadOptions) -> list[str]:
    """The columns that a table must have: those of the recipe, or those asked for."""
    known = _known(options)
    if known is not None or options.recipe is not None:
        return [str(name) for name in (known or {}).get("columns", ())]
    given = options.descriptors or ()
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    if len(set(names)) < len(names) or "" in names:
        raise DataError(f"descriptors must be different names of columns, got {given!r}")
    return names


def rdkit_names(options: ReadOptions) -> list[str]:
    """The properties that RDKit computes: those of the recipe, or all of its fast ones if asked for."""
    known = _known(options)
    if known is not None or options.recipe is not None:
        return [str(name) for name in (known or {}).get("rdkit", ())]
    return _properties() if options.rdkit_descriptors else []


def read_number(cell: Any, where: str, name: str) -> float:
    """A cell as a number; an empty one is NaN, and text is refused."""
    text = "" if cell is None else str(cell).strip()
    if text.lower() in MISSING:
        return math.nan
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise DataError(
            f"{where}: a finite number expected for the descriptor {name!r}, {text[:40]!r} came. "
            "Correct it, or leave it empty"
        )
    return number


def rdkit_descriptors(smiles: Sequence[str], names: Sequence[str]) -> Floats:
    """RDKit's properties of each molecule, (G, D); NaN where one cannot be computed.

    Args:
        smiles: Readable SMILES.
        names: Of rdMolDescriptors.Properties, such as "amw" or "CrippenClogP".

    >>> rdkit_descriptors(["CCO"], ["NumHBD", "NumRings"]).tolist()
    [[1.0, 0.0]]
    """
    Chem = load_rdkit()
    from rdkit import rdBase
    from rdkit.Chem.rdMolDescriptors import Properties

    unknown = sorted(set(names) - set(_properties()))
    if unknown:
        raise DataError(f"this version of RDKit has no property {unknown[0]!r}. Install the one of the training")
    compute = Properties(list(names)).ComputeProperties
    with rdBase.BlockLogs():
        rows = [list(compute(Chem.MolFromSmiles(text))) for text in smiles]
    values = np.array(rows, np.float64).reshape(len(rows), len(names))
    values[~np.isfinite(values) | (np.abs(values) > np.finfo(np.float32).max)] = np.nan
    return values.astype(np.float32)


def missing_note(values: Floats, names: Sequence[str], where: str) -> list[str]:
    """A sentence about descriptors that are missing, if some are."""
    counts = np.isnan(values).sum(axis=0).tolist()
    some = [f"{name!r} ({count:,} of {len(values):,} rows)" for name, count in zip(names, counts, strict=True) if count]
    if not some:
        return []
    return [f"{where}: descriptors without a value, for which the model takes the training mean: {', '.join(some)}"]


def _known(options: ReadOptions) -> Mapping[str, Any] | None:
    found = None if options.recipe is None else options.recipe.get("descriptors")
    return found if isinstance(found, Mapping) else None


def _properties() -> list[str]:
    load_rdkit()
    from rdkit.Chem.rdMolDescriptors import Properties

    return list(Properties.GetAvailableProperties())
