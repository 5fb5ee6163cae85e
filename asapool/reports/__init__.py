"""Self-contained HTML pages of explanations and of results: one file each, readable offline."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from asapool.data import GraphSet
from asapool.files import write_text
from asapool.reports.comparison_page import comparison_page, is_comparison
from asapool.reports.explain_page import explain_page
from asapool.reports.results_page import results_page, write_figures
from asapool.reports.results_table import is_results
from asapool.reports.run_page import read_run, run_page
from asapool.reports.tuning_page import is_search, tuning_page

__all__ = ["explain_page", "report_page", "write_report"]


def report_page(folder: str | PathLike[str], *, graphs: GraphSet | None = None, errors: int = 3) -> str:
    """The page of a run, of a search, of a cross-validation or comparison, or of reproduced tables."""
    path = Path(folder)
    if is_search(path):
        return tuning_page(path)
    if is_comparison(path):
        return comparison_page(path)
    if is_results(path):
        return results_page(path)
    return run_page(read_run(path), graphs, errors)


def write_report(
    folder: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    graphs: GraphSet | None = None,
    errors: int = 3,
) -> Path:
    """Write the page, by default as report.html in the folder; pass `graphs` if those of the run are already loaded.

    Reproduced tables also get their figures, as SVG files in the folder.
    """
    target = Path(folder) / "report.html" if out is None else Path(out)
    write_text(target, report_page(folder, graphs=graphs, errors=errors))
    if is_results(Path(folder)) and not is_comparison(Path(folder)) and not is_search(Path(folder)):
        write_figures(Path(folder))
    return target
