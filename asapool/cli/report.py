"""`asapool report`: a run, a cross-validation or reproduced tables in, one page about them out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asapool.cli._output import note, show, working
from asapool.errors import AsapoolError

if TYPE_CHECKING:
    from asapool.data import GraphSet


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, of a comparison or of reproduced tables.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="HTML file; by default report.html in the folder.")
    ] = None,
    errors: Annotated[
        int, typer.Option("--errors", "--mistakes", min=0, help="How many of the most confident errors are explained.")
    ] = 3,
) -> None:
    """Write the page of a run (scores, curves, most confident errors), of a comparison or of reproduced tables."""
    from asapool.reports import write_report

    with working(f"Reading {folder}"):
        path = write_report(folder, out, errors=errors)
    show(None, {"report": str(path)}, False)


def leave_report(folder: Path, graphs: GraphSet | None = None) -> None:
    """Write the page of a run that just ended; where that fails the run is still good, and one line says why."""
    from asapool.reports import write_report

    try:
        with working("Writing the report"):
            write_report(folder, graphs=graphs)
    except AsapoolError as error:
        note(f"asapool: the report is missing or incomplete: {error}")
