"""Settings as TOML text; the standard library reads TOML but does not write it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from asapool.errors import ConfigError


def write_toml(tables: Mapping[str, Mapping[str, Any]], heading: str = "") -> str:
    """Write tables of plain values; None is left out, for TOML has no word for it.

    >>> print(write_toml({"train": {"epochs": 5, "lr": 0.01, "clip": None, "names": ["a", "é"]}}), end="")
    [train]
    epochs = 5
    lr = 0.01
    names = ["a", "é"]
    """
    lines = [f"# {line}" for line in heading.splitlines()]
    for table, values in tables.items():
        lines += [""] * bool(lines) + [f"[{_key(table)}]"]
        lines += [f"{_key(name)} = {_value(value)}" for name, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def read_toml(path: str | PathLike[str], tables: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read a file of settings; only the named tables may occur."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Give the path of a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None
    for name, table in content.items():
        if name not in tables or not isinstance(table, dict):
            raise ConfigError(
                f"{path}: {name!r} is not a table of settings. Known are {', '.join(f'[{t}]' for t in tables)}"
            )
    return content


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)  # inf and nan are words of TOML too
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
    # a JSON string is a TOML string, save for the character DEL, which TOML wants escaped
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
