"""Pieces of Markdown that the sections of docs/performance.md are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def times(ratio: dict[str, float]) -> str:
    """5.2× (5.0–5.4)."""
    return f"{ratio['median']:.1f}× ({ratio['quartile_1']:.1f}–{ratio['quartile_3']:.1f})"


def measured_on(result: dict[str, Any]) -> str:
    """One line on where."""
    m = result["machine"]
    versions = f"Python {m['python']}, torch {m['torch']}, torch_geometric {m['torch_geometric']}, numba {m['numba']}"
    where = f"{m['cpu']}, {m['cores']} cores"
    commit = m["commit"][:10] + ("+" if m["commit"].endswith("+") else "")  # + for changes that were not committed
    return f"\nMeasured on {where}, {versions}, commit {commit}, load before {m['load']}.\n"
