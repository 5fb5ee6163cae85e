"""A hierarchy as JSON and back; the text says which version of the form it has."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np

from asapool.errors import DataError
from asapool.insight.hierarchy import Hierarchy
from asapool.insight.level import Level

FORMAT, VERSION = "asapool.hierarchy", 1
WHOLE = ("kept", "medoid", "cluster", "member", "source", "target", "target_node", "truth")  # arrays of whole numbers


def to_json(hierarchy: Hierarchy) -> str:
    """One JSON object with the fields of Hierarchy and Level under their names; numbers as exact as they are."""
    told: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for f in fields(Hierarchy):
        value = getattr(hierarchy, f.name)
        if f.name == "levels":
            told["levels"] = [{g.name: getattr(level, g.name).tolist() for g in fields(Level)} for level in value]
        elif f.name == "importance":
            told["importance"] = {kind: scores.tolist() for kind, scores in value.items()}
        else:
            told[f.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return json.dumps(told, ensure_ascii=False)


def from_json(text: str) -> Hierarchy:
    """Read what to_json wrote; anything else gives a DataError that says what is wrong."""
    try:
        told = json.loads(text)
    except ValueError as error:
        raise DataError(f"a hierarchy is JSON, and this is not: {error}") from None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise DataError(f'a hierarchy has "format": "{FORMAT}". Give what Hierarchy.to_json wrote')
    if told.get("version") != VERSION:
        raise DataError(
            f"the hierarchy is of version {told.get('version')!r}, this asapool reads {VERSION}. Update asapool"
        )
    try:
        return _read(told)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"the hierarchy is damaged ({type(error).__name__}: {error}). Write it again with to_json"
        ) from None


def _read(told: dict[str, Any]) -> Hierarchy:
    values = {name: told[name] for name in (f.name for f in fields(Hierarchy))}
    levels = tuple(Level(**{f.name: _array(f.name, level[f.name]) for f in fields(Level)}) for level in told["levels"])
    for name in ("probability", "source", "target_node", "weight"):
        values[name] = _array(name, told[name])
    importance = {str(kind): _array("importance", scores) for kind, scores in told["importance"].items()}
    truth = None if told["truth"] is None else _array("truth", told["truth"])
    values |= {"classes": tuple(told["classes"]), "names": tuple(told["names"]), "target": int(told["target"])}
    made = Hierarchy(**values | {"levels": levels, "importance": importance, "truth": truth})
    if any(len(scores) != made.nodes for scores in importance.values()) or len(made.classes) != len(made.probability):
        raise ValueError("the lists have different lengths")
    return made


def _array(name: str, values: Any) -> Any:
    return np.array(values, dtype=np.int64 if name in WHOLE else np.float64)
