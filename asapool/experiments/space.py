"""Space: the settings that a search may choose, read from TOML and checked before the first training run."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from asapool.errors import ConfigError
from asapool.files import read_toml
from asapool.training.config import DEFAULT_METHOD
from asapool.training.settings import RunSettings, overlay

TABLES = ("model", "train")
RANGE = {"low", "high", "log"}
LARGEST_GRID = 100_000

Tables = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]

    def suggest(self, trial: Any, name: str) -> Any:
        """A value chosen by the sampler of an Optuna trial; values are passed as JSON, because lists are allowed."""
        return json.loads(trial.suggest_categorical(name, [json.dumps(value) for value in self.values]))

    def stored(self, value: Any) -> Any:
        """The value as Optuna stores it."""
        return json.dumps(value)

    def ends(self) -> tuple[Any, ...]:
        """The values that a check must try."""
        return self.values


@dataclass(frozen=True)
class Range:
    """A number from low to high; an integer if both are integers."""

    low: float
    high: float
    log: bool = False

    def suggest(self, trial: Any, name: str) -> float:
        """A value chosen by the sampler of an Optuna trial."""
        suggest = trial.suggest_int if isinstance(self.low, int) and isinstance(self.high, int) else trial.suggest_float
        return suggest(name, self.low, self.high, log=self.log)  # type: ignore[no-any-return]

    def stored(self, value: Any) -> Any:
        """The value as Optuna stores it."""
        return value

    def ends(self) -> tuple[float, ...]:
        """The values that a check must try."""
        return (self.low, self.high)


@dataclass(frozen=True)
class Space:
    """The settings that a search may choose.

    Args:
        free: name, such as "model.hidden" → its possible values.
        fixed: tables of settings that all trials share.

    >>> space = Space.from_tables({"model": {"hidden": [16, 32], "ratio": 0.5}})
    >>> space.free, space.fixed
    ({'model.hidden': Choice(values=(16, 32))}, {'model': {'ratio': 0.5}, 'train': {}})
    """

    free: Mapping[str, Choice | Range]
    fixed: Tables

    @classmethod
    def read(cls, path: str | PathLike[str] | None, method: str = DEFAULT_METHOD) -> Space:
        """The space of a TOML file; None = asapool's default for the method."""
        name = "plus.toml" if method.endswith("+") else "paper.toml"
        place = Path(str(files("asapool.experiments") / "spaces" / name)) if path is None else Path(path)
        return cls.from_tables(read_toml(place, TABLES), str(place))

    @classmethod
    def from_tables(cls, tables: Tables, where: str = "space") -> Space:
        """The space of plain tables: a list is a choice, {low, high} a range, any other value is fixed."""
        free: dict[str, Choice | Range] = {}
        fixed: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
        for table, values in tables.items():
            for name, value in values.items():
                full = f"{table}.{name}"
                if isinstance(value, list):
                    free[full] = _choice(value, f"{where}: {full}")
                elif isinstance(value, dict) and set(value) & RANGE:
                    free[full] = _range(value, f"{where}: {full}")
                else:
                    fixed[table][name] = value
        if not free:
            raise ConfigError(f"{where}: nothing to search. Give a setting several values, such as hidden = [32, 64]")
        return cls(free, fixed)

    def without(self, given: Tables) -> Space:
        """The space without the settings that are given."""
        names = {f"{table}.{name}" for table, values in given.items() for name, v in values.items() if v is not None}
        free = {name: kind for name, kind in self.free.items() if name not in names}
        if not free:
            raise ConfigError("all settings of the space are already given, so nothing is left to search")
        return Space(free, self.fixed)

    def check(self, base: Tables) -> None:
        """Refuse unknown settings and invalid values, each by name."""
        for name, kind in self.free.items():
            for value in kind.ends():
                self.settings(base, {name: value})

    def settings(self, base: Tables, chosen: Mapping[str, Any]) -> RunSettings:
        """The settings of a trial: the base, what the space fixes, what was chosen."""
        tables: dict[str, dict[str, Any]] = {}
        for name, value in chosen.items():
            table, key = name.split(".", 1)
            tables.setdefault(table, {})[key] = value
        return RunSettings.from_dict(overlay(base, self.fixed, tables))

    def suggest(self, trial: Any) -> dict[str, Any]:
        """The values chosen by an Optuna trial."""
        return {name: kind.suggest(trial, name) for name, kind in self.free.items()}

    @property
    def grid_size(self) -> int | None:
        """The number of combinations; None if there is a range."""
        choices = [len(kind.values) for kind in self.free.values() if isinstance(kind, Choice)]
        return math.prod(choices) if len(choices) == len(self.free) else None

    def grid(self) -> Iterator[dict[str, Any]]:
        """All combinations, the last setting fastest."""
        size = self.grid_size
        if size is None or size > LARGEST_GRID:
            raise ConfigError(f"a grid needs a list for every setting, and at most {LARGEST_GRID:,} combinations")
        names = list(self.free)
        for values in itertools.product(*(kind.ends() for kind in self.free.values())):
            yield dict(zip(names, values, strict=True))


def _choice(values: list[Any], where: str) -> Choice:
    texts = [json.dumps(value) for value in values]
    if not values or len(set(texts)) < len(texts):
        raise ConfigError(f"{where} must list different values, at least one, got {values!r:.200}")
    return Choice(tuple(values))


def _range(value: Mapping[str, Any], where: str) -> Range:
    low, high, log = value.get("low"), value.get("high"), value.get("log", False)
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (low, high))
    if set(value) - RANGE or not numbers or not isinstance(log, bool):
        raise ConfigError(
            f"{where} must be {{ low = NUMBER, high = NUMBER, log = true or false }}, got {dict(value)!r:.200}"
        )
    assert low is not None
    assert high is not None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(f"{where}: low must be less than high, got {low!r} and {high!r}")
    if log and low <= 0:
        raise ConfigError(f"{where}: a logarithmic range must begin above 0, got {low!r}")
    return Range(low, high, log)
