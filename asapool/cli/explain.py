"""`asapool explain`: a model and some graphs in; a page that shows what was pooled, and why, out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._output import show, working


def explain(
    model: Annotated[Path, typer.Argument(help="A model.safetensors that asapool wrote.")],
    source: Annotated[str, typer.Argument(help=o.SOURCE)],
    graph: Annotated[
        list[str] | None, typer.Option("--graph", metavar="ID", help="Id or place of a graph. Repeatable. Default: 0.")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="HTML file to write.")] = Path("explanation.html"),
    target: Annotated[str | None, typer.Option(help="Class to explain; by default the predicted one.")] = None,
    importance: Annotated[
        str, typer.Option(help="Kinds to work out; occlusion runs the model once per node.")
    ] = "attention,gradient,occlusion",
    data_root: o.DataRoot = None,
    smiles: o.Smiles = None,
    id_column: o.IdColumn = None,
    encoding: o.Encoding = None,
    skip_invalid: o.Skip = False,
    json: Annotated[bool, typer.Option("--json", help="Print the hierarchies as a JSON list.")] = False,
) -> None:
    """Show which clusters a model formed and which nodes made the call, on one page that needs no network."""
    from asapool.data import load
    from asapool.insight import explain as look
    from asapool.insight.subject import find_graph
    from asapool.models import checkpoint
    from asapool.reports import explain_page
    from asapool.training.folder import write_text

    trained = checkpoint.load(model)
    kinds = o.words_of(importance, "--importance")
    with working(f"Reading {source}"):
        graphs = load(
            source, recipe=trained.recipe, labels="optional", data_root=data_root, smiles=smiles, id_column=id_column,
            encoding=encoding or "utf-8", skip_invalid=skip_invalid,
        )  # fmt: skip
        chosen = [find_graph(graphs, word) for word in dict.fromkeys(graph or ["0"])]
    with working("Explaining"):
        found = [look(trained, graphs, i, target=target, importance=kinds) for i in chosen]
        write_text(out, explain_page(found))
    if json:
        typer.echo("[" + ",\n".join(h.to_json() for h in found) + "]")
        return
    rows = {
        h.id: f"{h.answer} (p = {h.confidence:.3f}), nodes {' → '.join(str(c.nodes) for c in h.connectivity)}"
        for h in found
    }
    show(None, rows | {"out": str(out)}, False)
