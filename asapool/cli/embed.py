"""`asapool embed`: the vector of every graph, from a trained model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._notes import ReadingNotes
from asapool.cli._output import show, terminal_safe, working

if TYPE_CHECKING:
    from asapool.training.embeddings import Vectors


def embed(
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
            help="File to write: .parquet, .npz or .csv. By default CSV is printed.",
        ),
    ] = None,
    level: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="L", rich_help_panel=o.OUTPUT, help="One row per pooled node of this level, from 1."
        ),
    ] = None,
    chunk: o.Chunk = 2000,
    json: o.Json = False,
) -> None:
    """Write the vector of every graph: what the network makes of it before its last layers.

    One row per graph in the order of the source, id first; with --level one row per pooled node.
    """
    from asapool.models import checkpoint
    from asapool.training.embeddings import print_vectors, save_vectors, vector_writer, vectors_of
    from asapool.training.predictions import read_source

    if out is not None:
        vector_writer(out)  # refuses an unknown ending before any work
    trained = checkpoint.load(o.model_file(model))
    notes = ReadingNotes()

    def parts() -> Iterator[Vectors]:
        for graphs in read_source(trained, source, chunk=chunk, on_reading=notes.add, **data.options()):
            yield vectors_of(trained.model, graphs, level)

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
