"""Finds the columns of a table whose cells are all numbers or empty, piece by piece, and converts them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NumberType = type[int] | type[float]
WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,17})", re.ASCII)  # 007 is an identifier; 18 digits fit into 64 bits
FLOAT = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
EXACT = 2**53  # whole numbers above this may change as float64


class NumberColumns:
    """The columns that have held only numbers or empty cells so far, and their types.

    Args:
        names: the columns to examine.

    >>> found = NumberColumns(["plate", "dose", "code"])
    >>> found.update({"plate": ["1", ""], "dose": ["0.5", "2"], "code": ["007", "12"]})
    >>> found.types
    {'plate': <class 'int'>, 'dose': <class 'float'>}
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._types: dict[str, NumberType | None] = dict.fromkeys(names)  # None = only empty cells so far
        self._largest = dict.fromkeys(self._types, 0)  # absolute whole number

    @property
    def possible(self) -> bool:
        """Whether any column may be one."""
        return bool(self._types)

    @property
    def types(self) -> dict[str, NumberType]:
        """The type of every column of numbers; columns without any number are left out."""
        known = {name: kind for name, kind in self._types.items() if kind is not None}
        return {name: kind for name, kind in known.items() if kind is int or self._largest[name] <= EXACT}

    def update(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Examine the next cells of every column; one that holds anything but numbers is dropped."""
        for name in list(self._types):
            for cell in columns[name]:
                kind = _type(cell)
                if kind is None:
                    del self._types[name]
                    break
                if kind is int:
                    self._largest[name] = max(self._largest[name], abs(int(cell)))
                    self._types[name] = self._types[name] or int
                elif kind is float:
                    self._types[name] = float


class _Empty:
    """The type of an empty cell."""


def _type(cell: Any) -> type | None:
    """int, float or _Empty; None = the cell is none of them."""
    if cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and math.isnan(cell)):
        return _Empty
    if isinstance(cell, str):
        text = cell.strip()
        if text.lstrip("+-").isdigit():
            return int if WHOLE.fullmatch(text) else None
        return float if FLOAT.fullmatch(text) and math.isfinite(float(text)) else None
    if isinstance(cell, int) and not isinstance(cell, bool):
        return int if abs(cell) < 10**18 else None
    return float if isinstance(cell, float) and math.isfinite(cell) else None


def as_numbers(cells: Sequence[Any], kind: NumberType) -> list[int | float | None]:
    """The cells of a column of numbers; None = empty.

    >>> as_numbers(["1", " ", "2.5"], float)
    [1.0, None, 2.5]
    """
    return [None if _type(cell) is _Empty else kind(cell) for cell in cells]
