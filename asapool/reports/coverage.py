"""Coverage of conformal sets and intervals: the stated share of the truth they contain against the measured one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from asapool.data.targets import Target
from asapool.reports.charts import Line, line_chart
from asapool.reports.curves import Panel
from asapool.reports.page import TableView
from asapool.training.calibration import needed_graphs, too_few_graphs

SHOWN = 0.9  # coverage of the interval in the chart of measured and predicted values


class CoverageLevel(NamedTuple):
    """A stated coverage, the share of test graphs covered, and the mean set size or interval width."""

    coverage: float
    covered: float
    size: float


def known_levels(conformal: Mapping[str, Any] | None) -> list[CoverageLevel]:
    """The levels that were measured, by coverage; those that need more validation graphs are left out.

    Args:
        conformal: as measured_coverage returns it; None for runs of older versions.

    >>> levels = [{"coverage": c, "covered": 0.8, "size": 2.0} for c in (0.9, 0.5)]
    >>> known_levels({"validation": 8, "levels": levels})  # 0.9 needs 9 validation graphs
    [CoverageLevel(coverage=0.5, covered=0.8, size=2.0)]
    """
    conformal = conformal or {}
    levels = [
        CoverageLevel(one["coverage"], one["covered"], one["size"])
        for one in conformal.get("levels", ())
        if one["covered"] is not None
        and one["size"] is not None
        # sets of classes from too few graphs have a size, but contain every class
        and needed_graphs(one["coverage"]) <= conformal["validation"]
    ]
    return sorted(levels)


def half_widths(conformal: Mapping[str, Any] | None, target: Target) -> dict[str, float]:
    """Half the width of the 90 % interval of every task; a task is left out if its width is unknown.

    It is if the task has too few validation graphs, and in older runs of several tasks, which store only the mean.
    """
    levels = (conformal or {}).get("levels", ())
    level = next((one for one in levels if one["coverage"] == SHOWN and one["covered"] is not None), None)
    if target.kind != "regression" or level is None:
        return {}
    sizes = level.get("sizes") or ({target.names[0]: level["size"]} if target.tasks == 1 else {})
    return {name: size / 2 for name, size in sizes.items() if size is not None}


def coverage_panel(conformal: Mapping[str, Any] | None, target: Target) -> Panel | None:
    """Stated against measured coverage, as a chart and a table; None if nothing was measured.

    If there are too few validation graphs for any level, the panel has only a note.
    """
    levels, few = known_levels(conformal), too_few_graphs(conformal, target)
    intervals = target.kind == "regression"
    what = "intervals" if intervals else "sets"
    if not conformal or not levels:
        return Panel(f"Coverage of conformal {what}", note=f"{few}.") if few else None
    low = max(0.0, min(min(level.coverage, level.covered) for level in levels) - 0.05)
    lines = [
        Line("as stated", [low, 1], [low, 1], aside=True),
        Line("test graphs", [level.coverage for level in levels], [level.covered for level in levels], dots=True),
    ]
    chart = line_chart(lines, "coverage", "stated coverage", "share covered", (low, 1), (low, 1))
    mean = "mean width" if intervals else "mean classes per set"
    rows = [
        [
            f"{100 * level.coverage:.0f} %",
            f"{100 * level.covered:.1f} %",
            f"{level.size:{'.3g' if intervals else '.2f'}}",
        ]
        for level in levels
    ]
    table = TableView(["stated", "covered", mean], rows, f"Conformal {what} of the test graphs", "numbers narrow")
    graphs = conformal["validation"]
    contain = (
        "the measured value" if intervals else "the true class" if target.kind == "classification" else "the truth"
    )
    fewest = "" if target.tasks == 1 else " in the task with the fewest"
    note = (
        f"A conformal {what[:-1]} should contain {contain} as often as its stated coverage says; it was calibrated on "
        f"{graphs:,} validation graph{'' if graphs == 1 else 's'}{fewest}."
    ) + (f" {few}." if few else "")
    return Panel(f"Coverage of conformal {what}", chart, table=table, note=note)
