"""What reading a source returns: the graphs, and everything about the source that a user should know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from asapool.data.graphset import GraphSet


class Skipped(NamedTuple):
    """A row that could not be read and was left out."""

    line: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The result of asapool.data.read.

    Args:
        graphs: the packed set; in a part of a stream it may be empty.
        skipped: rows that could not be read.
        missing: values of the target column that were treated as missing → how often they occur.
        unlabelled: graphs that were read and have no label.
        notes: sentences about the source, such as how many repeated edges were dropped.
        columns: of a table read with keep_columns: name → the cell of every graph; None = not kept.

    >>> from asapool.data import read
    >>> read("synthetic:paths?graphs=3").unlabelled
    3
    """

    graphs: GraphSet
    skipped: tuple[Skipped, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    unlabelled: int = 0
    notes: tuple[str, ...] = ()
    columns: Mapping[str, Sequence[Any]] | None = None

    def labelled(self) -> Reading:
        """The same with the graphs that have a label; unlabelled still counts the others."""
        mask = self.graphs.labelled
        if mask.all():
            return self
        columns = self.columns
        if columns is not None:
            columns = {
                name: [cell for cell, here in zip(cells, mask, strict=True) if here] for name, cells in columns.items()
            }
        return replace(self, graphs=self.graphs.subset(mask), columns=columns)

    def counts(self) -> dict[str, int]:
        """Numbers for a run's metrics.json: rows that could not be read, graphs without a label."""
        return {"skipped_rows": len(self.skipped), "without_class": self.unlabelled}


Numbered = Iterator[tuple[int, Reading]]  # the pieces of a source, with their numbers from 0
Wanted = Callable[[int], bool]  # which of the pieces are to be read


def all_pieces(number: int) -> bool:
    """Every piece is wanted."""
    return True


@dataclass
class Log:
    """Collects what a reader learns while it reads."""

    skipped: list[Skipped] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    columns: Mapping[str, Sequence[Any]] | None = None

    def skip(self, line: int, reason: str) -> None:
        """Note a row that is left out."""
        self.skipped.append(Skipped(line, reason))

    def clear(self) -> None:
        """Start anew, for the next piece of a stream."""
        self.skipped.clear()
        self.missing.clear()
        self.notes.clear()

    def reading(self, graphs: GraphSet | None) -> Reading:
        """The finished Reading; None = no row could be read, which is an empty set."""
        graphs = EMPTY if graphs is None else graphs
        return Reading(
            graphs=graphs, skipped=tuple(self.skipped), missing=dict(self.missing), notes=tuple(self.notes),
            unlabelled=int((~graphs.labelled).sum()), columns=self.columns,
        )  # fmt: skip


EMPTY = GraphSet(x=np.zeros((0, 1)), ptr=[0], rowptr=[0], col=np.zeros(0, np.int64))  # type: ignore[arg-type]
