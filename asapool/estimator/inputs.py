"""The X and y of an estimator: graphs of any form become one packed set, and labels become targets."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Number
from pathlib import Path
from reprlib import repr as short
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from asapool.data import GraphSet, Reading, load, read
from asapool.data.frames import MISSING, columns_of, is_frame
from asapool.data.molecule_columns import SMILES_COLUMNS
from asapool.data.reading import MAKES_X, ReadOptions
from asapool.data.splits import strata
from asapool.data.tables import find
from asapool.data.targets import Target
from asapool.errors import ConfigError, DataError, InputError


def pack(X: Any, labels: Any, recipe: Mapping[str, Any] | None = None, task: str | None = "classification") -> GraphSet:
    """Any X as one packed set; with a recipe, with the same features as the training graphs.

    Args:
        X: a GraphSet; a list, array or column of NetworkX graphs, PyG Data, SMILES or RDKit molecules; or a data frame
            with a column of SMILES and numeric columns, the descriptors.
        labels: whether the graphs' own labels are read, as in asapool.load.
        recipe: of the training graphs.
        task: the kind of the labels, if there is no recipe; None = inferred from the values.

    >>> pack(["CCO", "c1ccccc1"], labels="ignored")
    GraphSet('graphs', graphs=2, nodes=9, edges=16, features=36, classes=0)
    """
    if isinstance(X, GraphSet):
        return X  # already has features; their number is checked by the caller
    if is_frame(X):
        if len(X.columns) > 1:
            return _molecules_and_descriptors(X, recipe)
        X = X[X.columns[0]]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUT":
        if X.shape[1] > 1:
            raise DataError(
                f"X must be one column of SMILES or graphs, got an array of {X.shape[1]}, which have no names. If a "
                "ColumnTransformer made it from a data frame, call its set_output(transform='pandas')"
            )
        X = X[:, 0]
    items = list(X) if not isinstance(X, (str, bytes)) and hasattr(X, "__iter__") else None
    if not items or all(isinstance(item, (np.ndarray, tuple, list, int, float)) for item in items):
        given = (
            type(X).__name__ if items is None else f"a list of {type(items[0]).__name__}" if items else "an empty list"
        )
        raise DataError(f"X must be a GraphSet or a list of NetworkX graphs, PyG Data or SMILES, got {given}")
    if any(_is_molecule(item) for item in items):
        items = _smiles_of(items)
    if any(isinstance(item, str) for item in items):
        return _molecules(items, recipe)
    if all(getattr(item, "x", None) is not None for item in items):
        recipe = None  # PyG's x already has features, whatever they were made from
    return load(items, labels=labels, recipe=recipe, task=None if recipe else task)


def _molecules_and_descriptors(X: Any, recipe: Mapping[str, Any] | None) -> GraphSet:
    """The molecules of a data frame; its other columns are their descriptors, or those that the model was fitted on."""
    names = [str(name) for name in X.columns]
    place = find(names, None, SMILES_COLUMNS, Path("X"))
    smiles = None if place is None else names[place]
    fitted = recipe is None or "descriptors" in recipe
    if not fitted or (smiles is None and recipe is None):
        named = ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")
        beside = ", or a column 'smiles' beside columns of numbers (descriptors)" if fitted else ""
        rename = "Rename the column of SMILES to 'smiles', or give a single column"
        advice = rename if fitted else "Give one of them, such as X['smiles']"
        raise DataError(
            f"X must be one column of SMILES or graphs{beside}, got a table of {len(names)}: {named}. {advice}"
        )
    if hasattr(X, "reset_index"):
        X = X.reset_index(drop=True)  # a named index would be read as ids, which may repeat after resampling
    if recipe is not None:
        return _all_of(read(X, recipe=recipe, labels="ignored", skip_invalid=True), len(X))
    others = {name: cells for name, cells in columns_of(X, "X").items() if name != smiles}
    for name, cells in others.items():
        wrong = next((cell for cell in cells if cell is not None and not isinstance(cell, (Number, np.bool_))), None)
        if wrong is not None:
            kind = "text" if isinstance(wrong, str) else f"{type(wrong).__name__} objects"
            raise DataError(
                f"X: the column {name!r} holds {kind}, such as {str(wrong)[:40]!r}, not numbers. Leave it out"
            )
    return _all_of(read(X, smiles=smiles, descriptors=list(others), labels="ignored", skip_invalid=True), len(X))


def _all_of(reading: Reading, count: int) -> GraphSet:
    """The graphs of a data frame whose molecules could all be read."""
    if reading.skipped:
        line, reason = reading.skipped[0]
        raise DataError(
            f"data frame, line {line}: {reason}. {len(reading.skipped)} of {count} cannot be read: leave them out"
        )
    return reading.graphs


def _is_molecule(item: Any) -> bool:
    return hasattr(item, "GetNumAtoms") and hasattr(item, "GetBonds")


def _smiles_of(molecules: Sequence[Any]) -> list[str]:
    """SMILES of RDKit molecules."""
    from rdkit import Chem

    for place, item in enumerate(molecules):
        if item is None:
            count = sum(other is None for other in molecules)
            raise DataError(
                f"X[{place}]: expected an RDKit molecule, got None, which RDKit returns for invalid SMILES. "
                f"{count} of {len(molecules)} are None: leave them out"
            )
        if not _is_molecule(item):
            raise DataError(f"X[{place}]: expected an RDKit molecule like the others, got {short(item)}. Leave it out")
    return [Chem.MolToSmiles(molecule) for molecule in molecules]


def _molecules(smiles: Sequence[Any], known: Mapping[str, Any] | None) -> GraphSet:
    """The molecules of a list of SMILES; known: the recipe of the training graphs."""
    from asapool.data.molecule_table import pack_molecules, read_smiles_list
    from asapool.data.molecules import VERSION, read_smiles

    for place, item in enumerate(smiles):
        if not isinstance(item, str):
            raise DataError(f"X[{place}]: expected SMILES like the others, got {item!r}. Leave it out")
    molecules = read_smiles(smiles)
    if molecules.failed:
        place, reason = molecules.failed[0]
        raise DataError(
            f"X[{place}]: {reason}. {len(molecules.failed)} of {len(smiles)} cannot be read: leave them out"
        )
    if known is not None and not known.keys().isdisjoint(("descriptors", "edge_features")):
        return read_smiles_list(smiles, ReadOptions(recipe=known, labels="ignored")).graphs
    recipe = {"version": VERSION, "kind": "smiles", "smiles": "smiles", "target": None}
    return pack_molecules(molecules, source_text=tuple(smiles), recipe=recipe)


def check_meaning(made: Mapping[str, Any], fitted: Mapping[str, Any], who: str) -> None:
    """Refuse features that were made by another recipe than those of the training graphs."""
    new, old = _meaning(made), _meaning(fitted)
    differ = [key for key in MAKES_X if new.get(key) != old.get(key)]
    if new and old and differ:
        key = differ[0]
        raise InputError(
            f"X has node features made with {key} = {short(new.get(key))}, but {who} was fitted on those with "
            f"{short(old.get(key))}. Load the graphs with the estimator's recipe_"
        )


def _meaning(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a recipe that determines the features; empty for given features of unknown meaning, as PyG's x.

    >>> _meaning({"features": "degree", "max_degree": 2, "classes": []})
    {'features': 'degree', 'max_degree': 2}
    >>> _meaning({"features": "attributes", "attributes": ["x0", "x1"]})
    {}
    """
    names = recipe.get("attributes", ())
    if names and list(names) == [f"x{k}" for k in range(len(names))]:
        return {}
    return {key: recipe[key] for key in MAKES_X if key in recipe}


Ints = npt.NDArray[np.int64]


def with_classes(graphs: GraphSet, y: Any) -> tuple[npt.NDArray[Any], GraphSet]:
    """The classes, (C,), and the set with the labels y, or, without y, with its own labels.

    Several columns of y are yes/no tasks: the classes are then the numbers of the tasks, (T,).
    """
    if y is None:
        if graphs.target.kind == "multilabel":
            return np.arange(graphs.target.tasks), graphs
        if graphs.target.kind == "regression":
            raise DataError("X has measured values, but a classifier needs classes. Use ASAPRegressor, or give y")
        if graphs.num_classes < 2 or (graphs.y < 0).any():
            raise DataError("X has graphs without a class, or only one class. Give y")
        return np.array(graphs.class_names), graphs
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        values = _values(y, len(graphs), "0, 1 or NaN")
        if not np.isin(values[~np.isnan(values)], (0, 1)).all():
            raise InputError("several columns of y are yes/no tasks, and must be 0, 1 or NaN (missing)")
        target = Target(kind="multilabel", names=_names(y, values.shape[1]), classes=("0", "1"))
        return np.arange(values.shape[1]), _with(graphs, values, target)
    given = class_labels(y, len(graphs))
    classes, codes = np.unique(given, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"y must have at least two classes, got only {classes.tolist()}")
    names = tuple(map(str, classes.tolist()))
    target = Target(names=_names(y, 1), classes=names)
    return classes, replace(graphs, y=codes.astype(np.int64), class_names=names, target=target)


def with_values(graphs: GraphSet, y: Any) -> GraphSet:
    """The set with the measured values y, (G,) or (G, T) with NaN for missing ones; or, without y, with its own."""
    if y is None:
        if graphs.target.kind != "regression":
            raise DataError("X has no measured values. Give y")
        _check_varied(graphs.y, "the measured values in X")
        return graphs
    values = _values(y, len(graphs), "a finite number or NaN")
    labelled = _with(graphs, values, Target(kind="regression", names=_names(y, values.shape[1])))
    _check_varied(values, "the values in y")
    return labelled


def _check_varied(values: npt.NDArray[Any], what: str) -> None:
    """Refuse measured values (G, T) if every task is constant, as asapool.load does for tables."""
    if all(len(np.unique(column[~np.isnan(column)])) == 1 for column in values.T):
        raise InputError(f"{what} are all equal, so there is nothing to learn. Add graphs with other values")


def weights_by_name(class_weight: Any, classes: npt.NDArray[Any]) -> str | dict[str, float]:
    """scikit-learn's class_weight as train.class_weights; the keys of a dict are the classes in y."""
    if not isinstance(class_weight, Mapping):
        return class_weight or "none"
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise ConfigError(f"class_weight: there is no class {unknown[0]!r}. The classes are {short(known)}")
    return {str(np.asarray(label).item()): float(value) for label, value in class_weight.items()}


def _with(graphs: GraphSet, values: npt.NDArray[np.float64], target: Target) -> GraphSet:
    """The set with other targets; graphs without any value are refused."""
    empty = np.isnan(values).all(axis=1)
    if empty.any():
        raise InputError(f"y[{int(empty.argmax())}]: expected a value, got none. Leave out graphs without a value")
    return replace(graphs, y=values, target=target, class_names=())


def _values(y: Any, G: int, expected: str) -> npt.NDArray[np.float64]:
    """y as numbers, (G, T)."""
    try:
        values = np.asarray(y.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(y, "to_numpy") else y, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"y must be numbers, got {short(np.asarray(y, dtype=object).ravel().tolist())}") from None
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != G or not values.shape[1]:
        raise InputError(f"y must have one row per graph, shape ({G},) or ({G}, tasks), got {np.shape(y)}")
    if np.isinf(values).any():
        place = int(np.isinf(values).any(axis=1).argmax())
        raise InputError(f"y[{place}]: expected {expected}, got infinity. Correct it, or leave out the graph")
    return values


def _names(y: Any, T: int) -> tuple[str, ...]:
    """The names of the columns of a pandas table or series; else y, or y0, y1, …"""
    names = getattr(y, "columns", None)
    if names is None and getattr(y, "name", None) is not None:
        names = [y.name]
    if names is not None and len(set(map(str, names))) == T:
        return tuple(map(str, names))
    return ("y",) if T == 1 else tuple(f"y{k}" for k in range(T))


def class_labels(y: npt.ArrayLike, G: int) -> npt.NDArray[Any]:
    """y as an array of G classes; missing and continuous values are refused.

    >>> class_labels([True, False], 2), class_labels(["b", "a"], 2).tolist()
    (array([ True, False]), ['b', 'a'])
    """
    values = np.asarray(y, dtype=object)
    if values.shape == (G, 1):
        text = "A column-vector y was passed when a 1d array was expected. Use y.ravel()"
        warnings.warn(text, DataConversionWarning, stacklevel=4)
        y = values = values[:, 0]
    if values.shape != (G,):
        raise InputError(f"y must have one class per graph, shape ({G},), got {values.shape}")
    for place, value in enumerate(values.tolist()):
        if value is None or (not isinstance(value, str) and str(value) in MISSING):
            raise InputError(f"y[{place}]: expected a class, got {value!r}. Leave out graphs without a class")
    given = np.asarray(y)
    if given.dtype == object:  # a pandas column: infer the type from the values
        given = np.asarray(given.tolist())
    try:
        check_classification_targets(given)
    except ValueError:
        raise InputError(
            f"y must be classes (strings, integers, booleans), got {short(given.tolist())}. "
            "Bin measured values into classes first, or use ASAPRegressor"
        ) from None
    return given


def hold_out_of(graphs: GraphSet, fraction: Any, rng: np.random.Generator) -> SimpleNamespace:
    """Like hold_out, for any target: measured values by their quantiles, yes/no tasks by the rarest yes."""
    groups = graphs.y if graphs.y.ndim == 1 else strata(graphs, min(10, len(graphs)), "a held-out part", "Add graphs")
    return hold_out(groups, fraction, rng)


def hold_out(y: Ints, fraction: Any, rng: np.random.Generator) -> SimpleNamespace:
    """Numbers of the training and validation graphs; every class keeps at least one training graph.

    >>> parts = hold_out(np.array([0] * 10 + [1] * 20), 0.1, np.random.default_rng(0))
    >>> len(parts.train), np.sort(parts.val // 10).tolist()
    (27, [0, 1, 2])
    """
    number = isinstance(fraction, (int, float, np.integer, np.floating)) and not isinstance(fraction, bool)
    if not number or not 0 <= fraction < 1:
        raise ConfigError(f"validation_fraction must lie in [0, 1), got {fraction!r}")
    held = []
    for c in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == c))
        held.append(members[: min(round(fraction * len(members)), len(members) - 1)])
    val = np.sort(np.concatenate(held))
    return SimpleNamespace(train=np.setdiff1d(np.arange(len(y)), val), val=val)
