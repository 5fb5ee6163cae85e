"""All numbers of a hierarchy as tables: how its levels hang together, how much nodes matter, who is in a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from asapool.insight import Hierarchy
from asapool.reports.page import table

DIGITS = 4  # what the page shows; data is rounded here, so that the script's and the library's digits are the same
LISTED = 12  # strongest memberships that are listed; the number of the others is told
ROWS = 400  # of a table
SIGNED = ("gradient", "occlusion")  # kinds of importance that speak for a class or against it
PARTS = "Parts: pieces that no edge joins. Density: share of all pairs of nodes that an edge joins."


def sizes(hierarchy: Hierarchy) -> str:
    """How each level hangs together: SᵀAS fills up."""
    rows = [
        ["graph" if depth == 0 else f"level {depth}", str(c.nodes), str(c.edges), str(c.components), f"{c.density:.2f}"]
        for depth, c in enumerate(hierarchy.connectivity)
    ]
    found = table(["", "nodes", "edges", "parts", "density"], rows, "How the levels hang together", "numbers")
    return f'<div class="sizes">{found}<p class="words">{PARTS}</p></div>'


def tables(hierarchy: Hierarchy) -> str:
    """Every number of the drawing for those who cannot see it, or want to copy it."""
    found = _importance(hierarchy)
    for depth, level in enumerate(hierarchy.levels, 1):
        shares = strongest(hierarchy.assignment(depth).tocsc())
        lines = [
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
        found += table(header, lines, f"Level {depth}" + _cut(len(level)), "numbers")
    return f'<details class="tables"><summary>All numbers as tables</summary>{found}</details>'


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


def _importance(hierarchy: Hierarchy) -> str:
    """A row per node, those first that the last kind finds strongest, whichever way they speak."""
    kinds, about = list(hierarchy.importance), hierarchy.classes[hierarchy.target]
    if not kinds:
        return table(["node"], [[node_name(hierarchy, v)] for v in range(min(hierarchy.nodes, ROWS))], "Nodes")
    last = kinds[-1]
    strength = hierarchy.importance[last]
    order = np.argsort(-np.abs(strength), kind="stable")[:ROWS].tolist()
    rows = [
        [
            node_name(hierarchy, v),
            *(f"{hierarchy.importance[kind][v] + 0.0:.{DIGITS}f}" for kind in kinds),
            *(["for" if strength[v] > 0 else "against" if strength[v] < 0 else "neither"] if last in SIGNED else []),
        ]
        for v in order
    ]
    said = f"Importance of the nodes for {about}, strongest {last} first"
    if last in SIGNED:
        said += f"; the last column says whether its sign speaks for {about} or against it"
    header = ["node", *kinds, *([f"for or against {about}"] if last in SIGNED else [])]
    return table(header, rows, said + _cut(hierarchy.nodes), "numbers")


def _cut(count: int) -> str:
    return f" (the first {ROWS} of {count})" if count > ROWS else ""
