"""Rows as Markdown and as CSV text, with every sign that would break a table made harmless."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

from asapool.files import csv_writer


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown(["name", "n"], [["a|b", "1"]]), end="")
    | name | n |
    | --- | --- |
    | a\\|b | 1 |
    """
    lines = [list(head), ["---"] * len(head), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


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


def _cell(text: str) -> str:
    return " ".join(str(text).replace("|", "\\|").replace("<", "&lt;").split())
