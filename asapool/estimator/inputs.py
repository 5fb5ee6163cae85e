"""The X of an estimator: whatever holds graphs becomes one packed set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from reprlib import repr as short
from typing import Any

import numpy as np

from asapool.data import GraphSet, load
from asapool.data.recipe import MAKES_X
from asapool.errors import DataError, InputError


def pack(X: Any, labels: Any, recipe: Mapping[str, Any] | None = None, task: str | None = "classification") -> GraphSet:
    """Any X as one packed set; with a recipe, with the columns of the graphs that were learned from.

    Args:
        X: a GraphSet; or a list, array or column of NetworkX graphs, PyG Data, SMILES or RDKit molecules.
        labels: whether the graphs' own labels are read, as in asapool.load.
        recipe: of the graphs that were learned from.
        task: the kind of the labels, where there is no recipe; None = decided by the values.

    >>> pack(["CCO", "c1ccccc1"], labels="ignored")
    GraphSet('graphs', graphs=2, nodes=9, edges=16, features=36, classes=0)
    """
    if isinstance(X, GraphSet):
        return X  # its columns are finished: their number is checked by the caller
    if hasattr(X, "columns") and hasattr(X, "iloc"):  # a pandas table
        if len(X.columns) != 1:
            named = ", ".join(map(repr, X.columns[:5])) + (", …" if len(X.columns) > 5 else "")
            raise DataError(
                f"X must be one column of SMILES or graphs, got a table of {len(X.columns)}: {named}. "
                "Give one of them, such as X['smiles']"
            )
        X = X.iloc[:, 0]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1:
        X = X[:, 0]
    items = list(X) if not isinstance(X, (str, bytes)) and hasattr(X, "__iter__") else None
    if not items:
        came = "an empty list" if items is not None else type(X).__name__
        raise DataError(f"X must be a GraphSet or a list of NetworkX graphs, PyG Data or SMILES, got {came}")
    if all(hasattr(item, "GetNumAtoms") and hasattr(item, "GetBonds") for item in items):
        items = _smiles_of(items)
    if any(isinstance(item, str) for item in items):
        return _molecules(items)
    if all(getattr(item, "x", None) is not None for item in items):
        recipe = None  # PyG's x holds finished columns, whatever they were made of
    return load(items, labels=labels, recipe=recipe, task=None if recipe else task)


def _smiles_of(molecules: Sequence[Any]) -> list[str]:
    """SMILES of RDKit molecules."""
    from rdkit import Chem

    return [Chem.MolToSmiles(molecule) for molecule in molecules]


def _molecules(smiles: Sequence[Any]) -> GraphSet:
    from asapool.data.molecule_table import pack_molecules
    from asapool.data.molecules import VERSION, read_smiles

    for place, item in enumerate(smiles):
        if not isinstance(item, str):
            raise DataError(f"X[{place}]: a SMILES text as in the others expected, got {item!r}. Leave it out")
    found = read_smiles(smiles)
    if found.failed:
        place, reason = found.failed[0]
        raise DataError(f"X[{place}]: {reason}. {len(found.failed)} of {len(smiles)} cannot be read: leave them out")
    recipe = {"version": VERSION, "kind": "smiles", "smiles": "smiles", "target": None}
    return pack_molecules(found, source_text=tuple(smiles), recipe=recipe)


def check_meaning(made: Mapping[str, Any], fitted: Mapping[str, Any], who: str) -> None:
    """Refuse columns that were made by another recipe than those that were learned from."""
    theirs, ours = _meaning(made), _meaning(fitted)
    differ = [key for key in MAKES_X if theirs.get(key) != ours.get(key)]
    if theirs and ours and differ:
        key = differ[0]
        raise InputError(
            f"X has node features made with {key} = {short(theirs.get(key))}, but {who} was fitted on those with "
            f"{short(ours.get(key))}. Load the graphs with the estimator's recipe_"
        )


def _meaning(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What of a recipe decides the columns; nothing where they came finished, as PyG's x, and mean who knows what.

    >>> _meaning({"features": "degree", "max_degree": 2, "classes": []})
    {'features': 'degree', 'max_degree': 2}
    >>> _meaning({"features": "attributes", "attributes": ["x0", "x1"]})
    {}
    """
    names = recipe.get("attributes", ())
    if names and list(names) == [f"x{k}" for k in range(len(names))]:
        return {}
    return {key: recipe[key] for key in MAKES_X if key in recipe}
