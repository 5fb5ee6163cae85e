"""Rows of a table that cannot be read as molecules.

skip_invalid=True leaves them out, and False refuses the table. None, the default, depends on what the table is for: to
learn from or to score a model on, a few of them are left out with a note; to predict, none are, because an answer
would be missing. A list of SMILES is always refused: its molecules belong to labels elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from asapool.data.reading import ReadOptions, Skipped
from asapool.errors import DataError

FEW = 100  # up to one row in this many is left out without being asked to
NAMED = 3  # lines that the note names
LISTED = 10  # lines that the refusal names


def allowed_rows(options: ReadOptions, rows: int | None, *, few: bool) -> float:
    """How many unreadable rows of a table are left out; if there are more, it is refused.

    Args:
        options: with skip_invalid.
        rows: of the table; None = not known before its end, where `check_few` must be called.
        few: whether the table is to learn from or to score a model on.

    >>> [allowed_rows(ReadOptions(), rows, few=True) for rows in (20, 100, 7831)]
    [0, 1, 78]
    """
    if options.skip_invalid or (options.skip_invalid is None and few and rows is None):
        return math.inf
    return 0 if rows is None or options.skip_invalid is False or not few else rows // FEW


def check_few(path: Path, skipped: Sequence[Skipped], rows: int, allowed: float) -> None:
    """Refuse a table with more unreadable rows than allowed."""
    if len(skipped) <= allowed:
        return
    ordered = sorted(skipped)
    lines = f" (lines {_lines(ordered, LISTED)})" if len(ordered) > 1 else ""
    raise DataError(
        f"{path}, line {ordered[0].line}: {ordered[0].reason}. "
        f"{len(ordered):,} of {rows:,} molecules cannot be read{lines}. "
        "Correct them, or leave them out with skip_invalid=True (--skip-invalid)"
    )


def few_note(path: Path, skipped: Sequence[Skipped], rows: int) -> str:
    """The note about the few rows that were left out without being asked to.

    >>> few_note(Path("m.csv"), [Skipped(7, "the SMILES is empty")], 250).partition(". ")[0]
    'm.csv: left out 1 of 250 rows, which cannot be read (line 7: the SMILES is empty)'
    """
    ordered = sorted(skipped)
    reasons = "; ".join(f"line {line}: {reason}" for line, reason in ordered[:NAMED])
    more = f"; and {len(ordered) - NAMED} more" if len(ordered) > NAMED else ""
    return (
        f"{path}: left out {len(ordered):,} of {rows:,} rows, which cannot be read ({reasons}{more}). "
        "To refuse such a table, use --no-skip-invalid (skip_invalid=False)"
    )


def _lines(ordered: Sequence[Skipped], shown: int) -> str:
    return ", ".join(str(row.line) for row in ordered[:shown]) + (", ..." if len(ordered) > shown else "")
