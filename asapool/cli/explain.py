"""`asapool explain` and `asapool motifs`: what decides predictions, for one graph and for a whole data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._output import note, note_reading, show, working
from asapool.cli._values import model_file, words_of


def explain(
    model: o.Model,
    source: o.Source,
    data: o.SourceOptions,
    graph: Annotated[
        list[str] | None,
        typer.Option(
            "--graph",
            metavar="GRAPH",
            help="Number or ID of a graph, as in the output of predict; graph=N or id=NAME if it could be either. "
            "Repeatable. Default: the first graph.",
        ),
    ] = None,
    out: Annotated[
        Path,
        o.out_file("File to write: .html (page), .json (numbers), .svg, .png or .pdf (picture)."),
    ] = Path("explanation.html"),
    level: Annotated[
        int | None,
        typer.Option(min=0, metavar="L", help="Pictures: draw the clusters of this level instead of importance."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--class", metavar="NAME", help="Class or task to explain; default: the predicted class, or the first task."
        ),
    ] = None,
    old_target: Annotated[str | None, typer.Option("--target", hidden=True)] = None,
    importance: Annotated[
        str,
        typer.Option(
            metavar="KINDS",
            help="Kinds of importance; the last three run the model for every node. Pictures show the last one.",
        ),
    ] = "attention,gradient,occlusion,neighbourhood,substitution",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Compare with this class: importance for one rather than the other, the most similar graphs of "
            "either, and a small change that flips the prediction; .html or .json.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Measure how faithful each kind of importance is to the model (deletion, insertion, fidelity, "
            "sparsity) on a sample of graphs, for the predicted class or the task of --class; .html, .csv or .json.",
        ),
    ] = False,
    sample: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of graphs for --check if --graph is not given.")
    ] = 50,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="MODEL",
            help="Another model with the same classes, shown side by side with the first. With --check (repeatable): "
            "rank correlation with its importance.",
        ),
    ] = None,
    beside: Annotated[bool, typer.Option("--side-by-side", help="Pages: show graphs in pairs, side by side.")] = False,
    device: o.Device = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Show which nodes decided a prediction and which clusters the model formed, on an HTML page that works offline."""
    from asapool.data import read
    from asapool.errors import ConfigError, choose
    from asapool.files import refuse_overwriting
    from asapool.insight import check_importance, contrast
    from asapool.insight import explain as explain_graph
    from asapool.insight.explaining import refuse_contrast
    from asapool.insight.inputs import find_graph, training_graphs
    from asapool.models import checkpoint
    from asapool.models.ensemble import EnsembleModel
    from asapool.reports.contrast_page import contrast_kind, write_contrast
    from asapool.reports.explain_page import (
        check_kind,
        check_texts,
        explanation_kind,
        quantity_of,
        write_check,
        write_explanation,
    )
    from asapool.training.device import resolve_device

    if old_target is not None:
        note("--target of explain is now called --class; --target still works")
        target = target or old_target
    if check and against is not None:
        raise ConfigError("--check and --against write different pages. Run the command once for each")
    if others and not check and (against is not None or len(others) > 1 or out.suffix.lower() != ".html"):
        raise ConfigError("--with shows one other model beside the first, on a page. Give it once, with -o FILE.html")
    refuse_overwriting(source, out)
    if check:
        kind = check_kind(out)
    else:
        kind = explanation_kind(out, len(graph or [""])) if against is None else contrast_kind(out)
    trained = checkpoint.load(model_file(model))
    trained.model.to(resolve_device(device or "cpu"))
    if against is not None:
        refuse_contrast(trained.target)
    for option, name in (("--class", target), ("--against", against)):
        if name is not None:
            choose(option, name, tuple(trained.classes))
    kinds = words_of(importance, "--importance")
    if isinstance(trained.model, EnsembleModel):
        note(
            f"{model} is an ensemble of {len(trained.model.models)} models, each with its own clusters; this explains "
            "the first one, whose prediction may differ from the ensemble's"
        )
    with working(f"Reading {source}"):
        reading = read(source, recipe=trained.recipe, labels="optional", **data.options())
    note_reading(reading, unlabelled=False)
    graphs = reading.graphs
    if check:
        named = [find_graph(graphs, word) for word in graph] if graph else None
        further = [checkpoint.load(model_file(path)) for path in others or ()]  # on the CPU
        with working("Checking"):
            checked = check_importance(
                trained, graphs, target=target, importance=kinds, indices=named, sample=sample, others=further
            )
            write_check(out, checked)
        rows = {"quantity": quantity_of(checked), **check_texts(checked), "graphs": str(checked.graphs)}
        show(checked, rows | {"out": str(out)}, json)
        return
    chosen = list(dict.fromkeys(find_graph(graphs, word) for word in graph)) if graph else [0]
    if against is not None:
        pool = training_graphs(model, graphs)
        with working("Comparing"):
            contrasts = [
                contrast(trained, graphs, i, against, target=target, importance=kinds, pool=pool) for i in chosen
            ]
            write_contrast(out, contrasts, graphs, chosen)
        if json:
            typer.echo("[" + ",\n".join(c.to_json() for c in contrasts) + "]")
            return
        shown = {
            f"graph {graphs.places[i]}": f"{c.hierarchy.verdict}; "
            + (f"{against} without " if c.flip.flipped else "no flip; nearest without ")
            + _removed(c.flip.nodes, c.flip.edges)
            for i, c in zip(chosen, contrasts, strict=True)
        }
        show(None, shown | {"out": str(out)}, False)
        return
    with working("Explaining"):
        models = [trained, *(checkpoint.load(model_file(path)) for path in others or ())]
        hierarchies = [explain_graph(m, graphs, i, target=target, importance=kinds) for i in chosen for m in models]
        names = [str(path) for path in (model, *others)] * len(chosen) if others else []
        write_explanation(out, hierarchies, kind, level, names=names, columns=2 if others or beside else 1)
    if json:
        typer.echo("[" + ",\n".join(h.to_json() for h in hierarchies) + "]")
        return
    rows = {
        f"graph {graphs.places[i]}" + (f", id {h.id}" if graphs.named else ""): f"{h.verdict}, "
        f"nodes {' → '.join(str(c.nodes) for c in h.connectivity)}"
        for i, h in zip(chosen, hierarchies[:: len(models)], strict=True)
    }
    show(None, rows | {"out": str(out)}, False)


SHOWN = 12  # substructures in the terminal


def motifs(
    model: o.Model,
    source: o.Source,
    data: o.LabelledOptions,
    out: Annotated[
        Path,
        o.out_file("File to write: .html (page), .csv (table) or .json (everything)."),
    ] = Path("motifs.html"),
    query: Annotated[
        str | None,
        typer.Option(
            metavar="SMARTS",
            help="Only this substructure: which graphs contain it, and how predictions change without it. For graphs "
            "that are not molecules, a name from an earlier table.",
        ),
    ] = None,
    min_graphs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Leave out substructures that occur in fewer graphs.")
    ] = 10,
    max_nodes: Annotated[int, typer.Option(min=2, metavar="N", help="Nodes of the largest substructure.")] = 12,
    samples: Annotated[
        int, typer.Option(min=2, metavar="N", help="Remove each substructure from at most this many graphs.")
    ] = 100,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed for sampling graphs.")] = 0,
    pages: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Number of example graphs to explain on a second, linked page."),
    ] = 20,
    device: o.Device = None,
    json: o.Json = False,
) -> None:
    """Find the substructures that drive a model's predictions on a data set.

    The clusters that the model keeps are grouped, and each is removed from the graphs that contain it. For methods
    without clusters, molecules are cut into BRICS fragments.
    """
    from asapool.data import read
    from asapool.files import refuse_overwriting
    from asapool.insight import motifs as find_motifs
    from asapool.insight.substructures.results import motifs_kind
    from asapool.models import checkpoint
    from asapool.reports.motifs_page import example_pages, write_motifs
    from asapool.training.device import resolve_device

    kind = motifs_kind(out)
    refuse_overwriting(source, out)
    trained = checkpoint.load(model_file(model))
    trained.model.to(resolve_device(device or "cpu"))
    with working(f"Reading {source}"):
        reading = read(source, recipe=trained.recipe, labels="optional", **data.options())
    note_reading(reading, unlabelled=False)
    graphs = reading.graphs
    with working("Removing substructures"):
        result = find_motifs(
            trained, graphs, query=query, min_graphs=min_graphs, max_nodes=max_nodes, samples=samples, seed=seed
        )
        links = example_pages(out, result, trained, graphs, pages) if kind == "html" and pages else {}
        write_motifs(out, result, graphs, links)
    if result.note:
        note(result.note)
    if json:
        typer.echo(result.to_json())
        return
    rows = {}
    for m in result.top(count=SHOWN):
        c = m.main
        rows[m.name] = (
            f"{result.outputs[c]} {m.contribution[c]:+.2f} ({m.low[c]:+.2f} to {m.high[c]:+.2f}), {m.graphs:,} graphs"
        )
    show(None, rows | {"substructures": f"{len(result):,} in {result.graphs:,} graphs", "out": str(out)}, False)


def _removed(nodes: Sequence[int], edges: Sequence[Sequence[int]]) -> str:
    """What a small change takes away.

    >>> _removed([0, 2], []), _removed([], [(1, 2)]), _removed([3], [(0, 1), (1, 2)])
    ('nodes 0, 2', 'edges 1-2', 'nodes 3 and edges 0-1, 1-2')
    """
    parts = [f"nodes {', '.join(map(str, nodes))}"] if nodes else []
    parts += [f"edges {', '.join('-'.join(map(str, edge)) for edge in edges)}"] if edges else []
    return " and ".join(parts) or "nothing"
