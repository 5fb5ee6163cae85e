"""`asapool export` and `asapool serve`: a trained model as a file for other runtimes, or as an HTTP service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._output import show, working
from asapool.cli._values import model_file


def export(
    model: o.Model,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="File to write: .onnx, or .pt2 for torch.export.load.")],
    graphs: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel=o.DATA,
            help="Compare the file with the model on at most this many graphs.",
        ),
    ] = 200,
    json: o.Json = False,
) -> None:
    """Write a model for other runtimes: ONNX (padded batches), or .pt2 (torch.export, packed batches).

    The file is written only if its logits match those of the model to 1e-5, on graphs of the training data if they can
    be read. Its metadata contains the feature recipe and the classes.
    """
    from asapool.exporting import export as write

    with working(f"Exporting {model}"):
        done = write(model_file(model), out, graphs=graphs)
    rows = {
        "file": f"{done.path} ({done.size / 1e6:.2f} MB)",
        **{f"input {name}": shape for name, shape in done.inputs.items()},
        "compared": f"{done.graphs - done.ties} graphs ({done.source})",
        "largest difference": f"{done.difference:.1e}",
    }
    if done.ties:
        rows["ties"] = f"{done.ties} more graphs, in which rounding decides between equally fit clusters, were left out"
    show(done.to_dict(), rows, json)


SERVICE, LIMITS = "Service", "Limits"


def serve(
    model: o.Model,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", rich_help_panel=SERVICE, help="Address to bind to.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", rich_help_panel=SERVICE, help="Port to bind to.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, metavar="N", rich_help_panel=SERVICE, help="Worker processes.")] = 1,
    api_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=SERVICE, help="File with the API key that clients must send."),
    ] = None,
    neighbours: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            rich_help_panel=SERVICE,
            help="Labelled graphs, such as the training set: the page shows the most similar ones to every client.",
        ),
    ] = None,
    coverage: o.Coverage = None,
    max_bytes: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Bytes per request.")
    ] = 8_000_000,
    max_graphs: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Graphs per request.")
    ] = 2000,
    max_nodes: Annotated[int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Nodes per graph.")] = 1000,
    max_waiting: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Requests in the queue.")
    ] = 512,
    seconds: Annotated[float, typer.Option(metavar="S", rich_help_panel=LIMITS, help="Seconds per request.")] = 30.0,
) -> None:
    """Serve predictions and explanations over HTTP, with a web page at / that works offline.

    On Ctrl-C or SIGTERM, running requests are finished first.
    """
    from asapool.serve.running import run
    from asapool.serve.settings import ServeSettings

    settings = ServeSettings(
        model=str(model_file(model)), api_key_file=None if api_key_file is None else str(api_key_file),
        max_bytes=max_bytes, max_graphs=max_graphs, max_nodes=max_nodes, max_waiting=max_waiting, seconds=seconds,
        coverage=coverage, neighbours=neighbours,
    )  # fmt: skip
    run(settings, host, port, workers)
