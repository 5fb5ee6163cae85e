"""Notes about the graphs that were read, one line each on standard error."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from asapool.cli._output import note

if TYPE_CHECKING:
    from asapool.data import Reading, Skipped
    from asapool.data.scaffolds import Duplicates

SHOWN = 20  # skipped lines that are listed one by one


class ReadingNotes:
    """Collects the notes of a source that may be read in pieces."""

    def __init__(self) -> None:
        self.skipped: list[Skipped] = []
        self.missing: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def add(self, reading: Reading) -> None:
        """Take in one piece."""
        self.skipped += reading.skipped
        self.missing.update(reading.missing)
        self.notes |= dict.fromkeys(reading.notes)

    def show(self) -> None:
        """Print what was collected."""
        for row in self.skipped[:SHOWN]:
            note(f"skipped line {row.line}: {row.reason}")
        if len(self.skipped) > SHOWN:
            note(f"skipped {len(self.skipped) - SHOWN} more lines, {len(self.skipped)} in all")
        if self.missing:
            values = ", ".join(f"{value!r} ({count:,} rows)" for value, count in self.missing.items())
            note(f"treated as missing labels: {values}. Rename the value in the file if it is a class")
        for text in self.notes:
            note(text)


def note_reading(reading: Reading, *, unlabelled: bool = True) -> None:
    """Print the notes of a source; unlabelled: also how many graphs have no label and are left out."""
    notes = ReadingNotes()
    notes.add(reading)
    notes.show()
    if unlabelled and reading.unlabelled:
        note(f"graphs without a label, left out: {reading.unlabelled:,}")


def note_duplicates(duplicates: Duplicates, split: str) -> None:
    """Duplicate molecules, and how to keep them in one part of the split."""
    if duplicates.molecules:
        advice = "" if split == "scaffold" else "; --split scaffold keeps duplicates in one part"
        note(
            f"{duplicates.molecules:,} molecules occur more than once ({duplicates.graphs:,} graphs), "
            f"{duplicates.contradicting:,} of them with different labels{advice}"
        )
