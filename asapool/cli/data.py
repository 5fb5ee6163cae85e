"""`asapool data`: look at a source of graphs, convert it, split it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapool.cli._notes import tell_missing, tell_skipped
from asapool.cli._output import plain, show, working
from asapool.errors import ConfigError

if TYPE_CHECKING:
    from asapool.data import GraphSet, Skipped, Split
    from asapool.insight import Forecast

data = typer.Typer(help="Look at, convert and split graph data.", no_args_is_help=True)


class Features(StrEnum):
    """What node features are made of."""

    auto = "auto"
    labels = "labels"
    attributes = "attributes"
    both = "both"
    degree = "degree"
    constant = "constant"


class Method(StrEnum):
    """Ways to split."""

    authors = "authors"
    stratified = "stratified"
    single = "single"
    scaffold = "scaffold"
    given = "given"


Source = Annotated[str, typer.Argument(help="A file, folder or TU name, nci-alerts, or synthetic:motifs and its kin.")]
FeaturesOption = Annotated[Features, typer.Option(help="What node features are made of.")]
RootOption = Annotated[Path | None, typer.Option(help="Folder in which TU names are looked up; else $ASAPOOL_DATA.")]
SmilesOption = Annotated[str | None, typer.Option(help="Column of a table that holds the SMILES.")]
TargetOption = Annotated[str | None, typer.Option(help="Column of a table that holds the class.")]
IdOption = Annotated[str | None, typer.Option(help="Column of a table that holds the names of the graphs.")]
EncodingOption = Annotated[str, typer.Option(help="Encoding of a text table.")]
SkipOption = Annotated[bool, typer.Option("--skip-invalid", help="Leave out rows that cannot be read.")]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Processes for a large table.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


def _load(source: str, skip_invalid: bool, **options: Any) -> GraphSet:
    from asapool.data import load

    skipped: list[Skipped] = []
    missing: dict[str, int] = {}
    with working(f"Reading {source}"):
        graphs = load(source, skip_invalid=skip_invalid, skipped=skipped, missing=missing, **options)
    tell_skipped(skipped)
    tell_missing(missing)
    return graphs


@data.command()
def info(
    source: Source,
    features: FeaturesOption = Features.auto,
    data_root: RootOption = None,
    smiles: SmilesOption = None,
    target: TargetOption = None,
    id_column: IdOption = None,
    encoding: EncodingOption = "utf-8",
    skip_invalid: SkipOption = False,
    workers: WorkersOption = None,
    ratio: Annotated[float | None, typer.Option(help="Also foresee what pooling to this share does.")] = None,
    levels: Annotated[int, typer.Option(min=1, max=10, help="How many poolings to foresee.")] = 3,
    json: JsonOption = False,
) -> None:
    """Show what a source holds: the paper's statistics, and more. Labels may be missing.

    With --ratio it also pools random selections of the graphs, as TopK and as ASAP would, and warns of levels that fall
    apart or become dense, before any training.
    """
    from asapool.data.loading import class_column

    graphs = _load(
        source, skip_invalid, features=features.value, data_root=data_root, smiles=smiles, target=target,
        id_column=id_column, encoding=encoding, workers=workers, labels="optional",
    )  # fmt: skip
    s = graphs.summary()
    column = class_column(source, graphs)
    answer = plain(s) | ({} if column is None else {"class_column": column})
    classes = ", ".join(f"{name}: {count}" for name, count in s.class_counts.items()) or "none"
    rows = {
        "name": s.name, "graphs": s.graphs, "classes": f"{s.classes} ({classes})",
        **({} if column is None else {"class column": column}), "without label": s.unlabelled,
        "mean nodes": s.nodes_mean, "mean edges": s.edges_mean, "nodes": f"{s.nodes_min} to {s.nodes_max}",
        "mean degree": s.degree_mean, "largest degree": s.degree_max, "mean density": f"{s.density_mean:.4f}",
        "mean components": s.components_mean, "connected graphs": s.connected, "isolated nodes": s.isolated_nodes,
        "self-loops": s.self_loops, "node features": s.features, "edge features": s.edge_features,
        "directed": s.directed, "weighted": s.weighted, "ground truth": s.has_truth,
        "packed size": f"{s.bytes / 1e6:.1f} MB", "fingerprint": s.fingerprint,
    }  # fmt: skip
    if ratio is None:
        show(answer, rows, json)
        return
    from asapool.insight import forecast

    with working("Pooling random selections"):
        ahead = forecast(graphs.rowptr, graphs.col, graphs.ptr, ratio, levels)
    if json:
        show({**answer, "forecast": ahead.to_dict()}, {}, json)
        return
    show(answer, rows, json)
    show_forecast(ahead)


def show_forecast(ahead: Forecast) -> None:
    """What pooling will do, as a table, and the advice that follows from it."""
    typer.echo(f"\n{'pooled by':<10} {'level':>5} {'nodes':>7} {'edges':>8} {'density':>8} {'pieces':>7} {'memory':>9}")
    for at in ahead.levels:
        size = f"{at.bytes / 1e3:.1f} kB"
        row = f"{at.method:<10} {at.level:>5} {at.nodes:>7.1f} {at.edges:>8.1f} {at.density:>8.3f} {at.pieces:>7.2f}"
        typer.echo(f"{row} {size:>9}")
    typer.echo(f"means per graph over {ahead.sampled} sampled graphs of {ahead.graphs}, {ahead.channels} channels\n")
    for sentence in ahead.advice:
        typer.echo(f"- {sentence}")


@data.command()
def convert(
    source: Source,
    out: Annotated[Path, typer.Argument(help="The file to write: .npz or .jsonl.")],
    features: FeaturesOption = Features.auto,
    data_root: RootOption = None,
    smiles: SmilesOption = None,
    target: TargetOption = None,
    id_column: IdOption = None,
    encoding: EncodingOption = "utf-8",
    skip_invalid: SkipOption = False,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Write a source as .npz (packed, fast to read) or .jsonl (one graph per line, for other programs)."""
    from asapool.data.jsonlines_writer import write_jsonl

    suffix = out.suffix.lower()
    if suffix not in (".npz", ".jsonl"):
        raise ConfigError(f"{out}: expected a name that ends with .npz or .jsonl")
    graphs = _load(
        source, skip_invalid, features=features.value, data_root=data_root, smiles=smiles, target=target,
        id_column=id_column, encoding=encoding, workers=workers, labels="optional",
    )  # fmt: skip
    with working(f"Writing {out}"):
        if suffix == ".npz":
            graphs.save(out)
        else:
            write_jsonl(graphs, out)
    answer = {"out": str(out), "graphs": len(graphs), "bytes": out.stat().st_size, "fingerprint": graphs.fingerprint}
    show(answer, answer, json)


@data.command()
def split(
    source: Source,
    out: Annotated[Path, typer.Argument(help="The JSON file to write.")],
    method: Annotated[Method, typer.Option(help="How to split.")] = Method.authors,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the shuffle.")] = 0,
    fold: Annotated[int, typer.Option(min=0, help="Which fold is the test fold.")] = 0,
    folds: Annotated[int, typer.Option(min=3, help="How many folds.")] = 10,
    val: Annotated[float, typer.Option(help="Share to validate on (single, scaffold).")] = 0.1,
    test: Annotated[float, typer.Option(help="Share to test on (single, scaffold).")] = 0.1,
    given: Annotated[Path | None, typer.Option(help="The file of a split made elsewhere (given).")] = None,
    features: FeaturesOption = Features.auto,
    data_root: RootOption = None,
    smiles: SmilesOption = None,
    target: TargetOption = None,
    id_column: IdOption = None,
    encoding: EncodingOption = "utf-8",
    skip_invalid: SkipOption = False,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Write which graphs to train on, to validate on and to test on; the file fits this source only."""
    from asapool.data import splits

    graphs = _load(
        source, skip_invalid, features=features.value, data_root=data_root, smiles=smiles, target=target,
        id_column=id_column, encoding=encoding, workers=workers, labels="optional",
    )  # fmt: skip
    made: Split
    if method is Method.authors:
        made = splits.authors_folds(graphs, seed, fold, folds)
    elif method is Method.stratified:
        made = splits.stratified_folds(graphs, seed, fold, folds)
    elif method is Method.single:
        made = splits.stratified_split(graphs, seed, val, test)
    elif method is Method.scaffold:
        made = splits.scaffold_split(graphs, val, test)
    elif given is not None:
        made = splits.given(graphs, given)
    else:
        raise ConfigError("--method given needs the file of the split: --given FILE")
    made.save(out)
    sizes = {"train": len(made.train), "val": len(made.val), "test": len(made.test)}
    show(made.to_json(), {"out": str(out), "method": made.method, **sizes}, json)
