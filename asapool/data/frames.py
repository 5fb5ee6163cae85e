"""Data frames (pandas, polars) as tables: column names, and rows numbered from 1."""

from __future__ import annotations

from typing import Any

from asapool.data.tables import Rows
from asapool.errors import DataError

MISSING = ("nan", "<NA>", "NaT")  # the missing values of NumPy and pandas, as text


def is_frame(source: Any) -> bool:
    """Whether a source is a data frame of pandas or polars; a LazyFrame is refused."""
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        raise DataError("a LazyFrame has no rows yet. Give the data frame that its collect() returns")
    return (hasattr(source, "iloc") or hasattr(source, "get_columns")) and hasattr(source, "columns")


def open_frame(frame: Any, name: str) -> tuple[list[str], Rows]:
    """The column names and the rows of a data frame; the index is a column if it has a name.

    Args:
        frame: of pandas or polars.
        name: what messages call it.
    """
    columns = columns_of(frame, name)
    index = getattr(getattr(frame, "index", None), "name", None)
    if index is not None and str(index) not in columns:
        columns = {str(index): [_cell(value) for value in frame.index.to_list()], **columns}
    return list(columns), enumerate(zip(*columns.values(), strict=True), start=1)


def columns_of(frame: Any, name: str) -> dict[str, list[Any]]:
    """The cells of every column of a data frame by its name as text, without the index; a missing value is None."""
    names = [str(label) for label in frame.columns]
    twice = next((label for label in names if names.count(label) > 1), None)
    if twice is not None:
        raise DataError(f"{name}: two columns are called {twice!r}. Rename one of them")
    return {str(label): [_cell(value) for value in frame[label].to_list()] for label in frame.columns}


def _cell(value: Any) -> Any:
    return None if value is not None and not isinstance(value, str) and str(value) in MISSING else value
