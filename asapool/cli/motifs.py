"""`asapool motifs`: a model and a data set in, the substructures that decide out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._output import note, note_reading, show, working

SHOWN = 12  # substructures in the terminal


def motifs(
    model: o.Model,
    source: o.Source,
    data: o.LabelledOptions,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", metavar="FILE", help="File to write: .html a page, .csv a table, .json everything."
        ),
    ] = Path("motifs.html"),
    query: Annotated[
        str | None,
        typer.Option(
            metavar="SMARTS",
            help="Only this substructure: which graphs have it, and what happens without it. For graphs that are no "
            "molecules a name from an earlier table.",
        ),
    ] = None,
    min_graphs: Annotated[int, typer.Option(min=1, metavar="N", help="Leave out substructures in fewer graphs.")] = 10,
    max_nodes: Annotated[int, typer.Option(min=2, metavar="N", help="Largest substructure.")] = 12,
    samples: Annotated[
        int, typer.Option(min=2, metavar="N", help="Graphs from which each substructure is removed, at most.")
    ] = 100,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the sample of graphs.")] = 0,
    pages: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Page: explain so many example graphs on a second page that it links to."
        ),
    ] = 20,
    json: o.Json = False,
) -> None:
    """Find the substructures that decide a model's answers over a whole data set.

    The clusters that the model kept are cut out and grouped; each is removed from the graphs that have it. Methods
    without clusters get BRICS fragments of molecules.
    """
    from asapool.data import read
    from asapool.insight import motifs as find
    from asapool.insight.substructures.results import motifs_kind
    from asapool.models import checkpoint
    from asapool.reports.motifs_page import example_pages, write_motifs

    kind = motifs_kind(out)
    trained = checkpoint.load(o.model_file(model))
    with working(f"Reading {source}"):
        reading = read(source, recipe=trained.recipe, labels="optional", **data.options())
    note_reading(reading, unlabelled=False)
    graphs = reading.graphs
    with working("Removing substructures"):
        found = find(
            trained, graphs, query=query, min_graphs=min_graphs, max_nodes=max_nodes, samples=samples, seed=seed
        )
        links = example_pages(out, found, trained, graphs, pages) if kind == "html" and pages else {}
        write_motifs(out, found, graphs, links)
    if found.note:
        note(found.note)
    if json:
        typer.echo(found.to_json())
        return
    rows = {}
    for m in found.top(count=SHOWN):
        c = m.main
        rows[m.name] = (
            f"{found.outputs[c]} {m.contribution[c]:+.2f} ({m.low[c]:+.2f} to {m.high[c]:+.2f}), {m.graphs:,} graphs"
        )
    show(None, rows | {"substructures": f"{len(found):,} in {found.graphs:,} graphs", "out": str(out)}, False)
