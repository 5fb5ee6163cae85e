"""`asapool serve`: a trained model as an HTTP service with a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asapool.cli import _options as o

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
        typer.Option(metavar="FILE", rich_help_panel=SERVICE, help="File with the key that requests must carry."),
    ] = None,
    max_bytes: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Bytes of a request.")
    ] = 8_000_000,
    max_graphs: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Graphs of a request.")
    ] = 2000,
    max_nodes: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Nodes of one graph.")
    ] = 1000,
    max_waiting: Annotated[
        int, typer.Option(min=1, metavar="N", rich_help_panel=LIMITS, help="Requests that wait at a time.")
    ] = 512,
    seconds: Annotated[float, typer.Option(metavar="S", rich_help_panel=LIMITS, help="Time for one request.")] = 30.0,
) -> None:
    """Answer predictions and explanations over HTTP, with a page at / that works without any network.

    Ctrl-C and SIGTERM finish the requests that are under way.
    """
    from asapool.serve.settings import ServeSettings, run

    settings = ServeSettings(
        model=str(o.model_file(model)), api_key_file=None if api_key_file is None else str(api_key_file),
        max_bytes=max_bytes, max_graphs=max_graphs, max_nodes=max_nodes, max_waiting=max_waiting, seconds=seconds,
    )  # fmt: skip
    run(settings, host, port, workers)
