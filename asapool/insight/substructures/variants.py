"""Which substructures are variants of a stronger one: O=[N+]c beside O=[N+]([O-])c."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asapool.insight.levels import Ints
from asapool.insight.substructures.cutting import Pieces
from asapool.insight.substructures.results import Motif

COVERED = 0.5  # share of occurrences that must overlap a stronger substructure
OVERLAP = 0.5  # share of the nodes of both that they must have in common, relative to the smaller


def variants_of(rows: Sequence[Motif], where: Sequence[Pieces], first: Ints) -> list[Motif]:
    """Mark each substructure of which most occurrences overlap those of one stronger substructure.

    Args:
        rows: Strongest first.
        where: The occurrences of each, one per graph.
        first: The first node of every graph of the set.
    """
    strong: dict[int, list[tuple[int, int]]] = {}  # graph → (number of the substructure, its nodes as bits)
    marked: list[Motif] = []
    for number, (row, pieces) in enumerate(zip(rows, where, strict=True)):
        sign = _direction(row)
        hits: dict[int, int] = {}
        own = []
        for p, g in enumerate(pieces.graph.tolist()):
            start, bits = int(first[g]), 0
            for v in pieces.nodes(p):
                bits |= 1 << (v - start)
            own.append((g, bits))
            for other, theirs in strong.get(g, ()):
                small = min(bits.bit_count(), theirs.bit_count())
                if (bits & theirs).bit_count() >= OVERLAP * small and _direction(rows[other]) == sign:
                    hits[other] = hits.get(other, 0) + 1
        best = max(hits, key=lambda other: (hits[other], -other), default=None)
        if best is not None and hits[best] >= COVERED * len(pieces):
            marked.append(replace(row, variant_of=rows[best].name))
            continue
        marked.append(row)
        for g, bits in own:
            strong.setdefault(g, []).append((number, bits))
    return marked


def _direction(row: Motif) -> tuple[int, bool]:
    """The output that it raises most, and whether it raises it."""
    return row.main, row.contribution[row.main] > 0
