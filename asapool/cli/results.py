"""`asapool results` and `asapool report`: summaries of stored training runs, and the report of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapool.cli import _options as o
from asapool.cli._output import note, print_grid, show, working
from asapool.errors import AsapoolError, ConfigError

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.overview import Difference, Overview, RunGroup


PLACES = "Folders written by asapool reproduce, files such as results/NCI1.jsonl, or a folder of such files."
Folders = Annotated[list[Path], typer.Argument(metavar="DIR", help=PLACES)]
Merge = Annotated[Path | None, typer.Option("--merge", metavar="OUT", help="Merge them into this folder.")]
Compare = Annotated[
    bool, typer.Option("--compare", help="Compare two folders: the difference of every cell that both have.")
]


def results(folders: Folders, merge: Merge = None, compare: Compare = False, json: o.Json = False) -> None:
    """Summarise stored training runs: the verdicts on the paper's claims, then every row of every table."""
    from asapool.experiments import overview as v

    if compare and (len(folders) != 2 or merge is not None):
        raise ConfigError(f"--compare takes two folders and no --merge, got {len(folders)} folders")
    if merge is not None:
        with working("Merging"):
            count = v.merge_folders(folders, merge)
        note(f"{count} records were added to {merge}")
        folders = [merge]
    if compare:
        with working("Comparing"):
            differences = v.differences(*folders)
        answer: Any = {
            "first": str(folders[0]), "second": str(folders[1]), "differences": [one.to_dict() for one in differences],
        }  # fmt: skip
        _print(answer, json, lambda: _show_differences(differences, folders))
        return
    with working("Reading"):
        found = {str(folder): v.overview(folder) for folder in folders}
    _print({name: one.to_dict() for name, one in found.items()}, json, lambda: _show_overviews(found))


def _print(answer: Any, as_json: bool, show: Any) -> None:
    if as_json:
        from json import dumps

        typer.echo(dumps(answer, indent=1, ensure_ascii=False))
    else:
        show()


def _show_overviews(found: dict[str, Overview]) -> None:
    for folder, one in found.items():
        if one.claims:
            lines = [[v.words, v.verdict, ", ".join(v.decided_on) or "–", table] for table, v in one.claims]
            print_grid(f"{folder}: the paper's claims", ["claim", "verdict", "tested on", "table"], lines, left=4)
        for plan, rows in one.tables().items():
            _show_groups(f"{folder}, {plan or 'in no table'}: accuracy in percent", rows)


def _show_groups(title: str, rows: list[tuple[str, RunGroup]]) -> None:
    from asapool.training.metrics import percent

    names = ["data", "row", "test", "± over seeds", "± over folds", "validation", "seeds", "folds"]
    lines = [
        [s.data, row, *map(percent, (s.test, s.over_seeds, s.over_folds, s.validation)),
         str(s.seeds), f"{s.folds}" + (f" ({s.failed} failed)" if s.failed else "")]
        for row, s in rows
    ]  # fmt: skip
    print_grid(title, names, lines, left=2)


def _show_differences(differences: list[Difference], folders: list[Path]) -> None:
    from asapool.experiments.table_text import signed
    from asapool.training.metrics import percent

    names = ["data", "plan: row", "first", "second", "second − first", "runs", "p (corrected t)", "p (Wilcoxon)"]
    lines = []
    for one in differences:
        t = one.test
        margin = None if t["margin"] is None else 100 * t["margin"]
        gap = signed(100 * t["difference"] if t["n"] else None, margin)
        lines.append(
            [one.data, one.name, percent(one.first), percent(one.second), gap, str(t["n"]),
             _p(t["p_corrected_t"], t["note"]), _p(t["p_wilcoxon"], "")]
        )  # fmt: skip
    print_grid(f"Test accuracy in percent: first {folders[0]}, second {folders[1]}", names, lines, left=2)


def _p(value: float | None, note: str) -> str:
    from asapool.experiments.table_text import p_value

    return f"– ({note})" if value is None and note else p_value(value)


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder of a run, a cross-validation, a search or reproduced tables."),
    ],
    out: Annotated[Path | None, o.out_file("HTML file; by default report.html in the folder.")] = None,
    errors: Annotated[
        int,
        typer.Option(
            "--errors", "--mistakes", min=0, metavar="N", help="How many of the most confident errors to explain."
        ),
    ] = 3,
) -> None:
    """Write the HTML report of a run, a cross-validation, a comparison, a search or reproduced tables."""
    from asapool.reports import write_report

    with working(f"Reading {folder}"):
        path = write_report(folder, out, errors=errors)
    show(None, {"report": str(path)}, False)


def leave_report(folder: Path, graphs: GraphSet | None = None) -> None:
    """Write the report of a run that just ended; if that fails, print the reason and keep the run."""
    from asapool.reports import write_report

    try:
        with working("Writing the report"):
            write_report(folder, graphs=graphs)
    except AsapoolError as error:
        note(f"asapool: the report is missing or incomplete: {error}")
