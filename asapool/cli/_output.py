"""Results go to standard output as text or JSON; progress and notes go to standard error.

Names in a data set are arbitrary text. What is printed as text has its control characters escaped, so that a class name
cannot move the cursor, change colours or reorder a line; JSON and files contain names unchanged.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, TextIO, cast

import typer

if TYPE_CHECKING:
    from asapool.data import Reading, Skipped
    from asapool.data.duplicates import Duplicates
    from asapool.data.reading import Refused


# C0 and C1 controls except tab and newline, bidirectional overrides, line separators, and lone surrogates
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


ERROR = "asapool: "  # prefix of errors and failures
_quiet = [False]


def be_quiet(quiet: bool = True) -> None:
    """From now on print results and errors only."""
    _quiet[0] = quiet


def watched(console: Any) -> bool:
    """Whether to show progress: on a terminal, without --quiet."""
    return bool(console.is_terminal) and not _quiet[0]


def show(value: Any, rows: Mapping[str, Any], as_json: bool) -> None:
    """Print the value as JSON, or its rows as aligned lines of text.

    >>> show({"graphs": 2}, {"graphs": 2, "mean nodes": 3.5}, as_json=False)
    graphs      2
    mean nodes  3.50
    """
    if as_json:
        typer.echo(json.dumps(plain(value), indent=2))
        return
    width = max(map(len, rows), default=0)
    for name, cell in rows.items():
        typer.echo(clean(f"{name:<{width}}  {words(cell)}"))


def plain(value: Any) -> Any:
    """A dataclass as JSON data; other values as they are."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def words(cell: Any) -> str:
    """A number with two decimals, yes or no, or the text itself."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on standard error what is being done, if it is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not watched(console):
        yield
        return
    from rich.text import Text

    with console.status(Text(clean(text))):  # Text: brackets in a name are not markup
        yield


def note(text: str) -> None:
    """One line on standard error; with --quiet only if it is an error."""
    if not _quiet[0] or text.startswith(ERROR):
        typer.echo(clean(text), err=True)


def clean(text: str) -> str:
    """The text with control characters written out as escapes.

    >>> clean("\x1b[31mred")
    '\\\\x1b[31mred'
    """
    return CONTROL.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def terminal_safe(stream: TextIO) -> TextIO:
    """The stream itself; a terminal is wrapped so that control characters are escaped."""
    return cast(TextIO, _Escaping(stream)) if stream.isatty() else stream


class _Escaping:
    """Writes to a terminal with control characters escaped."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text, escaped."""
        return self.stream.write(clean(text.replace("\r\n", "\n")))


def print_grid(title: str, head: Sequence[str], lines: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Print a table below its title; the first `left` columns are names, the others numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)  # nothing is cut off in a file or a pipe
    grid = Table()
    for number, name in enumerate(head):
        grid.add_column(Text(clean(name)), justify="left" if number < left else "right", overflow="fold")
    for line in lines:
        grid.add_row(*(Text(clean(cell)) for cell in line))
    console.print(Text(clean(title), style="italic"), soft_wrap=True)  # a title above a narrow table is not cut up
    console.print(grid)


SHOWN = 20  # skipped lines that are listed one by one


class ReadingNotes:
    """Collects the notes of a source that may be read in pieces."""

    def __init__(self) -> None:
        self.skipped: list[Skipped | Refused] = []
        self.missing: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def add(self, reading: Reading) -> None:
        """Add the notes of one piece."""
        self.skipped += [*(() if reading.noted else reading.skipped), *reading.refused]
        self.missing.update(reading.missing)
        self.notes |= dict.fromkeys(reading.notes)

    def show(self) -> None:
        """Print what was collected."""
        for row in self.skipped[:SHOWN]:
            what = f"line {row[0]}" if hasattr(row, "line") else f"graph {row[0]}"
            note(f"skipped {what}: {row.reason}")
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
    """Print the number of duplicate molecules, and how to keep them in one part of the split."""
    if duplicates.molecules:
        together = split in ("scaffold", "scaffold-folds", "all", "file")
        apart = "" if together else "--split scaffold keeps duplicates in one part, "
        molecules = "1 molecule occurs" if duplicates.molecules == 1 else f"{duplicates.molecules:,} molecules occur"
        note(
            f"{molecules} more than once ({duplicates.graphs:,} graphs), {duplicates.contradicting:,} with different "
            f"labels; {apart}--duplicates merge makes each a single graph"
        )
