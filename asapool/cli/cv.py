"""`asapool cv`: the paper's protocol for one method; and what `asapool compare` shares with it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from asapool.cli import _engines as e
from asapool.cli import _options as o
from asapool.cli._notes import note_reading
from asapool.cli._output import note, plain, working
from asapool.cli._progress import FoldBar, ending
from asapool.cli.report import leave_report

if TYPE_CHECKING:
    from asapool.experiments.comparison import Comparison


def cv(
    source: o.Source,
    *,
    data: o.DataOptions,
    method: o.Method = None,
    model: o.ModelOptions,
    training: o.TrainOptions,
    folds: o.Folds = 10,
    seeds: o.Seeds = 1,
    jobs: e.Jobs = None,
    seed: o.FirstSeed = None,
    out: o.Out = None,
    protocol: o.Protocol = "authors",
    config: o.Config = None,
    settings: o.Settings = None,
    engine: e.Engine = "local",
    address: e.Address = None,
    no_report: o.NoReport = False,
    json: o.Json = False,
) -> None:
    """Cross-validate a method: seeds × folds trainings, each scored on its held-out fold.

    Finished folds are kept in the folder: run the same command again to resume.
    """
    tables = o.with_settings(
        {
            "data": data.table(source),
            "model": {"method": method, **asdict(model)},
            "train": asdict(training),
        },
        settings,
    )
    cross(tables, None, "cv", config, folds, seeds, seed, protocol, (engine, address, jobs), out, json, no_report)


def cross(
    tables: dict[str, dict[str, Any]], methods: list[str] | None, command: str, config: Path | None, folds: int,
    seeds: int, seed: int | None, protocol: str, by: tuple[str, str | None, int | None], out: Path | None, json: bool,
    no_report: bool,
) -> None:  # fmt: skip
    """Cross-validate methods (None = that of the settings) and show one table; by: engine, address and jobs."""
    from dataclasses import replace

    from asapool.experiments import compare
    from asapool.experiments.comparison_text import write_tables
    from asapool.experiments.crossval import InProcess, cross_validate, methods_plan, short_name
    from asapool.training import resolve_reading
    from asapool.training.presets import seeds as authors_seeds

    worker = e.engine_named(*by)
    if by[0] == "local" and by[2] in (None, 1):
        worker = InProcess()
    with working(f"Reading {tables['data']['source']}"):
        chosen, reading = resolve_reading(tables, config)
    note_reading(reading)
    graphs = reading.graphs
    names = methods or [chosen.model.method]
    plan = methods_plan(
        graphs,
        {name: replace(chosen.model, method=name) for name in names},
        train=chosen.train,
        folds=folds,
        seeds=authors_seeds(seeds) if seed is None else tuple(range(seed, seed + seeds)),
        protocol=o.protocol_named(protocol),
        source=chosen.data,
    )
    folder = out or Path("runs") / f"{command}-{short_name(graphs, plan)}"
    go_on = f"the same command; finished folds are in {folder}"
    with ending(go_on), FoldBar(len(plan.seeds) * folds * len(names)) as bar:
        results = cross_validate(graphs, plan, folder, engine=worker, on_fold=bar)
        answer = compare(results, folds)
        write_tables(folder, results, answer)
    if not no_report:
        leave_report(folder)
    if json:
        from json import dumps

        typer.echo(dumps({"folder": str(folder), **plain(answer)}, indent=2, ensure_ascii=False))
    else:
        show_table(answer, f"{graphs.name}, {folds} folds, seeds {', '.join(map(str, plan.seeds))}", folder)
    if answer.failures:
        note(f"asapool: {len(answer.failures)} of {len(results)} trainings failed; the same command tries them again")
        raise typer.Exit(1)


def show_table(answer: Comparison, title: str, folder: Path) -> None:
    """Print the table: percent of test graphs that are right, the two deviations apart, and the tests."""
    from rich.console import Console
    from rich.table import Table

    from asapool.training.metrics import percent

    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # nothing is cut off in a file or a pipe
    grid = Table(title=f"Test accuracy in percent: {title}", title_justify="left")
    names = ["method", "mean", "± over seeds", "± over folds", "validation", "ROC AUC", "folds", "s/fold"]
    tested = bool(answer.tests)
    for name in names + ([f"− {answer.reference}", "p (corrected t)", "p (Holm)", "p (Wilcoxon)"] if tested else []):
        grid.add_column(name, justify="left" if name == "method" else "right")
    for row in answer.rows:
        done = f"{row.folds}" + (f" ({row.failed} failed)" if row.failed else "")
        cells = [
            row.method,
            percent(row.mean),
            percent(row.over_seeds),
            percent(row.over_folds),
            percent(row.validation),
        ]
        cells += [percent(row.scores["roc_auc"]), done, "–" if row.seconds is None else f"{row.seconds:.1f}"]
        test = answer.tests.get(row.method)
        if tested:
            cells += ["", "", "", ""] if test is None else _test_cells(test)
        grid.add_row(*cells)
    console.print(grid)
    console.print(f"folder  {folder}", soft_wrap=True)


def _test_cells(test: dict[str, Any]) -> list[str]:
    values = (test["p_corrected_t"], test["p_holm"], test["p_wilcoxon"])
    return [f"{-100 * test['difference']:+.2f}", *("–" if p is None else f"{p:.3g}" for p in values)]
