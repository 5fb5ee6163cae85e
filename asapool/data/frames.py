"""Data frames (pandas, polars) as tables: column names, and rows numbered from 1."""

from __future__ import annotations

from typing import Any

from asapool.data.tables import Rows
from asapool.errors import DataError

MISSING = ("nan", "<NA>", "NaT")  # the missing values of NumPy and pandas, as text


def is_frame(source: Any) -> bool:
    """Whether a source is a data frame of pandas or polars."""
    return hasattr(source, "columns") and (hasattr(source, "iloc") or hasattr(source, "get_columns"))


def open_frame(frame: Any, name: str) -> tuple[list[str], Rows]:
    """The column names and the rows of a data frame; the index is a column if it has a name.

    Args:
        frame: of pandas or polars.
        name: what messages call it.
    """
    columns = [(str(label), frame[label].to_list()) for label in _distinct(list(frame.columns), name)]
    index = getattr(getattr(frame, "index", None), "name", None)
    if index is not None and str(index) not in dict(columns):
        columns.insert(0, (str(index), frame.index.to_list()))
    cells = zip(*(map(_cell, values) for _, values in columns), strict=True)
    return [label for label, _ in columns], enumerate(cells, start=1)


def _distinct(labels: list[Any], name: str) -> list[Any]:
    names = [str(label) for label in labels]
    twice = next((label for label in names if names.count(label) > 1), None)
    if twice is not None:
        raise DataError(f"{name}: two columns are called {twice!r}. Rename one of them")
    return labels


def _cell(value: Any) -> Any:
    return None if value is not None and not isinstance(value, str) and str(value) in MISSING else value
