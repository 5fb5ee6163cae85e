"""`asapool tune`: search for settings, by the validation part alone."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapool.cli import _engines as e
from asapool.cli import _options as o
from asapool.cli._live import ending
from asapool.cli._output import clean, note, note_reading, print_grid, working
from asapool.cli._values import with_settings
from asapool.errors import ConfigError

if TYPE_CHECKING:
    from asapool.cli.cv import CrossOptions
    from asapool.experiments.tuning import Search, Trial

SEARCH = "Search"
SECONDS = {"s": 1, "m": 60, "h": 3600}


def tune(
    source: o.Source,
    *,
    data: o.DataOptions,
    method: o.Method = None,
    trials: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=SEARCH, help="Settings to try, the default included.")
    ] = 20,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", rich_help_panel=SEARCH, help="Start no new trial after this time, such as 90s, 30m or 2h."
        ),
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=SEARCH, help="TOML file of the settings to search."),
    ] = None,
    sampler: Annotated[
        str,
        typer.Option(
            metavar="NAME", rich_help_panel=SEARCH, help="tpe, random or grid (if the space consists of lists)."
        ),
    ] = "tpe",
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=SEARCH, help="Validation score that decides.", show_default="by task"
        ),
    ] = None,
    no_prune: Annotated[
        bool, typer.Option("--no-prune", rich_help_panel=SEARCH, help="Train every trial to its last epoch.")
    ] = False,
    train_best: Annotated[
        bool,
        typer.Option(
            "--train-best",
            rich_help_panel=SEARCH,
            help="Then train the best settings on the training and validation parts together, in OUT/best.",
        ),
    ] = False,
    model: o.ModelOptions,
    training: o.TrainOptions,
    config: o.Config = None,
    settings: o.Settings = None,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", rich_help_panel=SEARCH, help="Seed of the split and the sampler.")
    ] = 0,
    folds: o.Folds = 10,
    engine: e.EngineOptions,
    out: o.Out = None,
    no_report: o.NoReport = False,
    json: o.Json = False,
) -> None:
    """Search for the best settings; the validation part decides, and the test part is scored once at the end.

    Run the same command again to continue a search that was stopped; finished trials are not trained again.
    """
    from asapool.cli.results import leave_report
    from asapool.errors import choose
    from asapool.experiments.searching import train_best_trial, write_search
    from asapool.experiments.space import Space
    from asapool.experiments.store import Store
    from asapool.experiments.tuning import Tuner
    from asapool.training import resolve_reading

    choose("--sampler", sampler, ("tpe", "random", "grid"))
    limit = _seconds(time)
    worker = engine.named("inline" if engine.jobs in (None, 1) else "local")
    tables = {
        "data": data.table(source),
        "model": {"method": method, **asdict(model)},
        "train": asdict(training),
    }
    with working(f"Reading {source}"):
        chosen, reading = resolve_reading(with_settings(tables, settings), config)
    note_reading(reading)
    graphs, wanted = reading.graphs, Space.read(space, chosen.model.method)
    if space is None:  # what the command line fixes is not searched
        wanted = wanted.without(with_settings(tables, settings))
    folder = out or Path("runs") / f"tune-{_safe(graphs.name)}-{chosen.model.method}"
    with ending(f"run the same command again; finished trials are in {folder}"), Store.open(folder) as store:
        tuner = Tuner(
            graphs=graphs, space=wanted, base=chosen.to_dict(), store=store, seed=seed, folds=folds, sampler=sampler,
            prune=not no_prune, metric=metric,
        )  # fmt: skip
        note(f"Searching {len(wanted.free)} settings in {trials} trials, by validation {tuner.metric}")
        search = tuner.search(worker, trials, limit, lambda trial, so_far: show_trial(trial, so_far, trials))
        result = write_search(search, graphs, folder)
        if train_best:
            with working("Training the best settings on the training and validation parts"):
                final = train_best_trial(search, graphs, folder, reading)
    if not no_report:
        leave_report(Path(folder))
    if json:
        from json import dumps

        typer.echo(dumps({"folder": str(folder), **result}, indent=1, ensure_ascii=False))
        return
    for name, value in search.best.chosen.items():
        typer.echo(clean(f"{name:24} {value}"))
    typer.echo(clean(result["sentence"]))
    if train_best:
        typer.echo(clean(f"model   {Path(folder) / 'best'}, trained on {final['parts']['train']:,} graphs"))
    typer.echo(clean(f"folder  {folder}"))


def show_trial(trial: Trial, search: Search, trials: int, where: str = "") -> None:
    """A line on standard error for every trial that ends."""
    done = len(search.trials)
    if trial.value is None:
        note(f"{where}trial {trial.number} ({done} of {trials}): {trial.record.failure}")
        return
    best = search.best
    lead = "the best so far" if best.number == trial.number else f"best {best.value:.4g} in trial {best.number}"
    note(f"{where}trial {trial.number} ({done} of {trials}): validation {search.metric} {trial.value:.4g}; {lead}")


def nested(tables: dict[str, dict[str, Any]], words: str, cross: CrossOptions, engine: e.EngineOptions) -> None:
    """`asapool cv --tune`: search inside every fold, and score the best of each on its test part."""
    from asapool.experiments.searching import nested_summary, tune_nested
    from asapool.experiments.space import Space
    from asapool.training import resolve_reading

    wanted = parse_tune(words)
    trials = wanted.pop("trials", 20)
    worker = engine.named("inline" if engine.jobs in (None, 1) else "local")
    tables = with_settings(tables, cross.settings)
    fold_options = cross.fold_options()
    if "splits" in fold_options:
        tables["split"] = {"kind": "file", "file": str(fold_options["splits"])}
    with working(f"Reading {tables['data']['source']}"):
        chosen, reading = resolve_reading(tables, cross.config)
    note_reading(reading)
    graphs = reading.graphs
    file = wanted.pop("space", None)
    space = Space.read(file, chosen.model.method)
    if file is None:  # what the command line fixes is not searched
        space = space.without(tables)
    folder = cross.out or Path("runs") / f"nested-{_safe(graphs.name)}-{chosen.model.method}"
    note(f"Searching {len(space.free)} settings in {trials} trials inside every fold")
    with ending(f"run the same command again; finished trials are in {folder}"):
        searches = tune_nested(
            graphs, folder, trials=trials, space=space, engine=worker, settings=chosen.to_dict(), seed=cross.seed or 0,
            on_trial=lambda trial, search: show_trial(trial, search, trials, f"fold {search.fold}, "),
            **fold_options, **wanted,
        )  # fmt: skip
    summary = nested_summary(searches, graphs)
    if cross.json:
        from json import dumps

        typer.echo(dumps({"folder": str(folder), **summary}, indent=1, ensure_ascii=False))
        return
    rows = [
        [
            str(row["fold"]),
            str(row["trial"]),
            _number(row["inner"]),
            _number(row["outer"]),
            _number(row["default_outer"]),
        ]
        for row in summary["folds"]
    ]
    rows.append(["mean", "", *(_number(summary[name]) for name in ("inner", "outer", "default_outer"))])
    head = ["fold", "best trial", "validation (inner)", "test (outer)", "test with defaults"]
    print_grid(
        f"{graphs.name}: {summary['label']} of nested cross-validation, {trials} trials in every fold", head, rows
    )
    typer.echo(clean(f"The inner scores are {_number(summary['optimism'])} above the outer ones; report the outer."))
    typer.echo(clean(f"folder  {folder}"))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def parse_tune(text: str) -> dict[str, Any]:
    """The words of `cv --tune`: trials=20,space=FILE,sampler=random."""
    allowed: dict[str, Any] = {"trials": int, "space": str, "sampler": str, "metric": str}
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in allowed or not value or (allowed[name] is int and not value.isdigit()):
            raise ConfigError(
                f"--tune must be like trials=20,space=FILE with names of {', '.join(allowed)}, got {text!r}"
            )
        values[name] = allowed[name](value)
    return values


def _seconds(text: str | None) -> float:
    if text is None:
        return float("inf")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if match is None:
        raise ConfigError(f"--time must be a number with s, m or h, as in 30m, got {text!r}")
    return float(match[1]) * SECONDS[match[2]]


def _safe(name: str) -> str:
    return "".join("-" if c in ":/\\" or not c.isprintable() else c for c in name)[:100]
