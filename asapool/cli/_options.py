"""Options that several commands share, and how they become the tables of settings."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from asapool.errors import ConfigError

Model = Annotated[Path, typer.Argument(help="A model.safetensors that asapool wrote, or the folder of its run.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for the results; by default a new one under runs/.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Decides the split, the first weights, order and dropout.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="How often to go through the training graphs.")]
DataRoot = Annotated[Path | None, typer.Option(help="Folder in which TU names are looked up; else $ASAPOOL_DATA.")]
Config = Annotated[Path | None, typer.Option(help="TOML file with the tables data, split, model and train.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Method = Annotated[str | None, typer.Option(help="asap, or another of: asapool methods.")]
Semantics = Annotated[str | None, typer.Option(help="Whose ASAP: paper, authors or pyg.")]
Hidden = Annotated[int | None, typer.Option(min=1, help="Width of every layer.")]
BatchSize = Annotated[int | None, typer.Option(min=1, help="Graphs per step.")]
Lr = Annotated[float | None, typer.Option(help="Adam's learning rate.")]
Features = Annotated[str | None, typer.Option(help="Node features: auto, labels, attributes, both, degree, constant.")]
Smiles = Annotated[str | None, typer.Option(help="Column of a table that holds the SMILES.")]
Target = Annotated[str | None, typer.Option(help="Column of a table that holds the class.")]
IdColumn = Annotated[str | None, typer.Option(help="Column of a table that holds the names of the graphs.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a text table.")]
Skip = Annotated[bool, typer.Option("--skip-invalid", help="Leave out rows that cannot be read.")]
Folds = Annotated[int, typer.Option(min=3, help="Number of folds.")]
Seeds = Annotated[int, typer.Option(min=1, help="How many of the authors' seeds.")]
Protocol = Annotated[str, typer.Option(help="Folds: authors (plain, shuffled) or stratified.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.NAME=VALUE", help="Any setting, such as model.jumping=true. Repeatable."),
]
SOURCE = "A file or folder, a TU name, nci-alerts, or synthetic:motifs and its kin."


def with_settings(tables: dict[str, dict[str, Any]], assignments: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Add the assignments of --set; a value is written as in TOML, and quotes may be left out.

    >>> with_settings({"model": {}}, ["model.jumping=true", "model.conv=gin", "train.clip=1.5"])
    {'model': {'jumping': True, 'conv': 'gin'}, 'train': {'clip': 1.5}}
    """
    for text in assignments or ():
        place, equals, value = text.partition("=")
        table, dot, name = place.strip().partition(".")
        if not equals or not dot or table not in ("data", "split", "model", "train"):
            raise ConfigError(
                f"--set takes TABLE.NAME=VALUE with the tables data, split, model and train, got {text!r}"
            )
        try:
            tables.setdefault(table, {})[name] = tomllib.loads(f"v = {value}")["v"]
        except tomllib.TOMLDecodeError:
            tables.setdefault(table, {})[name] = value.strip()
    return tables


def model_file(model: Path) -> Path:
    """The file of a model: what was named, or the one in the run folder that was named."""
    return model / "model.safetensors" if model.is_dir() else model


def words_of(text: str, option: str) -> list[str]:
    """The words of a comma-separated option, each once.

    >>> words_of("asap, topk", "--methods")
    ['asap', 'topk']
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or len(set(words)) < len(words):
        raise ConfigError(f"{option} takes different words separated by commas, got {text!r}")
    return words
