"""Formatting of numbers, tables as escaped Markdown and CSV, and the files of a table."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from asapool.files import csv_writer, write_json, write_text


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown(["name", "n"], [["a|b", "1"]]), end="")
    | name | n |
    | --- | --- |
    | a\\|b | 1 |
    """
    lines = [list(head), ["---"] * len(head), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(escape(cell) for cell in line)} |\n" for line in lines)


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV; None is an empty cell.

    >>> csv_text(["a", "b"], [[None, "x,y"]])
    'a,b\\n,"x,y"\\n'
    """
    out = io.StringIO(newline="")
    writer = csv_writer(out)
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


def number(value: float | None) -> str:
    """Two decimals, or a dash.

    >>> number(71.476), number(-0.001), number(None)
    ('71.48', '0.00', '–')
    """
    return "–" if value is None else f"{round(value, 2) + 0.0:.2f}"  # + 0.0: never −0.00


def signed(value: float | None, margin: float | None = None) -> str:
    """Two decimals with their sign, and the margin of error if there is one, or a dash.

    >>> signed(-0.5), signed(2, 0.3), signed(None)
    ('−0.50', '+2.00 ± 0.30', '–')
    """
    error = "" if margin is None else f" ± {margin:.2f}"
    return "–" if value is None else f"{value:+.2f}{error}".replace("-", "−")


def p_value(value: float | None) -> str:
    """Three digits, or a dash."""
    return "–" if value is None else f"{value:.3g}"


def plus_minus(mean: float | None, deviation: float | None) -> str:
    """A mean with its deviation, as far as they exist.

    >>> plus_minus(73.968, 0.18), plus_minus(73.968, None), plus_minus(None, None)
    ('73.97 ± 0.18', '73.97', '–')
    """
    return number(mean) + ("" if deviation is None else f" ± {deviation:.2f}")


def escape(text: str) -> str:
    """Text escaped for Markdown, in one line: names from users must become neither HTML nor table cells.

    >>> escape("a|b <script>")
    'a\\\\|b &lt;script>'
    """
    return " ".join(str(text).replace("|", "\\|").replace("<", "&lt;").split())


class Written(Protocol):
    """A table that can be written to files: of accuracies, of properties, of data sets."""

    @property
    def name(self) -> str: ...
    def to_markdown(self) -> str: ...
    def to_csv(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...


def write(table: Written, folder: str | PathLike[str]) -> list[Path]:
    """Write NAME.md, NAME.csv and NAME.json, each atomically; return their paths."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    files = [path / f"{table.name}.{kind}" for kind in ("md", "csv", "json")]
    write_text(files[0], table.to_markdown())
    write_text(files[1], table.to_csv())
    write_json(files[2], table.to_dict())
    return files
