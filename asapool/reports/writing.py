"""From a folder to its page, whatever kind of folder it is."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from asapool.data import GraphSet
from asapool.reports.comparison_page import comparison_page
from asapool.reports.record import read_run
from asapool.reports.run_page import run_page
from asapool.training.folder import write_text


def report_page(folder: str | PathLike[str], *, graphs: GraphSet | None = None, mistakes: int = 3) -> str:
    """The page of a run, or of a cross-validation or comparison."""
    path = Path(folder)
    if (path / "plan.json").is_file() and (path / "table.json").is_file():
        return comparison_page(path)
    return run_page(read_run(path), graphs, mistakes)


def write_report(
    folder: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    graphs: GraphSet | None = None,
    mistakes: int = 3,
) -> Path:
    """Write the page, by default as report.html into the folder; graphs saves reading those of a run again."""
    target = Path(folder) / "report.html" if out is None else Path(out)
    write_text(target, report_page(folder, graphs=graphs, mistakes=mistakes))
    return target
