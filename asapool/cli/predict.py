"""`asapool predict`, `evaluate` and `embed`: the predictions, scores and embeddings of a trained model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._output import ReadingNotes, note, show, terminal_safe, working
from asapool.cli._scores import score_rows
from asapool.cli._values import model_file
from asapool.errors import ConfigError
from asapool.files import refuse_overwriting

if TYPE_CHECKING:
    from asapool.data import Reading
    from asapool.training.embeddings import Vectors


def predict(
    model: o.Model,
    sources: o.Sources,
    data: o.SourceOptions,
    out: Annotated[
        Path | None,
        o.out_file("File to write: .csv, .jsonl or .parquet. By default CSV is printed.", o.OUTPUT),
    ] = None,
    coverage: o.Coverage = None,
    uncertainty: Annotated[
        bool,
        typer.Option(
            "--uncertainty",
            rich_help_panel=o.UNCERTAINTY,
            help="Add calibrated probabilities, and how far each graph is from the training graphs.",
        ),
    ] = False,
    calibration: Annotated[
        str,
        typer.Option(
            metavar="KIND", rich_help_panel=o.UNCERTAINTY, help="Calibration method: temperature or isotonic."
        ),
    ] = "temperature",
    keep_columns: Annotated[
        bool, typer.Option("--keep-columns", rich_help_panel=o.OUTPUT, help="Copy all columns of the input table.")
    ] = False,
    chunk: o.Chunk = 2000,
    device: o.Device = None,
    jobs: Annotated[
        int,
        typer.Option(
            "-j",
            "--jobs",
            min=1,
            metavar="N",
            rich_help_panel=o.COMPUTE,
            help="Worker processes; the order of the graphs is kept.",
        ),
    ] = 1,
    json: o.Json = False,
) -> None:
    """Predict the labels of graphs, in the order of the source.

    JSON lines, tables of SMILES and .graphs folders are read in chunks, so memory does not grow with their size. See
    docs/uncertainty.md for the columns of --uncertainty and --coverage, which
    implies it.
    """
    from asapool.models import checkpoint
    from asapool.training.answering import Answering, Wanted
    from asapool.training.device import resolve_device
    from asapool.training.prediction_files import print_json, print_predictions, save_predictions, writer_for
    from asapool.training.tasks import task_of

    source = one_source(sources)
    if out is not None:
        writer_for(out)  # refuses an unknown ending before any work
        refuse_overwriting(source, out)
    trained = checkpoint.load(model_file(model))
    notes = ReadingNotes()
    trained.model.to(resolve_device(device or "cpu"))
    wanted = Wanted(uncertainty or coverage is not None, coverage, calibration, keep_columns)
    answering = Answering(trained, wanted)
    for text in answering.notes():
        note(text)
    if jobs > 1:
        from asapool.training.answering import predict_in_processes

        pairs = predict_in_processes(
            model_file(model), source, jobs, chunk=chunk, on_reading=notes.add, answering=answering,
            device=device or "cpu", **data.options(),
        )  # fmt: skip
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


def evaluate(
    model: o.Model,
    source: o.Source,
    data: o.LabelledOptions,
    json: o.Json = False,
) -> None:
    """Score a model on labelled graphs.

    Classes: accuracies, ROC AUC, PR AUC, calibration error and confusion matrix. Measured values: RMSE, MAE, R² and
    correlations. Yes/no tasks: the scores of each and their means.
    """
    from asapool.models import checkpoint
    from asapool.training import predictions as p

    trained = checkpoint.load(model_file(model))
    notes = ReadingNotes()
    fingerprints: list[str] = []

    def watched() -> Iterator[p.Pair]:
        options = data.options()
        for graphs, probability in p.predict_source(trained, source, labels=True, on_reading=notes.add, **options):
            fingerprints.append(graphs.fingerprint)
            yield graphs, probability

    try:
        with working(f"Predicting {source}"):
            scores = p.evaluate(watched(), trained.target, source)
    finally:
        notes.show()
    if fingerprints == [trained.fingerprint]:
        note("the model was trained on these graphs, so the scores say little about new ones")
    for text in scores["warnings"]:
        note(f"Warning: {text}.")
    shown = {"graphs": scores["graphs"], **score_rows(scores, trained.target, scores["trivial"]["scores"])}
    show(scores, shown, json)


def embed(
    model: o.Model,
    sources: o.Sources,
    data: o.SourceOptions,
    out: Annotated[
        Path | None,
        o.out_file("File to write: .parquet, .npz or .csv. By default CSV is printed.", o.OUTPUT),
    ] = None,
    level: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="L",
            rich_help_panel=o.OUTPUT,
            help="Write one row per pooled node of this level instead; 1 = after the first pooling.",
        ),
    ] = None,
    chunk: o.Chunk = 2000,
    json: o.Json = False,
) -> None:
    """Write the embedding of every graph: what enters the head, the encoder's output and the descriptors, if any.

    One row per graph in the order of the source, id first; with --level one row per pooled node.
    """
    from asapool.models import checkpoint
    from asapool.training.embeddings import print_vectors, save_vectors, vector_writer, vectors_of
    from asapool.training.predictions import answer_source

    source = one_source(sources)
    if out is not None:
        vector_writer(out)  # refuses an unknown ending before any work
        refuse_overwriting(source, out)
    trained = checkpoint.load(model_file(model))
    notes = ReadingNotes()

    def vectors(reading: Reading) -> Vectors:
        return vectors_of(trained.model, reading.graphs, level)

    def parts() -> Iterator[Vectors]:
        return answer_source(trained, source, vectors, chunk=chunk, on_reading=notes.add, **data.options())

    try:
        if out is None:
            print_vectors(terminal_safe(sys.stdout), parts())
            return
        with working(f"Embedding {source}"):
            rows, width = save_vectors(out, parts())
    finally:
        notes.show()
    answer = {"rows": rows, "numbers per row": width, "skipped rows": len(notes.skipped), "out": str(out)}
    show(answer, answer, json)


def one_source(sources: Sequence[str]) -> str:
    """The source of a command that takes one, or several SMILES.

    >>> one_source(["molecules.csv"]), one_source(["CCO", "c1ccccc1"])
    ('molecules.csv', 'smiles:CCO,c1ccccc1')
    """
    from asapool.data.readers import reader_of

    if len(sources) == 1:
        return sources[0]
    for text in sources:
        if (
            text == "-"
            or text.startswith(("smiles:", "synthetic:"))
            or reader_of(Path(text)) is not None
            or Path(text).exists()
        ):
            raise ConfigError(
                f"expected one source, or several SMILES, got {len(sources)} arguments, among them {text!r}. "
                "Run the command once per file, or join the files"
            )
    return f"smiles:{','.join(sources)}"
