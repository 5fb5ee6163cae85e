"""Motifs: the substructures of a data set that drive a model's predictions, as plain data."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from asapool.errors import ConfigError, choose
from asapool.files import csv_writer, write_text

FORMAT, VERSION = "asapool.motifs", 1
KINDS = ("html", "csv", "json")


@dataclass(frozen=True, kw_only=True)
class Example:
    """One graph with the substructure; nodes are numbered within the graph."""

    graph: int  # position in the source
    id: str
    text: str | None  # what the graph was made from, such as its SMILES
    label: str | None
    predicted: str
    nodes: tuple[int, ...]
    change: tuple[float, ...]  # of each output, when the nodes are removed: before − after


@dataclass(frozen=True, kw_only=True)
class Motif:
    """A substructure, how often it occurs, and its effect; tuples have one number per output."""

    name: str  # fragment SMILES, which is also SMARTS; a hash for graphs that are not molecules
    nodes: int
    level: int  # lowest level at which a cluster consists of these nodes; 0 = not from a cluster
    graphs: int  # graphs in which it occurs
    measured: int  # graphs from which it was removed
    contribution: tuple[float, ...]  # mean of (log odds of the graph − log odds without it)
    low: tuple[float, ...]  # 95 % interval of that mean
    high: tuple[float, ...]
    enrichment: tuple[float, ...]  # odds of the class with it / odds without; for values: difference of the means
    p_value: tuple[float, ...]  # Fisher's exact test (for values: Mann-Whitney), adjusted by Benjamini and Hochberg
    variant_of: str | None  # a stronger substructure that covers most of its occurrences
    examples: tuple[Example, ...]

    @property
    def main(self) -> int:
        """The output that it raises most, or the only one."""
        return max(range(len(self.contribution)), key=lambda c: self.contribution[c])

    def strength(self, c: int) -> float:
        """The end of the interval nearer to 0, or 0 if the interval contains it."""
        return max(self.low[c], 0.0) if self.contribution[c] > 0 else min(self.high[c], 0.0)


@dataclass(frozen=True, kw_only=True)
class Motifs:
    """All substructures of a set, strongest first; `for m in found` lists them."""

    data: str
    method: str
    kind: str  # of the target: classification, regression or multilabel
    outputs: tuple[str, ...]  # names of the classes, or of the tasks
    graphs: int
    source: str  # clusters, BRICS or query
    note: str
    rows: tuple[Motif, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Motif]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"Motifs({self.data!r}, {self.method}, {len(self)} substructures of {self.graphs} graphs)"

    def top(self, output: str | None = None, count: int = 50, *, variants: bool = False) -> list[Motif]:
        """The substructures that support one output most, by the lower end of their interval.

        Args:
            output: A class name; None = whichever output each substructure changes most.
            count: How many at most.
            variants: Also list variants of stronger ones.
        """
        rows = [m for m in self.rows if variants or m.variant_of is None]
        if output is None:
            return rows[:count]
        c = self.outputs.index(choose("output", output, self.outputs))
        return sorted((m for m in rows if m.strength(c) > 0), key=lambda m: -m.strength(c))[:count]

    def to_json(self) -> str:
        """All fields under their names as one JSON object; numbers that are not finite are null."""
        plain = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(_finite(plain), ensure_ascii=False, allow_nan=False)

    def to_csv(self) -> str:
        """One line per substructure, columns of numbers once per output."""
        out = io.StringIO()
        writer = csv_writer(out)
        each = ("contribution", "low", "high", "enrichment", "p_value")
        header = ["name", "nodes", "level", "graphs", "measured", "variant_of"]
        writer.writerow([*header, *(f"{name}:{output}" for output in self.outputs for name in each), "examples"])
        for m in self.rows:
            numbers = [getattr(m, name)[c] for c in range(len(self.outputs)) for name in each]
            cells = ["" if not math.isfinite(v) else f"{v:.6g}" for v in numbers]
            first = [m.name, m.nodes, m.level, m.graphs, m.measured, m.variant_of or ""]
            writer.writerow([*first, *cells, " ".join(str(e.graph) for e in m.examples)])
        return out.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write a .csv or .json file, atomically; pages are written by `asapool motifs`."""
        kind = motifs_kind(Path(path), ("csv", "json"))
        write_text(path, self.to_csv() if kind == "csv" else self.to_json() + "\n")


def motifs_kind(path: Path, kinds: tuple[str, ...] = KINDS) -> str:
    """The kind of file that a suffix stands for.

    >>> motifs_kind(Path("motifs.csv"))
    'csv'
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in kinds:
        known = ", ".join(f".{name}" for name in kinds)
        raise ConfigError(
            f"{path}: motifs are written to one of {known}, got {path.suffix or 'no ending'!r}. Rename it"
        )
    return kind


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(v) for name, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, (list, tuple)) else value
