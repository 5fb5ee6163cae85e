"""`asapool report`: a run or a cross-validation in, one page about it out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asapool.cli._output import show, working


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, of a cross-validation or of a comparison.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="HTML file; by default report.html in the folder.")] = None,
    mistakes: Annotated[int, typer.Option(min=0, help="How many of the surest mistakes are explained.")] = 3,
) -> None:
    """Write the page of a run: curves, confusion, ROC, calibration, the surest mistakes; or of a comparison: its spread."""
    from asapool.reports import write_report

    with working(f"Reading {folder}"):
        path = write_report(folder, out, mistakes=mistakes)
    show(None, {"report": str(path)}, False)
