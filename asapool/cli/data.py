"""`asapool data`: inspect, convert and split a source of graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asapool.cli import _options as o
from asapool.cli._groups import Command, CommandGroup, grouped
from asapool.cli._output import note, note_reading, plain, show, working
from asapool.cli._values import split_table
from asapool.errors import ConfigError, plural
from asapool.files import refuse_overwriting

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.insight import Forecast

data = typer.Typer(cls=CommandGroup, help="Inspect, convert and split graph data.", no_args_is_help=True)


SPLIT_NOTE = "data split --method is now called --split and takes the same values as in train: "
OLD_SPLITS = {"single": "stratified", "stratified": "stratified-folds"}  # their names in 0.1


@dataclass(frozen=True, kw_only=True)
class Options(o.DataOptions):
    """How to read graphs for inspection or conversion; labels may be missing."""

    workers: o.Workers = None


def _load(source: str, data: Options) -> GraphSet:
    from asapool.data import read

    options = {"features": "auto", **data.options()}
    with working(f"Reading {source}"):
        reading = read(source, labels="optional", **options)
    note_reading(reading, unlabelled=False)
    return reading.graphs


@data.command(cls=Command)
@grouped
def info(
    source: o.Source,
    options: Options,
    ratio: Annotated[
        float | None, typer.Option(metavar="K", help="Also forecast what pooling with this ratio does.")
    ] = None,
    levels: Annotated[int, typer.Option(min=1, max=10, metavar="N", help="Number of pooling levels to forecast.")] = 3,
    json: o.Json = False,
) -> None:
    """Summarise a data set: the statistics of the paper's Table 3, and more. Labels may be missing.

    With --ratio it also pools random selections of the graphs, as TopK and ASAP would, and warns about levels that
    would fall apart or become dense.
    """
    from asapool.data.loading import class_column

    graphs = _load(source, options)
    s = graphs.summary()
    column = class_column(source, graphs)
    answer = plain(s) | ({} if column is None else {"class_column": column})
    classes = ", ".join(f"{name}: {count}" for name, count in s.class_counts.items()) or "none"
    labels = {"classes": f"{s.classes} ({classes})"}
    if s.task != "classification":
        labels = {"task": s.task} | {f"target {name}": _describe(values) for name, values in s.targets.items()}
    rows = {
        "name": s.name, "graphs": s.graphs, **labels,
        **({} if column is None else {"label column": column}), "without label": s.unlabelled,
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


def _describe(values: dict[str, float]) -> str:
    if "mean" not in values:
        return "no values"
    numbers = "mean {mean:.4g}, standard deviation {std:.4g}, {min:.4g} to {max:.4g}".format(**values)
    return f"{plural(int(values['count']), 'value')}, {numbers}"


@data.command("list", cls=Command)
def list_sources(json: o.Json = False) -> None:
    """List what can be read: file formats, built-in sets, and synthetic sets with their parameters."""
    from asapool.data.loading import BUILT_IN
    from asapool.data.readers import READERS
    from asapool.data.synthetic import describe

    sources = {reader.name: reader.sentence for reader in READERS} | BUILT_IN | describe()
    show(sources, sources, json)


def show_forecast(ahead: Forecast) -> None:
    """Print what pooling would do, as a table, and the advice that follows from it."""
    typer.echo(f"\n{'pooled by':<10} {'level':>5} {'nodes':>7} {'edges':>8} {'density':>8} {'pieces':>7} {'memory':>9}")
    for at in ahead.levels:
        size = f"{at.bytes / 1e3:.1f} kB"
        row = f"{at.method:<10} {at.level:>5} {at.nodes:>7.1f} {at.edges:>8.1f} {at.density:>8.3f} {at.pieces:>7.2f}"
        typer.echo(f"{row} {size:>9}")
    typer.echo(f"means per graph over {ahead.sampled} sampled graphs of {ahead.graphs}, {ahead.channels} channels\n")
    for sentence in ahead.advice:
        typer.echo(f"- {sentence}")


@data.command(cls=Command)
@grouped
def convert(
    source: o.Source,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="What to write: a .graphs folder, an .npz or a .jsonl file.")
    ],
    options: Options,
    json: o.Json = False,
) -> None:
    """Convert a data set to a .graphs folder, an .npz file or a .jsonl file.

    A .graphs folder is memory-mapped, for sets larger than memory; run the same command again to resume a conversion
    that was stopped. .npz is packed and fast to read; .jsonl has one graph per line, for other programs.
    """
    from asapool.data.jsonlines import write_jsonl

    suffix = out.suffix.lower()
    if suffix not in (".graphs", ".npz", ".jsonl"):
        raise ConfigError(f"{out}: expected a name that ends with .graphs, .npz or .jsonl")
    refuse_overwriting(source, out)
    if suffix == ".graphs":
        _convert_to_map(source, out, options, json)
        return
    graphs = _load(source, options)
    with working(f"Writing {out}"):
        if suffix == ".npz":
            graphs.save(out)
        else:
            write_jsonl(graphs, out)
    answer = {"out": str(out), "graphs": len(graphs), "bytes": out.stat().st_size, "fingerprint": graphs.fingerprint}
    show(answer, answer, json)


def _convert_to_map(source: str, out: Path, data: Options, json: bool) -> None:
    from asapool.cli._live import part_bar
    from asapool.data.mapped.convert import convert as to_map

    options = {"features": "auto", **data.options()}
    workers = options.pop("workers", 1)
    with part_bar(f"Converting {source}") as bar:
        reading = to_map(source, out, workers=workers, on_part=bar, **options)
    note_reading(reading, unlabelled=False)
    graphs = reading.graphs
    size = sum(file.stat().st_size for file in out.iterdir() if file.is_file())
    answer = {"out": str(out), "graphs": len(graphs), "bytes": size, "fingerprint": graphs.fingerprint}
    show(answer, answer, json)


@data.command(cls=Command)
@grouped
def split(
    source: o.Source,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The JSON file to write.")],
    options: Options,
    split: o.Split = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, metavar="N", rich_help_panel=o.DATA, help="Seed for shuffling.")
    ] = 0,
    fold: Annotated[
        int, typer.Option(min=0, metavar="N", rich_help_panel=o.DATA, help="Which fold is the test fold.")
    ] = 0,
    folds: o.Folds = 10,
    val: o.Val = None,
    test: o.Test = None,
    old_method: Annotated[str | None, typer.Option("--method", hidden=True)] = None,
    old_given: Annotated[str | None, typer.Option("--given", hidden=True)] = None,
    json: o.Json = False,
) -> None:
    """Split a data set into training, validation and test graphs, and save the split.

    The default is --split authors: one fold of the authors' protocol. The file is valid for this source only; pass it
    to train as --split FILE.
    """
    from asapool.training.settings import SplitConfig, overlay

    refuse_overwriting(source, out)
    if old_method is not None or old_given is not None:
        split = _renamed(old_method, old_given)
    shares = {"val": val, "test": test, "seed": seed, "fold": fold, "folds": folds}
    table = overlay({"split": {**shares, **split_table(split or "authors")}})["split"]
    chosen = SplitConfig(**table)
    parts = chosen.make(_load(source, options))
    parts.save(out)
    sizes = {"train": len(parts.train), "val": len(parts.val), "test": len(parts.test)}
    show(parts.to_json(), {"out": str(out), "split": chosen.kind, **sizes}, json)


def _renamed(method: str | None, given: str | None) -> str:
    """The value of --split that --method and --given of 0.1 meant."""
    if method in (None, "given") and given is None:
        raise ConfigError("--method given needs the split file. Write --split FILE instead")
    new = given if given is not None and method in (None, "given") else OLD_SPLITS.get(str(method), str(method))
    note(f"{SPLIT_NOTE}write --split {new}")
    return str(new)
