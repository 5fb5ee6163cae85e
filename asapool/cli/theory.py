"""`asapool theory`: check the paper's theorems and print the verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapool.cli import _options as o
from asapool.cli._output import note, show

if TYPE_CHECKING:
    from asapool.theory.report import Report


def theory(
    max_nodes: Annotated[
        int, typer.Option(metavar="N", help="Check all trees with up to this many nodes.", min=8, max=16)
    ] = 14,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for figures and verdicts.json.")
    ] = None,
    json: o.Json = False,
) -> None:
    """Check the paper's theorems on all small graphs, and list what holds, what does not and what is misprinted."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from asapool.insight.drawing.figure import new_figure, save_figures
    from asapool.reports.theory_figures import all_figures, make_folder, write_verdicts
    from asapool.theory import verify

    folder = make_folder(out) if out else None
    if folder:
        new_figure(1, 1)  # report a missing matplotlib now, not after the work
    columns = (TextColumn("{task.description:24}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("all trees", total=1.0)
        report = verify(
            max_nodes, progress=lambda text, done, total: bar.update(task, description=text, completed=done / total)
        )
        if folder:
            bar.update(task, description="figures", completed=0)
            written = [*save_figures(all_figures(report), folder), write_verdicts(report, folder)]
    if json:
        show(report.to_dict(), {}, as_json=True)
    else:
        tables(report, Console(width=None if Console().is_terminal else 140))
    for file in written if folder else ():
        note(f"wrote {file}")
    if not report.sound:
        raise typer.Exit(1)


def tables(report: Report, console: Any) -> None:
    """Print the tables: optimum-nodes, selections, receptive fields, graph powers, claims, misprints."""
    from rich.table import Table
    from rich.text import Text

    def table(title: str, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
        grid = Table(title=title, title_justify="left", show_lines=False)
        for name in names:
            grid.add_column(name, overflow="fold")
        for row in rows:
            grid.add_row(*(Text("–" if cell is None else str(cell)) for cell in row))  # Text: [i, i] is not markup
        console.print(grid)

    sizes = sorted({row.N for row in report.trees})
    best = {(row.N, row.h): row for row in report.trees}
    table(
        "Largest n*_h among all trees of N nodes (formula in brackets if it differs)",
        ("N", "trees", *(f"h={h}" for h in range(1, 9))),
        [(N, best[N, 1].trees, *(_cell(best.get((N, h))) for h in range(1, 9))) for N in sizes],
    )
    table(
        "Most kept nodes without an edge, every selection pooled (formula in brackets if it differs)",
        ("family", "method", "h", *(f"N={N}" for N in range(2, 12))),
        _selection_rows(report),
    )
    table(
        "Receptive fields, probed, in hops",
        ("method", "nodes that change X^p", "span of a pooled edge", "edges that change A^p", "everything"),
        [(name, f.node, f.span, f.edge, "yes" if f.whole else "no") for name, f in report.fields.items()],
    )
    table("Reach with the k-th graph power", ("k", "h", "TopK", "ASAP", "ASAP on the power graph"), list(report.powers))
    table(
        "Who stands out from its neighbours? One layer, trained, on unseen graphs",
        ("layer", "task", "accuracy", "AUC", "bound for GCN"),
        [(t.layer, t.task, f"{t.accuracy:.3f}", f"{t.auc:.3f}", f"{t.bound:.3f}") for t in report.trainings],
    )
    table(
        "Claims",
        ("claim", "says", "verdict", "found"),
        [(c.name, c.says, c.verdict, c.found) for c in report.claims],
    )
    table(
        "Misprints",
        ("where", "printed", "correct", "checked"),
        [(s.where, s.printed, s.right, "confirmed" if s.confirmed else "NOT CONFIRMED") for s in report.misprints],
    )
    words = "as documented in docs/theory.md" if report.sound else "NOT as documented in docs/theory.md"
    console.print(f"{len(report.claims)} claims and {len(report.misprints)} misprints, all checks {words}")


def _cell(row: Any) -> str | None:
    if row is None:
        return None
    return _counted(row.best, row.formula)


def _counted(counted: int, formula: int) -> str:
    return str(counted) if counted == formula else f"{counted} ({formula})"


def _selection_rows(report: Report) -> list[tuple[Any, ...]]:
    kinds = list(dict.fromkeys((row.family, row.method, row.h) for row in report.selections))
    by_kind = {(row.family, row.method, row.h, row.N): row for row in report.selections}

    def cell(kind: tuple[Any, ...], N: int) -> str | None:
        row = by_kind.get((*kind, N))
        return None if row is None else _counted(row.edgeless, row.formula)

    return [(*kind, *(cell(kind, N) for N in range(2, 12))) for kind in kinds]
