"""`asapool predict`: a model and new graphs in, a probability per class and graph out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._notes import tell_skipped
from asapool.cli._output import show, working

if TYPE_CHECKING:
    from asapool.data import Skipped


def predict(
    model: o.Model,
    source: o.Source,
    data: o.ReadOptions,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="CSV file to write; else the rows are printed.")
    ] = None,
    chunk: Annotated[int, typer.Option(min=1, help="Graphs in memory at a time.")] = 2000,
    json: o.Json = False,
) -> None:
    """Predict new graphs, in the order of the source.

    JSON lines and tables of SMILES of any size are read in pieces, so that memory does not grow with the file.
    """
    from asapool.models import checkpoint
    from asapool.training import predictions as p

    trained = checkpoint.load(o.model_file(model))
    skipped: list[Skipped] = []
    pairs = p.predict_source(trained, source, chunk=chunk, skipped=skipped, **data.options())
    try:
        if out is not None:
            with working(f"Predicting {source}"):
                done = p.write_predictions(out, pairs, trained.classes)
        elif json:
            done = p.print_json(sys.stdout, pairs, trained.classes)
        else:
            done = p.print_predictions(sys.stdout, pairs, trained.classes)
    finally:
        tell_skipped(skipped)
    answer = {"graphs": done.graphs, "predicted": done.predicted, "skipped": [row._asdict() for row in skipped]}
    if out is not None:
        classes = ", ".join(f"{name}: {count:,}" for name, count in done.predicted.items())
        rows = {"graphs": done.graphs, "predicted": classes, "skipped rows": len(skipped), "out": str(out)}
        show({**answer, "out": str(out)}, rows, json)
    elif json:
        from json import dumps

        typer.echo("],\n" + dumps(answer, ensure_ascii=False)[1:])
