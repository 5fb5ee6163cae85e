"""`asapool predict`: answers to new graphs, from a trained model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._notes import ReadingNotes
from asapool.cli._output import note, show, terminal_safe, working
from asapool.errors import ConfigError

UNCERTAINTY = "Uncertainty"  # panel of the help


def predict(
    model: o.Model,
    source: o.Source,
    data: o.ReadOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            rich_help_panel=o.OUTPUT,
            help="File to write: .csv, .jsonl or .parquet. By default CSV is printed.",
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            rich_help_panel=UNCERTAINTY,
            help="Add conformal answers that hold the truth with this probability, such as 0.9; implies --uncertainty.",
        ),
    ] = None,
    uncertainty: Annotated[
        bool,
        typer.Option(
            "--uncertainty",
            rich_help_panel=UNCERTAINTY,
            help="Add calibrated probabilities, and how far each graph is from the training graphs.",
        ),
    ] = False,
    calibration: Annotated[
        str,
        typer.Option(
            metavar="KIND", rich_help_panel=UNCERTAINTY, help="Of the probabilities: temperature or isotonic."
        ),
    ] = "temperature",
    keep_columns: Annotated[
        bool, typer.Option("--keep-columns", rich_help_panel=o.OUTPUT, help="Carry all columns of the table along.")
    ] = False,
    chunk: o.Chunk = 2000,
    device: o.Device = None,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", min=1, metavar="N", help="Processes that read and predict; order is kept.")
    ] = 1,
    json: o.Json = False,
) -> None:
    """Predict new graphs, in the order of the source.

    JSON lines, tables of SMILES and .graphs folders are read in chunks, so memory does not grow with their size. See
    docs/uncertainty.md for the columns of --uncertainty and --coverage.
    """
    from asapool.models import checkpoint
    from asapool.training.answering import Answering, Wanted
    from asapool.training.device import resolve_device
    from asapool.training.prediction_files import print_json, print_predictions, save_predictions, writer_for
    from asapool.training.tasks import task_of

    if out is not None:
        writer_for(out)  # refuses an unknown ending before any work
    trained = checkpoint.load(o.model_file(model))
    notes = ReadingNotes()
    trained.model.to(resolve_device(device or "cpu"))
    if jobs > 1 and device not in (None, "cpu"):
        raise ConfigError("several processes predict on the CPU only. Leave -j out, or choose --device cpu")
    wanted = Wanted(uncertainty or coverage is not None, coverage, calibration, keep_columns)
    answering = Answering(trained, wanted)
    for text in answering.notes():
        note(text)
    if jobs > 1:
        from asapool.training.answering import predict_in_processes

        pairs = predict_in_processes(
            o.model_file(model), source, jobs, chunk=chunk, on_reading=notes.add, answering=answering, **data.options()
        )
    else:
        pairs = answering.pairs(source, notes.add, chunk=chunk, **data.options())
    further = answering.further
    stream = terminal_safe(sys.stdout)
    try:
        if out is not None:
            with working(f"Predicting {source}"):
                done = save_predictions(out, pairs, trained.target, further)
        elif json:
            done = print_json(stream, pairs, trained.target, further)
        else:
            done = print_predictions(stream, pairs, trained.target, further=further)
    finally:
        notes.show()
    skipped = notes.skipped
    answer = {"graphs": done.graphs, "predicted": done.predicted, "skipped": [row._asdict() for row in skipped]}
    if out is not None:
        text = task_of(trained.target).describe(done.predicted, done.graphs)
        rows = {"graphs": done.graphs, "predicted": text, "skipped rows": len(skipped), "out": str(out)}
        show({**answer, "out": str(out)}, rows, json)
    elif json:
        from json import dumps

        typer.echo("],\n" + dumps(answer, ensure_ascii=False)[1:])
