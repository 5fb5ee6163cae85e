"""`asapool train`: a labelled set of graphs in; a classifier and its honest score out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from asapool.cli import _options as o
from asapool.cli._notes import tell_reading, tell_repeated
from asapool.cli._output import show, working
from asapool.cli._progress import EpochBar, ending
from asapool.cli.report import leave_report
from asapool.errors import ConfigError

Source = Annotated[str | None, typer.Argument(metavar="SOURCE", help=f"{o.SOURCE} Default: nci-alerts.")]
Stop = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", rich_help_panel=o.TRAINING, help="Stop after this many epochs without improvement."
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(metavar="KIND", rich_help_panel=o.TRAINING, help="none, or balanced: all classes count the same."),
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", rich_help_panel=o.OUTPUT, help="Resume the run in this folder, with its settings."),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", rich_help_panel=o.OUTPUT, help="Replace the run that is in --out.")
]


def train(
    ctx: typer.Context,
    *,
    source: Source = None,
    data: o.DataOptions,
    split: o.Split = None,
    val: o.Val = None,
    test: o.Test = None,
    method: o.Method = None,
    model: o.ModelOptions,
    training: o.TrainOptions,
    class_weights: Weights = None,
    early_stopping: Stop = None,
    seed: o.Seed = None,
    config: o.Config = None,
    settings: o.Settings = None,
    out: o.Out = None,
    resume: Resume = None,
    overwrite: Overwrite = False,
    no_report: o.NoReport = False,
    json: o.Json = False,
) -> None:
    """Train a classifier, score it on held-out test graphs, and write a run folder.

    The folder holds model.safetensors, metrics.json, history.csv, predictions.csv, config.toml and split.json.

    A run that was stopped, or killed, resumes with: asapool train --resume FOLDER
    """
    from asapool.data.duplicates import repeated
    from asapool.data.reading import Reading
    from asapool.training import resolve, run

    if resume is not None:
        allowed = ("resume", "json", "no_report")
        given = [
            name for name, value in ctx.params.items() if value not in (None, False, [], ()) and name not in allowed
        ]
        if given:
            raise ConfigError(f"--resume uses the settings of the run, so {', '.join(given)} cannot be given too")
        folder = resume
        with ending(f"asapool train --resume {folder}"), EpochBar(*run.extent(folder)) as bar:
            metrics = run.resume(folder, on_epoch=bar)
    else:
        tables: dict[str, dict[str, Any]] = {
            "data": data.table(source),
            "split": {"seed": seed, "val": val, "test": test, **o.split_table(split)},
            "model": {"method": method, **asdict(model)},
            "train": {
                "seed": seed, "class_weights": class_weights, "early_stopping": early_stopping, **asdict(training),
            },
        }  # fmt: skip
        reading = Reading()
        with working(f"Reading {source or 'the graphs'}"):
            chosen, graphs = resolve(o.with_settings(tables, settings), config, reading)
            again = repeated(graphs)
        tell_reading(reading)
        tell_repeated(again, chosen.split.kind)
        folder = out or run.new_folder(Path("runs"), f"{graphs.name}-{chosen.model.method}")
        with ending(f"asapool train --resume {folder}"), EpochBar(chosen.train.epochs, len(graphs)) as bar:
            metrics = run.start(chosen, graphs, folder, overwrite=overwrite, on_epoch=bar, reading=reading)
    if not no_report:
        leave_report(folder, None if resume is not None else graphs)
    show({"folder": str(folder), **metrics}, rows(folder, metrics), json)


def rows(folder: Path, metrics: dict[str, Any]) -> dict[str, Any]:
    """What a person wants to know of a run."""
    parts, best, column = metrics["parts"], metrics["majority_class"], metrics["data"].get("class_column")
    shown: dict[str, Any] = {
        "data": f"{metrics['data']['name']}: {parts['train']:,} train, {parts['val']:,} val, {parts['test']:,} test",
        **({"class column": column} if column else {}),
        "method": f"{metrics['method']} ({metrics['parameters']:,} weights)",
        "best epoch": f"{metrics['best_epoch']} of {metrics['epochs']}"
        + (f" ({metrics['stopped']})" if metrics["stopped"] else ""),
    }
    if metrics["validation"] is not None:
        shown["validation accuracy"] = number(metrics["validation"]["accuracy"])
    if metrics["test"] is not None:
        shown |= score_rows(metrics["test"])
        shown["majority class"] = f"{number(best['test_accuracy'])} (always {best['class']!r})"
    return shown | {"time": f"{metrics['seconds']:.1f} s", "folder": str(folder)}


def score_rows(scores: dict[str, Any]) -> dict[str, str]:
    """The scores of a part, with the reason where one is missing."""
    shown = {}
    for name in ("accuracy", "balanced_accuracy", "roc_auc", "pr_auc", "calibration_error"):
        why = scores["notes"].get(name)
        if name == "pr_auc" and not why and scores.get("pr_auc_class"):
            why = f"of the class {scores['pr_auc_class']!r}"
        label = (
            "test accuracy"
            if name == "accuracy"
            else name.replace("_", " ").replace("auc", "AUC").replace("roc", "ROC")
        )
        shown[label.replace("pr AUC", "PR AUC")] = number(scores[name]) + (f" ({why})" if why else "")
    names = scores["class_names"]
    told = (
        f"{name} → {dict(zip(names, row, strict=True))}" for name, row in zip(names, scores["confusion"], strict=True)
    )
    return shown | {"confusion": "; ".join(told)}


def number(value: float | None) -> str:
    """Four decimals, or a dash."""
    return "–" if value is None else f"{value:.4f}"
