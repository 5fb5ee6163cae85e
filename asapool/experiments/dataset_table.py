"""The paper's table of data sets (`table3`), counted from the graphs, with the paper's numbers beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from asapool.experiments.markup import csv_text, markdown
from asapool.experiments.paper import STAND_INS, STATISTICS, Statistics, canonical

if TYPE_CHECKING:
    from asapool.data import GraphSet

WORDS = {"graphs": "graphs", "classes": "classes", "nodes": "nodes (mean)", "edges": "edges (mean)"}


@dataclass(frozen=True, kw_only=True)
class DataRow:
    """One data set: what was counted, and what the paper prints; other names the paper's data set if it is another."""

    name: str
    ours: Statistics
    paper: Statistics | None
    other: str = ""

    @property
    def difference(self) -> Statistics | None:
        """Ours − the paper's, to the two digits that are printed; None where the paper has no such data set."""
        a, b = self.ours, self.paper
        if b is None or self.other:
            return None
        nodes, edges = round(a.nodes - b.nodes, 2), round(a.edges - b.edges, 2)
        return Statistics(a.graphs - b.graphs, a.classes - b.classes, nodes, edges)

    @property
    def verdict(self) -> str | None:
        """Whether all four numbers are the paper's."""
        gap = self.difference
        return None if gap is None else "the same" if not any(gap) else "different"


@dataclass(frozen=True, kw_only=True)
class StatisticsTable:
    """All data sets."""

    name: str = "table3"
    title: str = "Statistics of the data sets"
    rows: tuple[DataRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        rows = [
            {"name": r.name, "ours": r.ours._asdict(), "paper": r.paper._asdict() if r.paper else None,
             "other": r.other, "difference": r.difference._asdict() if r.difference else None, "verdict": r.verdict}
            for r in self.rows
        ]  # fmt: skip
        return {"kind": "statistics", **asdict(self), "rows": rows}

    def to_markdown(self) -> str:
        """Ours, with the paper's in brackets where they differ."""
        head = ["data set", *WORDS.values(), "the paper"]
        return markdown(head, [[r.name, *map(_number, r.ours), _paper_text(r)] for r in self.rows])

    def to_csv(self) -> str:
        """A line per data set."""
        head = ["name", *WORDS, *(f"paper_{name}" for name in WORDS), "paper_data", "verdict"]
        rows = [
            [r.name, *map(_number, r.ours), *(map(_number, r.paper) if r.paper else [""] * 4), r.other, r.verdict or ""]
            for r in self.rows
        ]
        return csv_text(head, rows)


def table3(graphs: Mapping[str, GraphSet]) -> StatisticsTable:
    """Count what each data set holds; graphs by the name of their column."""
    rows = []
    for name, some in graphs.items():
        counted = some.summary()
        means = round(counted.nodes_mean, 2), round(counted.edges_mean, 2)
        ours = Statistics(counted.graphs, counted.classes, *means)
        own = canonical(name)
        other = STAND_INS.get(own, "")
        rows.append(DataRow(name=name, ours=ours, paper=STATISTICS.get(other or own), other=other))
    return StatisticsTable(rows=tuple(rows))


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def _paper_text(row: DataRow) -> str:
    if row.paper is None:
        return "–"
    numbers = ", ".join(map(_number, row.paper))
    if row.other:
        return f"{row.other} {numbers} (other data)"
    return "the same" if row.verdict == "the same" else f"{numbers} (different)"
