"""The TOML file of a plan: [plan], [[data]], [model], [train] and [[row]], read and checked for unknown settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from asapool.data.download import local_tu
from asapool.errors import ConfigError
from asapool.files import load_toml
from asapool.training.config import AUTHORS_SEEDS
from asapool.training.settings import DataConfig

FOLDER = Path(__file__).parent / "plans"
INSTEAD = {"FRANKENSTEIN": "Mutagenicity"}  # replacements for data sets that are not on this machine
PLAN = ("name", "title", "metric", "seeds", "folds", "protocol", "choose", "reference")
LONGEST = 200  # bytes of a name used for files; file systems allow 255, including suffixes
SOURCE = tuple(f.name for f in fields(DataConfig))


@dataclass(frozen=True)
class RowEntry:
    """One [[row]], or one point of its grid: its name, its settings, those on single data sets, models per run."""

    name: str
    tables: Mapping[str, Mapping[str, Any]]
    on: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    ensemble: int = 1

    def on_data(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        """The additional settings of the row on this data set."""
        return next((tables for data, tables in self.on.items() if _folded(data) == _folded(name)), {})


@dataclass(frozen=True)
class DataEntry:
    """One [[data]]: its name, its source, its settings, whether it is used only on request, and its split file."""

    name: str
    source: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, Any]]
    on_request: bool = False
    splits: str | None = None  # file of published splits
    splits_digest: str | None = None  # of its folds; if the plan gives it, the file is read only for training


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    """The content of a plan file, before presets and options are applied."""

    place: str  # for messages
    name: str
    title: str
    metric: Literal["test", "validation"]
    seeds: int | tuple[int, ...]  # how many of the authors' seeds, or a list
    folds: int
    protocol: str
    choose: bool
    reference: str | None  # the row that the others are compared with
    tables: Mapping[str, Mapping[str, Any]]
    data: tuple[DataEntry, ...]
    rows: tuple[RowEntry, ...]

    @property
    def methods(self) -> list[str]:
        """The names that select rows: their own, and the methods of their models."""
        return list(dict.fromkeys(word for row in self.rows for word in self._words(row)))

    @property
    def datasets(self) -> list[str]:
        """The names that select data sets."""
        return [entry.name for entry in self._choices().values()]

    def has_data(self, name: str) -> bool:
        """Whether the plan has a data set of this name, ignoring case; D&D is DD."""
        return _folded(name) in self._choices()

    def rows_named(self, names: Sequence[str] | None) -> list[RowEntry]:
        """The rows of these names, in the order of the plan; what is not the name of a row is a method."""
        if names is None:
            return list(self.rows)
        for name in names:
            if name not in self.methods:
                raise ConfigError(f"{self.place}: has no method {name!r}. It has {', '.join(self.methods)}")
        by_name = {row.name for row in self.rows} & set(names)
        by_method = set(names) - by_name
        return [row for row in self.rows if row.name in by_name or self._words(row)[1] in by_method]

    def data_named(self, names: Sequence[str] | None, root: str | PathLike[str] | None, smoke: bool) -> list[DataEntry]:
        """The data sets of these names; by default those of the plan, missing ones replaced according to INSTEAD."""
        if names is None:
            plain = [entry for entry in self.data if not entry.on_request]
            return plain if smoke else [_or_instead(entry, root) for entry in plain]
        for name in names:
            if not self.has_data(name):
                raise ConfigError(f"{self.place}: has no data set {name!r}. It has {', '.join(self.datasets)}")
        return [self._choices()[_folded(name)] for name in names]

    def _words(self, row: RowEntry) -> tuple[str, str]:
        return row.name, row.tables["model"].get("method", self.tables["model"].get("method", "asap"))

    def _choices(self) -> dict[str, DataEntry]:
        known = {_folded(entry.name): entry for entry in self.data}
        for entry in self.data:
            if entry.name in INSTEAD:
                other = INSTEAD[entry.name]
                known.setdefault(_folded(other), DataEntry(other, {}, entry.tables))
        return known


def plan_names() -> list[str]:
    """The plans that come with asapool.

    >>> "table2" in plan_names()
    True
    """
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_plan(path_or_name: str | PathLike[str]) -> PlanFile:
    """Read a file, or the plan of asapool with that name."""
    path = Path(path_or_name)
    shipped = FOLDER / f"{path_or_name}.toml"
    if path.suffix != ".toml":
        if not shipped.is_file():
            raise ConfigError(f"there is no plan {str(path_or_name)!r}. Use {', '.join(plan_names())} or a FILE.toml")
        path = shipped
    return _plan(load_toml(path), path)


def _plan(content: dict[str, Any], path: Path) -> PlanFile:
    _known(content, ("plan", "data", "model", "train", "row"), path, "table")
    head = _table(content.get("plan", {}), path, "plan")
    _known(head, PLAN, path, "setting of [plan]")
    name = _short(head.get("name", path.stem), path, "plan.name")
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum() or name.startswith("."):
        raise ConfigError(f"{path}: plan.name is used for file names: letters, digits, - and _ only, got {name!r}")
    rows = tuple(row for entry in _list(content, "row", path) for row in _rows(entry, path))
    file = PlanFile(
        place=str(path) if path.parent != FOLDER else name,
        name=name,
        title=_name(head.get("title", name), path, "plan.title"),
        metric=head.get("metric", "test"),
        seeds=_seeds(head.get("seeds", len(AUTHORS_SEEDS)), path),
        folds=_whole(head.get("folds", 10), path, "plan.folds"),
        protocol=head.get("protocol", "authors"),
        choose=_truth(head.get("choose", False), path, "plan.choose"),
        reference=_reference(head.get("reference"), rows, path),
        tables=_tables(content, path),
        data=tuple(_data(entry, path) for entry in _list(content, "data", path)),
        rows=rows or (RowEntry("asap", {"model": {}, "train": {}}),),
    )
    for unknown in (data for row in rows for data in row.on if not file.has_data(data)):
        known = ", ".join(file.datasets)
        raise ConfigError(f"{path}: a row has settings on {unknown!r}, which is not a [[data]]. The plan has {known}")
    return file


def _reference(name: Any, rows: Sequence[RowEntry], path: Path) -> str | None:
    """The row of that name, which must exist."""
    names = [row.name for row in rows]
    if name is not None and name not in names:
        raise ConfigError(f"{path}: plan.reference must be the name of a row ({', '.join(names)}), got {name!r}")
    return None if name is None else str(name)


def _rows(entry: dict[str, Any], path: Path) -> list[RowEntry]:
    """The rows of an entry: one, or one per point of its grid."""
    _known(entry, ("name", "model", "train", "on", "grid", "ensemble"), path, "setting of [[row]]")
    name = _name(entry.get("name"), path, "the name of a [[row]]")
    on = _table(entry.get("on", {}), path, "on")
    for data, settings in on.items():
        _known(_table(settings, path, f"on.{data}"), ("model", "train"), path, f"setting of on.{data} of a [[row]]")
    per_data = {data: _tables(settings, path) for data, settings in on.items()}
    tables, members = _tables(entry, path), _whole(entry.get("ensemble", 1), path, "ensemble of a [[row]]")
    if "grid" not in entry:
        return [RowEntry(name, tables, per_data, members)]
    grid = _table(entry["grid"], path, "grid")
    _known(grid, ("model", "train"), path, "table of the grid of a [[row]]")
    try:
        points = grid_points(name, _tables(grid, path))
    except ConfigError as error:
        raise ConfigError(f"{path}: the grid of the [[row]] {name!r}: {error}") from None
    return [
        RowEntry(label, {t: {**tables[t], **point[t]} for t in tables}, per_data, members) for label, point in points
    ]


def grid_points(name: str, grid: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, dict[str, dict[str, Any]]]]:
    """Every combination of the values of a grid, with its name; the first setting in the name varies slowest.

    >>> [name for name, _ in grid_points("{lr}, {hidden}", {"model": {"hidden": [16, 32]}, "train": {"lr": [0.1, 1]}})]
    ['0.1, 16', '0.1, 32', '1, 16', '1, 32']
    """
    values = {setting: (table, choices) for table, settings in grid.items() for setting, choices in settings.items()}
    order = [setting for setting in re.findall(r"{(\w+)}", name) if setting in values]
    for setting, (table, choices) in values.items():
        if not isinstance(choices, list) or not choices:
            raise ConfigError(f"{table}.{setting} must be a list of at least one value, got {choices!r}")
        if order.count(setting) != 1:
            raise ConfigError(f"its name must contain {{{setting}}} once, so that every row has its own name")
    if not values:
        raise ConfigError("has no settings. Write a list of values, such as model = { hidden = [16, 32] }")
    points = []
    for chosen in product(*(values[setting][1] for setting in order)):
        tables: dict[str, dict[str, Any]] = {table: {} for table in grid}
        label = name
        for setting, value in zip(order, chosen, strict=True):
            tables[values[setting][0]][setting] = value
            label = label.replace(f"{{{setting}}}", str(value))
        points.append((label, tables))
    return points


def _data(entry: dict[str, Any], path: Path) -> DataEntry:
    _known(
        entry, ("name", "model", "train", "on_request", "splits", "splits_digest", *SOURCE), path, "setting of [[data]]"
    )
    name = _short(entry.get("name"), path, "the name of a [[data]]")
    source = {key: entry[key] for key in SOURCE if key in entry}
    try:
        DataConfig(**source)  # refuses invalid values
    except ConfigError as error:
        raise ConfigError(f"{path}: [[data]] {name!r}: {error}") from None
    source |= {key: _place(source[key], path, key) for key in ("source", "data_root") if key in source}
    on_request = _truth(entry.get("on_request", False), path, "on_request")
    splits = entry.get("splits")
    if splits is not None:
        splits = _place(_name(splits, path, "splits of a [[data]]"), path, "splits")
    digest = entry.get("splits_digest")
    if digest is not None:
        digest = _name(digest, path, "splits_digest of a [[data]]")
    return DataEntry(name, source, _tables(entry, path), on_request, splits, digest)


def _or_instead(entry: DataEntry, root: str | PathLike[str] | None) -> DataEntry:
    present = entry.source or local_tu(entry.name, None if root is None else Path(root)) is not None
    return entry if present or entry.name not in INSTEAD else DataEntry(INSTEAD[entry.name], {}, entry.tables)


def _folded(name: str) -> str:
    return name.lower().replace("&", "")


def _known(values: Mapping[str, Any], names: Sequence[str], path: Path, what: str) -> None:
    for name in values:
        if name not in names:
            raise ConfigError(f"{path}: {name!r} is not a {what}. Use one of {', '.join(names)}")


def _list(content: dict[str, Any], name: str, path: Path) -> list[dict[str, Any]]:
    entries = content.get(name, [])
    if name == "data" and isinstance(entries, list):  # data = ["DD", "NCI1"] is short for one [[data]] per name
        entries = [{"name": entry} if isinstance(entry, str) else entry for entry in entries]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"{path}: {name} must be written as [[{name}]], once for each")
    return entries


def _tables(entry: Mapping[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    return {name: _table(entry.get(name, {}), path, name) for name in ("model", "train")}


def _table(value: Any, path: Path, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {name} must be a table of settings, got {value!r}")
    return value


def _name(value: Any, path: Path, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{path}: {what} must be a non-empty string, got {value!r}")
    return value


def _short(value: Any, path: Path, what: str) -> str:
    """A name that may be used for files."""
    name = _name(value, path, what)
    if len(name.encode()) > LONGEST:
        raise ConfigError(
            f"{path}: {what} may have at most {LONGEST} bytes, got {len(name.encode())}. Choose a shorter one"
        )
    return name


def _place(value: str, path: Path, what: str) -> str:
    """A path or the name of a data set; paths are relative to the plan."""
    beside = path.parent / value
    try:
        return str(beside.resolve()) if beside.exists() else value
    except (OSError, ValueError) as error:  # too long, or with a NUL
        where = f"{path}: {what} of a [[data]]"
        raise ConfigError(
            f"{where}: {value[:60]!r}… cannot be looked for ({getattr(error, 'strerror', None) or error})"
        ) from None


def _whole(value: Any, path: Path, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{path}: {what} must be an integer of at least 1, got {value!r}")
    return value


def _truth(value: Any, path: Path, what: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{path}: {what} must be true or false, got {value!r}")
    return value


def _seeds(value: Any, path: Path) -> int | tuple[int, ...]:
    if not isinstance(value, list):
        return _whole(value, path, "plan.seeds")
    if not all(type(seed) is int and 0 <= seed < 2**32 for seed in value):
        raise ConfigError(f"{path}: plan.seeds must be a number, or a list of numbers from 0 to 2**32 - 1, got {value}")
    return tuple(value)
