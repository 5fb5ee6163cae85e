"""Notes about the graphs that were read, one line each on standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from asapool.cli._output import note

if TYPE_CHECKING:
    from asapool.data import Skipped
    from asapool.data.duplicates import Repeated
    from asapool.data.reading import Reading

SHOWN = 20  # skipped lines that are listed one by one


def note_skipped(skipped: Sequence[Skipped]) -> None:
    """Rows that could not be read."""
    for row in skipped[:SHOWN]:
        note(f"skipped line {row.line}: {row.reason}")
    if len(skipped) > SHOWN:
        note(f"skipped {len(skipped) - SHOWN} more lines, {len(skipped)} in all")


def note_missing(missing: Mapping[str, int]) -> None:
    """Values of the class column that count as missing."""
    if missing:
        words = ", ".join(f"{word!r} ({count:,} rows)" for word, count in missing.items())
        note(f"treated as missing labels: {words}. Rename the value in the file if it is a class")


def note_reading(reading: Reading) -> None:
    """What is left out of a training."""
    note_skipped(reading.skipped)
    note_missing(reading.missing)
    if reading.unlabelled:
        note(f"graphs without a label, left out: {reading.unlabelled:,}")


def note_repeated(found: Repeated, split: str) -> None:
    """Duplicate molecules, and how to keep them in one part of the split."""
    if found.molecules:
        advice = "" if split == "scaffold" else "; --split scaffold keeps duplicates in one part"
        note(
            f"{found.molecules:,} molecules occur more than once ({found.graphs:,} graphs), "
            f"{found.contradicting:,} of them with different classes{advice}"
        )
