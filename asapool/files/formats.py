"""JSON, CSV and TOML files."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TextIO

from asapool.errors import ConfigError, DataError
from asapool.files.atomic import write_text


class CsvWriter(Protocol):
    """The type of csv.writer's result."""

    def writerow(self, row: Iterable[Any], /) -> Any: ...
    def writerows(self, rows: Iterable[Iterable[Any]], /) -> None: ...


def write_json(path: str | PathLike[str], value: Any, *, durable: bool = False) -> None:
    """Write plain data as indented JSON; NaN, which JSON does not have, is refused."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", durable=durable)


def read_json(path: str | PathLike[str]) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON: {error}. Remove the file and run again") from None


def csv_writer(out: TextIO) -> CsvWriter:
    r"""A csv.writer that ends lines with \n and quotes every cell that contains a line ending of any kind.

    >>> import sys
    >>> csv_writer(sys.stdout).writerow(["a,b", 1])
    "a,b",1
    """
    return csv.writer(_NewlineEnds(out), lineterminator="\r\n")


class _NewlineEnds:
    """Writes rows with \n as their ending; csv quotes cells with \r only if it is part of the line terminator."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, row: str) -> None:
        self.out.write(row.removesuffix("\r\n") + "\n")


def write_csv(
    path: str | PathLike[str], header: Sequence[str], rows: Iterable[Sequence[Any]], *, durable: bool = False
) -> None:
    """Write a whole table."""
    text = io.StringIO(newline="")
    table = csv_writer(text)
    table.writerow(header)
    table.writerows(rows)
    write_text(path, text.getvalue(), durable=durable)


def to_toml(tables: Mapping[str, Mapping[str, Any]], heading: str = "") -> str:
    """Format tables of plain values as TOML text; None is left out, since TOML has no null.

    >>> print(to_toml({"train": {"epochs": 5, "lr": 0.01, "clip": None, "names": ["a", "é"]}}), end="")
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


def load_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Give the path of a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: its tables are nested too deeply. Write them with three levels at most") from None


def read_toml(path: str | PathLike[str], tables: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read a settings file; only the named tables are allowed."""
    content = load_toml(path)
    for name, table in content.items():
        if name not in tables or not isinstance(table, dict):
            raise ConfigError(
                f"{path}: {name!r} is not a table of settings. Expected {', '.join(f'[{t}]' for t in tables)}"
            )
    return content


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)  # inf and nan are valid in TOML too
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
    # a JSON string is a TOML string, except that TOML requires DEL to be escaped
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
