"""`asapool train`: from labelled graphs to a trained model and its test score."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapool.cli import _engines as e
from asapool.cli import _options as o
from asapool.cli._live import EpochBar, ending
from asapool.cli._output import note, note_duplicates, note_reading, show, working
from asapool.cli._scores import run_rows
from asapool.cli._values import split_table, with_settings
from asapool.cli.results import leave_report
from asapool.errors import ConfigError

if TYPE_CHECKING:
    from asapool.experiments.record import RunRecord
    from asapool.training.state import Epoch, Progress

Source = Annotated[str | None, typer.Argument(metavar="SOURCE", help=f"{o.SOURCE} Default: nci-alerts.")]
Stop = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", rich_help_panel=o.TRAINING, help="Stop after this many epochs without improvement."
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(metavar="KIND", rich_help_panel=o.TRAINING, help="none, or balanced (every class counts the same)."),
]
SelectBy = Annotated[
    str | None,
    typer.Option(
        metavar="SCORE",
        rich_help_panel=o.TRAINING,
        help="Validation score that chooses the epoch, such as roc_auc, mcc, accuracy or loss; see docs/training.md.",
    ),
]
Final = Annotated[
    bool,
    typer.Option(
        "--final",
        rich_help_panel=o.DATA,
        help="Train on all graphs, for a model whose settings are known: no validation, no test, no scores.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", rich_help_panel=o.OUTPUT, help="Resume the run in this folder, with its settings."),
]
Jobs = Annotated[
    int,
    typer.Option(
        "-j", "--jobs", min=1, metavar="N", rich_help_panel=o.COMPUTE,
        help="Processes that share every batch, one thread each, here or with --engine ray on a cluster; see "
        "docs/scaling.md.",
    ),
]  # fmt: skip
ENSEMBLE = (
    "Train N models with different seeds, in cv and compare for every fold, and average their predictions; see "
    "docs/uncertainty.md."
)
Ensemble = Annotated[int | None, typer.Option(min=2, metavar="N", rich_help_panel=o.TRAINING, help=ENSEMBLE)]
Log = Annotated[
    list[str] | None,
    typer.Option(
        "--log", metavar="NAME", rich_help_panel=o.OUTPUT,
        help="Also log the curves to tensorboard, mlflow or wandb. Repeatable.",
    ),
]  # fmt: skip
Overwrite = Annotated[bool, typer.Option("--overwrite", rich_help_panel=o.OUTPUT, help="Replace the run in --out.")]


def train(
    ctx: typer.Context,
    *,
    source: Source = None,
    data: o.DataOptions,
    split: o.Split = None,
    val: o.Val = None,
    test: o.Test = None,
    final: Final = False,
    method: o.Method = None,
    model: o.ModelOptions,
    training: o.TrainOptions,
    class_weights: Weights = None,
    select_by: SelectBy = None,
    early_stopping: Stop = None,
    seed: o.Seed = None,
    config: o.Config = None,
    settings: o.Settings = None,
    out: o.Out = None,
    resume: Resume = None,
    mix_versions: o.MixVersions = False,
    overwrite: Overwrite = False,
    jobs: Jobs = 1,
    engine: e.Engine = None,
    address: e.Address = None,
    ensemble: Ensemble = None,
    log: Log = None,
    no_report: o.NoReport = False,
    json: o.Json = False,
) -> None:
    """Train a model on classes, measured values or yes/no tasks, score it on test graphs, and write a run folder.

    The folder contains model.safetensors, metrics.json, history.csv, predictions.csv, config.toml and split.json.

    To resume a run that was stopped or killed: asapool train --resume FOLDER
    """
    from asapool.data.duplicates import duplicates
    from asapool.experiments.engines import engine_named, sharing_processes
    from asapool.experiments.ensembles import is_ensemble, resume_ensemble, train_ensemble
    from asapool.training import resolve_reading, run
    from asapool.training.logs import logging_to
    from asapool.training.parallel import follow, is_follower

    if is_follower():  # started by torchrun: rank 0 sends the work and writes the files
        follow()
        return
    several = ensemble is not None or (resume is not None and is_ensemble(resume))
    processes = sharing_processes(None, 1) if several else sharing_processes(engine, jobs, address)
    members = engine_named(engine or ("inline" if jobs == 1 else "local"), jobs, address) if several else None
    if resume is not None:
        allowed = ("resume", "json", "no_report", "mix_versions", "jobs", "engine", "address")
        given = [
            name for name, value in ctx.params.items() if value not in (None, False, [], ()) and name not in allowed
        ]
        if given:
            raise ConfigError(f"--resume uses the settings of the run, so {', '.join(given)} cannot be given with it")
        folder = resume
        if members is not None:
            with ending(f"asapool train --resume {folder}"):
                metrics = resume_ensemble(folder, members, on_member=member_note, mix_versions=mix_versions)
        else:
            with processes, ending(f"asapool train --resume {folder}"), EpochBar(folder) as bar:
                metrics = run.resume(folder, on_epoch=bar, mix_versions=mix_versions, processes=processes)
    else:
        if final:
            options = {"--split": split, "--val": val, "--test": test, "--select-by": select_by}
            refuse_with_final([name for name, value in options.items() if value is not None])
        tables: dict[str, dict[str, Any]] = {
            "data": data.table(source),
            "split": {
                "seed": seed, "val": val, "test": test, **({"kind": "all"} if final else split_table(split)),
            },
            "model": {"method": method, **asdict(model)},
            "train": {
                "seed": seed, "class_weights": class_weights, "early_stopping": early_stopping, "select_by": select_by,
                **asdict(training),
            },
        }  # fmt: skip
        with working(f"Reading {source or 'the graphs'}"):
            chosen, reading = resolve_reading(with_settings(tables, settings), config)
            graphs = reading.graphs
            repeated = duplicates(graphs)
        note_reading(reading)
        note_duplicates(repeated, chosen.split.kind)
        folder = out or run.new_folder(Path("runs"), f"{graphs.name}-{chosen.model.method}")
        if members is not None and ensemble is not None:
            with ending(f"asapool train --resume {folder}"):
                metrics = train_ensemble(
                    chosen, graphs, folder, ensemble, members, overwrite=overwrite, reading=reading,
                    on_member=member_note,
                )  # fmt: skip
        else:
            with (
                processes,
                ending(f"asapool train --resume {folder}"),
                logging_to(log or [], folder, chosen) as (logged, at_end),
                EpochBar(folder) as bar,
            ):

                def on_epoch(epoch: Epoch, progress: Progress) -> None:
                    bar(epoch, progress)
                    logged(epoch, progress)

                metrics = run.start(
                    chosen, graphs, folder, overwrite=overwrite, on_epoch=on_epoch, reading=reading, processes=processes
                )
                at_end(metrics)
    if not no_report:
        leave_report(folder, None if resume is not None else graphs)
    if "started_from" in metrics:
        note(metrics["started_from"])
    for text in metrics.get("warnings", ()):
        note(f"Warning: {text}.")
    show({"folder": str(folder), **metrics}, run_rows(folder, metrics), json)


def refuse_with_final(given: list[str]) -> None:
    """Refuse options that need validation or test graphs."""
    if given:
        raise ConfigError(f"--final trains on all graphs and keeps the last epoch, so leave out {', '.join(given)}")


def member_note(done: int, members: int, record: RunRecord) -> None:
    """Print a line when a member of an ensemble ends."""
    if record.finished:
        note(f"{done} of {members} members trained, the last in {record.seconds:.1f} s")
    else:
        note(f"the member with seed {record.run.seed} failed in attempt {record.attempts}: {record.failure}")
