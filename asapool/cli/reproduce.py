"""`asapool reproduce`: a table of the paper, or of your own plan, filled by training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapool.cli import _engines as e
from asapool.cli import _options as o
from asapool.cli._live import ending
from asapool.cli._output import note, working
from asapool.cli._values import words_of
from asapool.cli.cv import describe_failure, end_with_failures
from asapool.cli.results import leave_report
from asapool.errors import ConfigError

if TYPE_CHECKING:
    from asapool.experiments.record import RunRecord
    from asapool.experiments.table_text import Written

WHAT = (
    "table1, table2, table3, table-aggregation, table-attention, table-fitness, table-edges, figure-ratio, "
    "table-hyper, or all; also table-rates, table-semantics, table-plus, table-plus-folds, "
    "ablation-plus, pooling-helps and pooling-range."
)
MISSING = "FRANKENSTEIN"  # its files are not in every collection
What = Annotated[str | None, typer.Argument(metavar="WHAT", help=WHAT)]
PlanOption = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="TOML file with your own plan, instead of WHAT.")
]
Datasets = Annotated[str | None, typer.Option(metavar="NAMES", help="Only these data sets, separated by commas.")]
Methods = Annotated[str | None, typer.Option(metavar="NAMES", help="Only these rows or methods, separated by commas.")]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", rich_help_panel=o.TRAINING, help="How many of the authors' seeds to use; default: all 20."
    ),
]
Folds = Annotated[
    int | None, typer.Option(min=3, metavar="N", rich_help_panel=o.TRAINING, help="Number of folds; default: 10.")
]
Semantics = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Definition of ASAP: authors, paper or pyg; default: the plan's (authors in the paper's tables).",
    ),
]
Smoke = Annotated[bool, typer.Option("--smoke", help="Quick check: a few tiny synthetic graphs instead of the data.")]


def reproduce(
    what: What = None,
    *,
    plan: PlanOption = None,
    datasets: Datasets = None,
    methods: Methods = None,
    seeds: Seeds = None,
    epochs: o.Epochs = None,
    folds: Folds = None,
    engine: e.EngineOptions,
    data_root: o.DataRoot = None,
    out: o.Out = None,
    smoke: Smoke = False,
    semantics: Semantics = None,
    mix_versions: o.MixVersions = False,
    no_report: o.NoReport = False,
    json: o.Json = False,
) -> None:
    """Reproduce a table of the paper by training, and print the paper's numbers beside the new ones.

    Every finished training run is kept in the folder: run the same command again to resume. The tables are
    written as Markdown, CSV and JSON, and updated as runs finish.
    """
    from asapool.experiments import reproducing as r
    from asapool.experiments.plan import load_graphs
    from asapool.experiments.plan_file import read_plan

    worker = engine.named()
    if (what is None) == (plan is None):
        raise ConfigError(f"reproduce takes one of {', '.join(r.known())}, or --plan FILE.toml")
    names = r.names_of(what) if what is not None else [str(plan)]
    plans = r.load_plans(
        names,
        datasets=None if datasets is None else words_of(datasets, "--datasets"),
        methods=None if methods is None else words_of(methods, "--methods"),
        seeds=seeds, folds=folds, epochs=epochs, data_root=data_root, smoke=smoke, semantics=semantics,
    )  # fmt: skip
    if plan is not None:
        names = [one.name for one in plans]
    if further := r.further_seeds(plans):
        more = f", …, {further[-1]}" if len(further) > 1 else ""
        note(f"--seeds: the authors have 20 seeds; the seeds of asapool are used beyond them: {further[0]}{more}")
    folder = out or Path("runs") / f"reproduce-{what or names[0]}{'-smoke' if smoke else ''}"
    with working("Reading the graphs"):
        graphs = load_graphs(plans)
    for one in plans:
        if (
            plan is None
            and datasets is None
            and "Mutagenicity" in one.columns
            and read_plan(one.name).has_data(MISSING)
        ):
            note(f"{one.name}: {MISSING} was not found; Mutagenicity is used instead, under its own name")
    from asapool.cli._live import Watch

    how = f"run the same command again; finished training runs are in {folder}"
    with ending(how), Watch([one for one in plans if one.name in names], graphs) as watch:
        tables, records = r.reproduce(
            names, plans, graphs, folder, worker, mix_versions=mix_versions,
            on_start=watch.start, on_record=watch.record, on_progress=watch.progress,
        )  # fmt: skip
    if not no_report:
        leave_report(folder)
    _show(tables, records, folder, json)


def _show(tables: list[Written], records: list[RunRecord], folder: Path, as_json: bool) -> None:
    failures = [describe_failure(record) for record in records if not record.finished]
    if as_json:
        from json import dumps

        answer: dict[str, Any] = {"folder": str(folder), "failures": failures}
        typer.echo(dumps(answer | {"tables": {t.name: t.to_dict() for t in tables}}, indent=1, ensure_ascii=False))
    else:
        for table in tables:
            typer.echo(table.to_markdown())
        names = ", ".join(f"{table.name}.md" for table in tables)
        typer.echo(f"folder  {folder} ({names}; the same as .csv and .json)")
    end_with_failures(failures, len(records))
