"""Numbers with decimal commas in tables, as German or French Excel writes them."""

from __future__ import annotations

import re
from typing import Any

from asapool.errors import DataError

DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
POINTS = re.compile(r"[+-]?\d*(\.\d+)+(,\d*)?([eE][+-]?\d+)?")  # 1.5, or 1.234,5 with a separator of thousands


def decimal_comma(name: str, cell: str, at: str) -> DataError:
    """The error for a number with a decimal comma, if they were not asked for."""
    return DataError(
        f"{at}: the numbers in {name!r} have decimal commas, such as {cell[:40]!r}. "
        "Read them with decimal=',' (--decimal ,), or write them with points, such as "
        f"{cell[:40].replace(',', '.')}"
    )


def with_point(cell: Any, where: str, name: str) -> Any:
    """A cell of a table with decimal commas: 1,5 as 1.5; other cells as they are, and a number with a point is refused.

    In such tables 1.234 may mean 1234, so it is not guessed.

    >>> with_point("1,5", "line 2", "y"), with_point("yes", "line 2", "y"), with_point(None, "line 2", "y")
    ('1.5', 'yes', None)
    """
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if DECIMAL_COMMA.fullmatch(text):
        return text.replace(",", ".")
    if POINTS.fullmatch(text):
        raise DataError(
            f"{where}: {name!r} has {text[:40]!r}, and with decimal=',' (--decimal ,) a point is not expected in a "
            "number. Write it with a decimal comma and without separators of thousands"
        )
    return cell
