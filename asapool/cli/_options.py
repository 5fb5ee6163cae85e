"""The options of all commands, each defined once.

A single option is an annotated type (`json: o.Json = False`). Options that always occur together are a
group, a dataclass whose fields are options: a command that takes `data: o.DataOptions` has all of them (`_groups.py`).
A new option of a group is one line here, and every command that takes the group gets it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

# panels of the help
DATA, MODEL, TRAINING, COMPUTE, OUTPUT = "Data", "Model", "Training", "Compute", "Output"
UNCERTAINTY = "Uncertainty"
SOURCE = "File, folder or TU name, nci-alerts, or synthetic:NAME (see docs/data.md)."


def out_file(help: str, panel: str | None = None) -> Any:
    """The option -o, --out of a command that writes one file."""
    return typer.Option("-o", "--out", metavar="FILE", rich_help_panel=panel, help=help)


Source = Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE)]
Sources = Annotated[list[str], typer.Argument(metavar="SOURCE", help=f"{SOURCE[:-1]}, or one or more SMILES.")]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A run folder, or a model.safetensors file written by asapool.")
]
DataRoot = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", rich_help_panel=DATA, help="Folder of TU data sets; default: $ASAPOOL_DATA."),
]
Smiles = Annotated[str | None, typer.Option(metavar="COLUMN", rich_help_panel=DATA, help="Name of the SMILES column.")]
Target = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=DATA,
        help="Name of the label column. Repeat it for several tasks.",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        rich_help_panel=DATA,
        help="classification, regression or multilabel; default: inferred from the labels.",
    ),
]
Repeats = Annotated[
    str | None,
    typer.Option(
        metavar="drop|sum",
        rich_help_panel=DATA,
        help="Duplicate edges in TU files: drop them (default), or sum their weights.",
    ),
]
Duplicates = Annotated[
    str | None,
    typer.Option(
        metavar="keep|merge",
        rich_help_panel=DATA,
        help="Rows of a table with the same molecule: keep them (default), or merge them into one, with their mean "
        "value or most frequent label.",
    ),
]
IdColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", rich_help_panel=DATA, help="Name of the column with graph IDs.")
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", rich_help_panel=DATA, help="Text encoding of the file; default: utf-8.")
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="CHAR", rich_help_panel=DATA, help="Decimal separator in a table: . (default) or a comma."),
]
Skip = Annotated[
    bool | None,
    typer.Option(
        "--skip-invalid/--no-skip-invalid",
        rich_help_panel=DATA,
        help="Skip all rows that cannot be read, and list them; or refuse any. Default: up to 1 % of a table of "
        "molecules to train or evaluate on are skipped with a note, and none to predict.",
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        rich_help_panel=DATA,
        help="Node features: auto, labels, attributes, both, degree or constant.",
    ),
]
Descriptors = Annotated[
    str | None,
    typer.Option(
        metavar="COL,COL", rich_help_panel=DATA, help="Numeric columns to use as extra inputs to the model's head."
    ),
]
RdkitDescriptors = Annotated[
    bool,
    typer.Option(
        "--rdkit-descriptors",
        rich_help_panel=DATA,
        help="Use 43 RDKit descriptors as extra inputs to the model's head.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", rich_help_panel=DATA, help="Worker processes for a large table of molecules."),
]
SPLIT_HELP = (
    "authors (shuffled), stratified-folds or scaffold-folds: all folds in cv and compare, elsewhere one; stratified or "
    "scaffold: fractions, with --val and --test; or a split file."
)
Split = Annotated[
    str | None,
    typer.Option(metavar="KIND|FILE", rich_help_panel=DATA, help=SPLIT_HELP),
]
Val = Annotated[
    float | None,
    typer.Option(metavar="FRACTION", rich_help_panel=DATA, help="Fraction of graphs for validation; default: 0.1."),
]
Test = Annotated[
    float | None,
    typer.Option(metavar="FRACTION", rich_help_panel=DATA, help="Fraction of graphs for testing; default: 0.1."),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", rich_help_panel=MODEL, help="asap+ (default), or any other method that `asapool methods` lists."
    ),
]
Hidden = Annotated[int | None, typer.Option(min=1, metavar="N", rich_help_panel=MODEL, help="Hidden units per layer.")]
Semantics = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=MODEL, help="Definition of ASAP: paper, authors or pyg."),
]
Epochs = Annotated[
    int | None, typer.Option(min=1, metavar="N", rich_help_panel=TRAINING, help="Passes over the training graphs.")
]
BatchSize = Annotated[
    int | None, typer.Option(min=1, metavar="N", rich_help_panel=TRAINING, help="Graphs per training step.")
]
Lr = Annotated[float | None, typer.Option(metavar="RATE", rich_help_panel=TRAINING, help="Learning rate.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="MODEL", rich_help_panel=TRAINING,
        help="Initialise with the weights of this model: its encoder, and its head if the shapes match.",
    ),
]  # fmt: skip
Freeze = Annotated[
    bool | None,
    typer.Option("--freeze-encoder", rich_help_panel=TRAINING, help="With --from: train the head only."),
]
Device = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=COMPUTE, help="Where to compute: cpu (default), cuda, mps, or auto."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        rich_help_panel=TRAINING,
        help="Seed for initial weights, shuffling, dropout and the split.",
    ),
]
FirstSeed = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", rich_help_panel=TRAINING, help="Use the seeds N, N+1, … instead of the authors' list."
    ),
]
Folds = Annotated[int, typer.Option(min=3, metavar="N", rich_help_panel=TRAINING, help="Number of folds.")]
FoldSplit = Annotated[
    str,
    typer.Option(
        "--split",
        "--protocol",  # its name in 0.1
        metavar="KIND|FILE",
        rich_help_panel=DATA,
        help=SPLIT_HELP,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", rich_help_panel=TRAINING, help="TOML file with the tables data, split, model and train."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="TABLE.NAME=VALUE",
        rich_help_panel=TRAINING,
        help="Any setting, such as model.jumping=true. Repeatable.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", metavar="FOLDER", rich_help_panel=OUTPUT, help="Folder for the results; default: under runs/."
    ),
]
MixVersions = Annotated[
    bool,
    typer.Option(
        "--mix-versions", rich_help_panel=OUTPUT, help="Resume a folder that another version of asapool started."
    ),
]
NoReport = Annotated[bool, typer.Option("--no-report", rich_help_panel=OUTPUT, help="Do not write report.html.")]
Chunk = Annotated[
    int, typer.Option(min=1, metavar="N", rich_help_panel=DATA, help="Graphs in memory at a time.")
]  # fmt: skip
Coverage = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        rich_help_panel=UNCERTAINTY,
        help="Add conformal sets or intervals that contain the truth with this probability, such as 0.9.",
    ),
]
Json = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print the result as JSON.")]


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """How to read graphs whose labels are not used."""

    smiles: Smiles = None
    id_column: IdColumn = None
    encoding: Encoding = None
    decimal: Decimal = None
    skip_invalid: Skip = None
    data_root: DataRoot = None

    def options(self) -> dict[str, Any]:
        """Keyword arguments of asapool.load, without the options that were not given."""
        given = {name: _one(value) for name, value in asdict(self).items() if value not in (None, False, [], ())}
        return given if self.skip_invalid is None else given | {"skip_invalid": self.skip_invalid}


@dataclass(frozen=True, kw_only=True)
class LabelledOptions(SourceOptions):
    """How to read graphs and their labels."""

    target: Target = None


@dataclass(frozen=True, kw_only=True)
class DataOptions(LabelledOptions):
    """How to read graphs to train on."""

    task: Task = None
    features: Features = None
    descriptors: Descriptors = None
    rdkit_descriptors: RdkitDescriptors = False
    duplicates: Duplicates = None
    repeats: Repeats = None

    def table(self, source: str | None) -> dict[str, Any]:
        """The table `data` of a run's settings."""
        root = {} if self.data_root is None else {"data_root": str(self.data_root)}
        return {"source": source, **self.options(), **root}


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The most common settings of a model; --set takes the others."""

    hidden: Hidden = None
    semantics: Semantics = None


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The most common training settings; --set takes the others."""

    epochs: Epochs = None
    batch_size: BatchSize = None
    lr: Lr = None
    init_from: From = None
    freeze_encoder: Freeze = None
    device: Device = None


def _one(value: Any) -> Any:
    """Unwrap a list with a single entry: one --target is one column."""
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value
