"""All numbers of a hierarchy as tables: the sizes of its levels, the importance of nodes, the members of clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from asapool.insight import Hierarchy
from asapool.insight.importance import KINDS
from asapool.reports.page import TableView

DIGITS = 4  # what the page shows; data is rounded here, so that the script's and the library's digits are the same
LISTED = 12  # strongest memberships that are listed; of the others only their number
ROWS = 400  # of a table


def size_table(hierarchy: Hierarchy) -> TableView:
    """Nodes, edges, components and density of every level."""
    rows = [
        ["graph" if depth == 0 else f"level {depth}", str(c.nodes), str(c.edges), str(c.components), f"{c.density:.2f}"]
        for depth, c in enumerate(hierarchy.connectivity)
    ]
    return TableView(["", "nodes", "edges", "components", "density"], rows, "Sizes of the levels")


def all_tables(hierarchy: Hierarchy) -> list[TableView]:
    """Every number of the drawing for those who cannot see it, or want to copy it."""
    tables = [_importance(hierarchy)]
    for depth, level in enumerate(hierarchy.levels, 1):
        shares = strongest(hierarchy.assignment(depth).tocsc())
        rows = [
            [
                str(k),
                node_name(hierarchy, int(level.medoid[k])),
                f"{level.kept_fitness[k]:.{DIGITS}f}",
                ", ".join(f"{node_name(hierarchy, p)}: {v:.{DIGITS}f}" for p, v in shares[k][1])
                + (f" and {shares[k][0] - LISTED} more" if shares[k][0] > LISTED else ""),
            ]
            for k in range(min(len(level), ROWS))
        ]
        header = ["cluster", "medoid", "fitness", "members and their shares"]
        tables.append(TableView(header, rows, f"Level {depth}" + _cut(len(level))))
    return tables


class AboutWords(NamedTuple):
    """What importance is about, in words; {} in adds is the size of an effect."""

    heading: str
    supports: str
    opposes: str
    question: str
    adds: str = ""
    subtracts: str = ""

    def effect(self, value: float) -> str:
        """What a signed importance means.

        >>> AboutWords("", "raises logS", "lowers logS", "", "adds {} log units", "subtracts {} log units").effect(0.81)
        'adds 0.81 log units'
        """
        if value == 0:
            return "neither"
        if self.adds:
            return (self.adds if value > 0 else self.subtracts).format(f"{abs(value):.3g}")
        return "for" if value > 0 else "against"


def about_words(hierarchy: Hierarchy) -> AboutWords:
    """The words for the explained class, task or value."""
    name, about = hierarchy.classes[hierarchy.target], hierarchy.about
    if hierarchy.kind != "regression":
        opposes = f"against {name}" if hierarchy.against is None else f"for {hierarchy.classes[hierarchy.against]}"
        return AboutWords(f"Importance for {about}", f"for {name}", opposes, f"for or against {about}")
    unit = f" {hierarchy.unit}" if hierarchy.unit else ""
    safe = f"{unit} to {name}".replace("{", "{{").replace("}", "}}")
    other = f"{unit} from {name}".replace("{", "{{").replace("}", "}}")
    return AboutWords(
        f"Effect on {name}", f"raises {name}", f"lowers {name}", f"effect on {name}", f"adds {{}}{safe}",
        f"subtracts {{}}{other}",
    )  # fmt: skip


def node_name(hierarchy: Hierarchy, v: int) -> str:
    """C 7 for an atom, node 7 for a node without a name, both for a long one."""
    name = hierarchy.names[v] if hierarchy.names else ""
    if 0 < len(name) <= 3:
        return f"{name} {v}"
    return f"node {v} ({name})" if name else f"node {v}"


def rounded(values: Any) -> list[float]:
    """As many digits as the page shows, and no negative zero."""
    return [round(v, DIGITS) + 0.0 for v in np.asarray(values).tolist()]


def strongest(shares: Any) -> list[list[Any]]:
    """Per row (or column) of a sparse array: number of entries, then pairs of place and share, strongest first."""
    found: list[list[Any]] = []
    for a, b in zip(shares.indptr[:-1], shares.indptr[1:], strict=True):
        order = np.argsort(-shares.data[a:b], kind="stable")[:LISTED]
        places, values = shares.indices[a:b][order].tolist(), rounded(shares.data[a:b][order])
        found.append([int(b - a), [[p, v] for p, v in zip(places, values, strict=True)]])
    return found


def _importance(hierarchy: Hierarchy) -> TableView:
    """A row per node, sorted by the absolute value of the last kind."""
    kinds, about = list(hierarchy.importance), about_words(hierarchy)
    if not kinds:
        return TableView(["node"], [[node_name(hierarchy, v)] for v in range(min(hierarchy.nodes, ROWS))], "Nodes")
    last = kinds[-1]
    strength, signed = hierarchy.importance[last], KINDS[last].signed
    order = np.argsort(-np.abs(strength), kind="stable")[:ROWS].tolist()
    rows = [
        [
            node_name(hierarchy, v),
            *(f"{hierarchy.importance[kind][v] + 0.0:.{DIGITS}f}" for kind in kinds),
            *([about.effect(float(strength[v]))] if signed else []),
        ]
        for v in order
    ]
    caption = f"{about.heading.replace(' ', ' of the nodes ', 1)}, strongest {last} first"
    if signed:
        caption += f"; the last column says what the {last} of a node means"
    header = ["node", *kinds, *([about.question] if signed else [])]
    return TableView(header, rows, caption + _cut(hierarchy.nodes))


def _cut(count: int) -> str:
    return f" (the first {ROWS} of {count})" if count > ROWS else ""
