"""What a person should know of the graphs that were read: one line each, on standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from asapool.cli._output import note

if TYPE_CHECKING:
    from asapool.data import Skipped
    from asapool.data.duplicates import Repeated
    from asapool.data.reading import Reading

SHOWN = 20  # skipped lines that are told one by one


def tell_skipped(skipped: Sequence[Skipped]) -> None:
    """Rows that could not be read."""
    for row in skipped[:SHOWN]:
        note(f"skipped line {row.line}: {row.reason}")
    if len(skipped) > SHOWN:
        note(f"skipped {len(skipped) - SHOWN} more lines, {len(skipped)} in all")


def tell_missing(missing: Mapping[str, int]) -> None:
    """Words of the class column that were taken for no class."""
    if missing:
        words = ", ".join(f"{word!r} ({count:,} rows)" for word, count in missing.items())
        note(f"taken for no class: {words}. If such a word is meant as a class, write another one in the file")


def tell_reading(reading: Reading) -> None:
    """What a training goes without."""
    tell_skipped(reading.skipped)
    tell_missing(reading.missing)
    if reading.unlabelled:
        note(f"graphs without a class, which take no part: {reading.unlabelled:,}")


def tell_repeated(found: Repeated, split: str) -> None:
    """Molecules that occur more than once, and how to keep them in one part."""
    if found.molecules:
        advice = "" if split == "scaffold" else "; --split scaffold keeps equal molecules in one part"
        note(
            f"{found.molecules:,} molecules occur more than once ({found.graphs:,} graphs), "
            f"{found.contradicting:,} of them with different classes{advice}"
        )
