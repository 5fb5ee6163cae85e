"""The scores of every seed as a table, the same on all pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asapool.reports.page import TableView


def seed_table(
    names: Sequence[str], rows: Iterable[tuple[Sequence[str], str, Sequence[float]]], percent: bool = True
) -> TableView:
    """A row per seed: what names it, the seed, and number, mean, lowest and highest of its folds.

    >>> seed_table(["method"], [(["asap"], "8971", [70.0, 72.0])]).rows
    [['asap', '8971', '2', '71.00', '70.00', '72.00']]
    """
    lines = [
        [*own, seed, str(len(v)), f"{sum(v) / len(v):.2f}", f"{min(v):.2f}", f"{max(v):.2f}"] for own, seed, v in rows
    ]
    return TableView(
        [*names, "seed", "folds", "mean", "lowest", "highest"], lines, "By seed, in percent" if percent else "By seed"
    )
