"""Validates the metadata of a model file before anything is built from it.

A file with a correct checksum can still have been written by another program. Its entries are checked here, so that a
wrong one is reported by name instead of failing somewhere later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

MEMBERS = 1000  # limit on the models of an ensemble
MOST = 2**24  # limit on counts such as features or classes
Check = Callable[[Any], bool]


def check_content(content: Any) -> None:
    """Raise a ValueError that names the first entry of the wrong type.

    >>> check_content({"format": 1})
    Traceback (most recent call last):
    ValueError: config is missing
    """
    if not isinstance(content, dict):
        raise ValueError(f"expected a table, got {type(content).__name__}")
    for name, check in _ENTRIES.items():
        if name not in content:
            raise ValueError(f"{name} is missing")
        if not check(content[name]):
            raise ValueError(f"{name} has a wrong value, {_short(content[name])}")
    for name in ("edge_channels", "graph_channels"):
        if not _optional(_whole)(content.get(name)):
            raise ValueError(f"{name} has a wrong value, {_short(content[name])}")
    if not _optional(_table)(content.get("target")):
        raise ValueError(f"target has a wrong value, {_short(content['target'])}")
    members = content.get("members", [])
    if not isinstance(members, list) or ("members" in content and not 1 <= len(members) <= MEMBERS):
        raise ValueError(f"members must be a list of 1 to {MEMBERS}, got {_short(members)}")
    for member in members:
        good = isinstance(member, dict) and _optional(_whole)(member.get("typical_nodes", 0.5))
        if not good or not _optional(_table)(member.get("target")):
            raise ValueError(f"members has a wrong value, {_short(member)}")
    _check_recipe(content["recipe"])


def newer(version: Any, here: str) -> bool:
    """Whether a version is later than this one; False if it is not a version at all.

    >>> newer("0.10.0", "0.9.1"), newer("0.1.0", "0.1.0"), newer("?", "0.1.0")
    (True, False, False)
    """
    try:
        return _parts(version) > _parts(here)
    except ValueError:
        return False


def _parts(version: Any) -> list[int]:
    return [int(part) for part in str(version).split("+")[0].split(".")[:3]]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _versions(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_text, value.values()))


def _classes(value: Any) -> bool:
    return _list_of(_text)(value) and 0 < len(value) <= MOST and len(set(value)) == len(value)


_ENTRIES: Mapping[str, Check] = {
    "format": _whole, "config": _table, "in_channels": _whole, "typical_nodes": _optional(_whole), "classes": _classes,
    "recipe": _table, "summary": _table, "fingerprint": _optional(_text), "extra": _table, "versions": _versions,
}  # fmt: skip

_columns = _list_of(_list_of(_text))
_RECIPE: Mapping[str, Check] = {
    "version": _whole, "kind": _text, "features": _text, "labels": _columns, "attributes": _list_of(_text),
    "max_degree": _whole, "classes": _list_of(_text), "smiles": _optional(_text), "target": _optional(_text),
    "edge_labels": _optional(_columns), "edge_attributes": _optional(_whole), "edge_features": _optional(_text),
    "task": _optional(_table), "descriptors": _optional(_table),
    "networkx": lambda v: isinstance(v, dict) and all(_optional(_list_of(_text))(v.get(k)) for k in v)
    and {"node_labels", "node_attributes"} <= v.keys(),
}  # fmt: skip


def _check_recipe(recipe: dict[str, Any]) -> None:
    for name, value in recipe.items():
        if name in _RECIPE and not _RECIPE[name](value):
            raise ValueError(f"recipe.{name} has a wrong value, {_short(value)}")
    needed = {"labels": ("labels",), "attributes": ("attributes",), "both": ("labels", "attributes")}
    needed["degree"] = ("max_degree",)
    for name in needed.get(recipe.get("features", ""), ()):
        if name not in recipe:
            raise ValueError(f"recipe.{name} is missing")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
