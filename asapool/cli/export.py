"""`asapool export`: a trained model as ONNX or as a program of torch.export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._output import show, working


def export(
    model: o.Model,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="File to write: .onnx, or .pt2 for torch.export.load.")],
    graphs: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", rich_help_panel=o.DATA, help="Most graphs on which file and model are compared."
        ),
    ] = 200,
    json: o.Json = False,
) -> None:
    """Write a model for other runtimes: ONNX (padded batches), or .pt2 (torch.export, packed batches).

    The file appears only if its logits equal those of the model to 1e-5, on graphs of the training data where they can
    be read. The recipe of the features and the classes are in its metadata.
    """
    from asapool.exporting import export as write

    with working(f"Exporting {model}"):
        done = write(o.model_file(model), out, graphs=graphs)
    rows = {
        "file": f"{done.path} ({done.size / 1e6:.2f} MB)",
        **{f"input {name}": shape for name, shape in done.inputs.items()},
        "compared": f"{done.graphs - done.ties} graphs ({done.source})",
        "largest difference": f"{done.difference:.1e}",
    }
    if done.ties:
        rows["ties"] = f"{done.ties} more graphs, in which rounding decides between equally fit clusters, were left out"
    show(done.to_dict(), rows, json)
