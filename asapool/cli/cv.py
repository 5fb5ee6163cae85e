"""`asapool cv` and `asapool compare`: one method, or several with paired tests, on the folds of a data set."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapool.cli import _engines as e
from asapool.cli import _options as o
from asapool.cli._live import ending
from asapool.cli._output import clean, note, note_duplicates, note_reading, print_grid, working
from asapool.cli._values import fold_options, with_settings, words_of
from asapool.cli.results import leave_report
from asapool.cli.train import ENSEMBLE
from asapool.errors import ConfigError

if TYPE_CHECKING:
    from asapool.experiments.record import RunRecord
    from asapool.experiments.tables import Table


Splits = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=o.TRAINING,
        help="JSON file of published splits, instead of --folds and --split.",
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        rich_help_panel=o.TRAINING,
        help="How many of the authors' seeds to use.",
        show_default="1; 3 with --splits",
    ),
]
FoldEnsemble = Annotated[int, typer.Option("--ensemble", min=1, metavar="N", rich_help_panel=o.TRAINING, help=ENSEMBLE)]


@dataclass(frozen=True, kw_only=True)
class CrossOptions:
    """The options that cv and compare share."""

    folds: o.Folds = 10
    seeds: Seeds = None
    seed: o.FirstSeed = None
    split: o.FoldSplit = "authors"
    splits: Splits = None
    ensemble: FoldEnsemble = 1
    config: o.Config = None
    settings: o.Settings = None
    out: o.Out = None
    mix_versions: o.MixVersions = False
    no_report: o.NoReport = False
    json: o.Json = False

    def fold_options(self) -> dict[str, Any]:
        """How folds are made: folds and protocol, or a split file."""
        return fold_options(self.split, self.splits, self.folds)


def cv(
    source: o.Source,
    *,
    data: o.DataOptions,
    method: o.Method = None,
    model: o.ModelOptions,
    training: o.TrainOptions,
    cross: CrossOptions,
    tune: Annotated[
        str | None,
        typer.Option(
            metavar="OPTIONS",
            rich_help_panel=o.TRAINING,
            help="Nested cross-validation: tune within every fold, with options such as trials=20,space=FILE.",
        ),
    ] = None,
    engine: e.EngineOptions,
    keep_models: Annotated[
        bool,
        typer.Option(
            "--keep-models",
            rich_help_panel=o.OUTPUT,
            help="Keep the model of every fold; predict uses the folder as an ensemble.",
        ),
    ] = False,
) -> None:
    """Cross-validate a method: seeds × folds training runs, each scored on its held-out fold.

    Finished folds are kept in the folder: run the same command again to resume.
    """
    tables = {
        "data": data.table(source),
        "model": {"method": method, **asdict(model)},
        "train": asdict(training),
    }
    if tune is not None:
        from asapool.cli.tune import nested

        if cross.ensemble > 1:
            raise ConfigError("--tune compares single models. Leave out --ensemble, or --tune")
        nested(tables, tune, cross, engine)
        return
    cross_validate_methods(tables, None, "cv", cross, engine, keep_models)


def cross_validate_methods(
    tables: dict[str, dict[str, Any]], methods: list[str] | None, command: str, cross: CrossOptions,
    engine: e.EngineOptions, keep_models: bool = False,
) -> None:  # fmt: skip
    """Cross-validate methods (None: the one in the settings) and print one table."""
    from asapool.cli._live import Watch
    from asapool.data.duplicates import duplicates
    from asapool.experiments.crossval import check_plan, methods_plan, short_name
    from asapool.experiments.experiment import carry_out
    from asapool.experiments.verdicts import one_class_answers
    from asapool.training import resolve_reading
    from asapool.training.config import seeds as authors_seeds
    from asapool.training.settings import settings_of_methods

    if keep_models and cross.ensemble > 1:
        raise ConfigError("--keep-models keeps one model of every fold. Leave out --ensemble, or --keep-models")
    worker = engine.named("inline" if engine.jobs in (None, 1) else "local")
    tables = with_settings(tables, cross.settings)
    fold_options = cross.fold_options()
    splits = fold_options.get("splits")
    if splits is not None:  # their indices count graphs without a label too
        tables["split"] = {"kind": "file", "file": str(splits)}
    with working(f"Reading {tables['data']['source']}"):
        chosen, reading = resolve_reading(tables, cross.config)
        graphs = reading.graphs
        repeated = duplicates(graphs)
    note_reading(reading)
    note_duplicates(repeated, cross.split if splits is None else "file")
    names = methods or [chosen.model.method]
    count = cross.seeds or (3 if splits is not None else 1)  # published splits report the mean of three runs
    settings = settings_of_methods(names, graphs, tables, cross.config)
    plan = methods_plan(
        graphs,
        {name: one.model for name, one in settings.items()},
        train={name: one.train for name, one in settings.items()},
        seeds=authors_seeds(count) if cross.seed is None else range(cross.seed, cross.seed + count),
        source=chosen.data,
        ensemble=cross.ensemble,
        **fold_options,
    )
    check_plan(graphs, plan)
    folder = cross.out or Path("runs") / f"{command}-{short_name(graphs, plan)}"
    by_name = {graphs.name: graphs}
    with ending(f"run the same command again; finished folds are in {folder}"), Watch([plan], by_name) as watch:
        [table], records = carry_out(
            [plan], by_name, folder, worker, mix_versions=cross.mix_versions,
            on_start=watch.start, on_record=watch.record, on_progress=watch.progress, keep_models=keep_models,
        )  # fmt: skip
    if keep_models and any(record.finished for record in records):
        from asapool.experiments.ensembles import save_folds

        with working("Combining the models"):
            save_folds(graphs, folder, [record.run for record in records if record.finished], plan.cells[0].splits)
    if not cross.no_report:
        leave_report(folder)
    failures = [describe_failure(record) for record in records if not record.finished]
    for sentence in one_class_answers(records):
        note(f"Warning: {sentence}")
    if cross.json:
        from json import dumps

        typer.echo(
            dumps({"folder": str(folder), "failures": failures, **table.to_dict()}, indent=1, ensure_ascii=False)
        )
    else:
        show_table(table, folder)  # type: ignore[arg-type]
    end_with_failures(failures, len(records))


def show_table(table: Table, folder: Path) -> None:
    """Print a comparison: mean test scores, deviations over seeds and over folds, tests, and what they mean."""
    from asapool.experiments.columns import grid, task_grid
    from asapool.experiments.rendering import notes

    seeds = f"seed{'s' * (len(table.seeds) > 1)} {', '.join(map(str, table.seeds))}"
    title = f"Test {table.headline.words}: {table.columns[0]}, {table.folds} folds, {seeds}"
    print_grid(title, *grid(table, terminal=True, tests=False))
    head, tests = grid(table, terminal=True, tests=True)
    if tests:
        print_grid("Paired tests on the same folds", head, tests)
    by_task = task_grid(table)
    if by_task is not None:
        print_grid(f"Test {table.headline.words} of every task, with 95 % intervals", *by_task)
    for sentence in notes(table):
        typer.echo(clean(sentence))
    typer.echo(clean(f"folder  {folder}"))


def describe_failure(record: RunRecord) -> str:
    """A failed training run in one line."""
    run = record.run
    return f"{run.data}, {run.model.method}, seed {run.seed}, fold {run.fold}: {record.failure}"


def end_with_failures(failures: list[str], trainings: int) -> None:
    """If training runs failed, list them and exit with code 1."""
    if failures:
        for text in failures:
            note(f"asapool: {text}")
        note(f"asapool: {len(failures)} of {trainings} training runs failed; the same command tries them again")
        raise typer.Exit(1)


def compare(
    source: o.Source,
    *,
    data: o.DataOptions,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            rich_help_panel=o.MODEL,
            help="Methods, separated by commas; each is tested against the first.",
            show_default="all pooling methods, and the networks without pooling",
        ),
    ] = None,
    model: o.ModelOptions,
    training: o.TrainOptions,
    cross: CrossOptions,
    engine: e.EngineOptions,
) -> None:
    """Cross-validate several methods on the same folds and test whether they differ.

    The paired tests are the corrected resampled t-test (folds share training graphs) and Wilcoxon's. Finished folds are
    kept: run the same command again to resume.
    """
    tables = {"data": data.table(source), "model": asdict(model), "train": asdict(training)}
    names = words_of(methods, "--methods") if methods is not None else _networks()
    cross_validate_methods(tables, names, "compare", cross, engine)


def _networks() -> list[str]:
    from asapool.models.methods import method_names

    return list(method_names(trainer="gradient", builtin=True))
