"""All settings of a run: the source of the graphs, their split, the model, the training.

The command line, a TOML file and the presets each give some of the settings as tables of plain values; `resolve` merges
them (the command line overrides the file, and the file the preset) and checks the result. The settings of a run are
written to its config.toml, which can be used as such a file again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from asapool.data import GraphSet, Reading, read
from asapool.data.loading import class_column
from asapool.data.reading import ReadOptions
from asapool.data.splits import (
    Split,
    all_for_training,
    authors_folds,
    given,
    scaffold_folds,
    scaffold_split,
    stratified_folds,
    stratified_split,
)
from asapool.errors import ConfigError, choose
from asapool.files import read_toml, to_toml
from asapool.models import ModelConfig, method
from asapool.training.config import DEFAULT_METHOD, TrainConfig, preset

LATER = (
    "task",
    "repeats",
    "edge_features",
    "descriptors",
    "rdkit_descriptors",
    "decimal",
    "duplicates",
)  # settings of [data] added after 0.1.0
TABLES = ("data", "split", "model", "train")
Tables = Mapping[str, Mapping[str, Any]]
KINDS = ("stratified", "scaffold", "authors", "stratified-folds", "scaffold-folds", "file", "all")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where the graphs come from; the options are those of asapool.load."""

    source: str = "nci-alerts"
    features: str | None = None
    data_root: str | None = None
    smiles: str | None = None
    target: str | Sequence[str] | None = None
    id_column: str | None = None
    encoding: str = "utf-8"
    skip_invalid: bool | None = None
    task: str | None = None
    repeats: str | None = None
    edge_features: str | None = None
    descriptors: str | Sequence[str] | None = None
    rdkit_descriptors: bool | None = None
    decimal: str | None = None
    duplicates: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) or not self.source:
            raise ConfigError(f"data.source must be a path or a name in quotes, got {self.source!r}")
        try:
            Path(self.source).exists()
        except OSError as error:  # the name is too long, for example
            raise ConfigError(f"data.source: {self.source[:60]!r}… cannot be looked for ({error.strerror})") from None
        for name in ("target", "descriptors"):
            if isinstance(getattr(self, name), (list, tuple)):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        ReadOptions(**self._options())  # refuses invalid options

    def read(self) -> Reading:
        """Read the graphs, with a record of what was left out."""
        return read(self.source, labels="required", **self._options())

    def _options(self) -> dict[str, Any]:
        """The options of asapool.load."""
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "source"}
        return options | {"rdkit_descriptors": bool(self.rdkit_descriptors)}

    def to_dict(self) -> dict[str, Any]:
        """Plain data; settings added after 0.1.0 are left out if they have no value."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in plain.items() if value is not None or name not in LATER}

    def load(self) -> GraphSet:
        """Read the graphs."""
        return self.read().graphs

    def settled(self) -> DataConfig:
        """The same with absolute paths."""
        path, root = Path(self.source).expanduser(), self.data_root
        values = asdict(self) | {"source": str(path.resolve()) if path.exists() else self.source}
        return DataConfig(**values | {"data_root": None if root is None else str(Path(root).expanduser().resolve())})


@dataclass(frozen=True, kw_only=True)
class SplitConfig:
    """The split into training, validation and test graphs.

    kind: "stratified" or "scaffold" with the fractions val and test; "authors", "stratified-folds" or "scaffold-folds"
    with one fold of several; "file" with a file of indices; "all": every graph is a training graph. merge_validation:
    train on the validation part too, for a final model whose settings are known. Without validation graphs the weights
    of the last epoch are kept.
    """

    kind: Literal["stratified", "scaffold", "authors", "stratified-folds", "scaffold-folds", "file", "all"] = (
        "stratified"
    )
    val: float = 0.1
    test: float = 0.1
    seed: int = 0
    fold: int = 0
    folds: int = 10
    file: str | None = None
    merge_validation: bool = False

    def __post_init__(self) -> None:
        choose("split.kind", self.kind, KINDS)
        if not isinstance(self.merge_validation, bool):
            raise ConfigError(f"split.merge_validation must be true or false, got {self.merge_validation!r}")
        if (self.kind == "file") != (self.file is not None):
            raise ConfigError(
                f"split.file and split.kind = 'file' belong together, got kind {self.kind!r}, file {self.file!r}"
            )

    def make(self, graphs: GraphSet) -> Split:
        """The split of these graphs."""
        split = self._parts(graphs)
        return split.merged() if self.merge_validation else split

    def _parts(self, graphs: GraphSet) -> Split:
        if self.file is not None:
            return given(graphs, self.file)
        if self.kind == "all":
            return all_for_training(graphs)
        if self.kind == "scaffold":
            return scaffold_split(graphs, val=self.val, test=self.test, seed=self.seed)
        if self.kind == "stratified":
            return stratified_split(graphs, self.seed, val=self.val, test=self.test)
        makers = {"authors": authors_folds, "stratified-folds": stratified_folds, "scaffold-folds": scaffold_folds}
        return makers[self.kind](graphs, self.seed, self.fold, self.folds)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; merge_validation, which 0.1.0 did not have, only if it is set."""
        return {name: value for name, value in asdict(self).items() if value or name != "merge_validation"}


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The four tables of config.toml."""

    data: DataConfig
    split: SplitConfig
    model: ModelConfig
    train: TrainConfig

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain data for TOML and JSON."""
        plain = {
            "data": self.data.to_dict(),
            "split": self.split.to_dict(),
            "model": self.model.to_dict(),
            "train": self.train.to_dict(),
        }
        return {table: {k: v for k, v in values.items() if v is not None} for table, values in plain.items()}

    def to_toml(self, heading: str = "") -> str:
        """The text of config.toml."""
        return to_toml(self.to_dict(), heading)

    @classmethod
    def from_dict(cls, tables: Tables) -> RunSettings:
        """Settings from tables of plain values; missing ones get their defaults.

        >>> RunSettings.from_dict({"model": {"method": "topk"}}).model.method
        'topk'
        """
        return cls(
            data=DataConfig(**_known(DataConfig, "data", tables)),
            split=SplitConfig(**_known(SplitConfig, "split", tables)),
            model=ModelConfig.from_dict(tables.get("model", {})),
            train=TrainConfig.from_dict(tables.get("train", {})),
        )

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> RunSettings:
        """Settings of a TOML file, without presets."""
        return cls.from_dict(read_toml(path, TABLES))


def resolve(chosen: Tables, file: str | PathLike[str] | None = None) -> tuple[RunSettings, GraphSet]:
    """Merge the tables of the command line, a file and the preset of the data set; return settings and graphs."""
    settings, reading = resolve_reading(chosen, file)
    return settings, reading.graphs


def resolve_reading(chosen: Tables, file: str | PathLike[str] | None = None) -> tuple[RunSettings, Reading]:
    """Like resolve, but return the Reading of the data set, which also says what was left out."""
    from_file = read_toml(file, TABLES) if file is not None else {}
    default, start = {"model": {"method": DEFAULT_METHOD}}, _start(overlay(from_file, chosen))
    default = overlay(default, {"model": start.get("model", {})})
    first = RunSettings.from_dict(overlay(default, from_file, chosen))  # reports errors before anything large is read
    data = first.data.settled()
    reading = read_for(data, first.split)
    graphs = reading.graphs
    _check_descriptors(first, graphs)
    # what was inferred from the data is recorded, so that a repeated or resumed run reads it the same way
    read_as = {"target": data.target or class_column(data.source, graphs), "task": graphs.target.kind}
    resolved = {"data": asdict(data) | read_as}
    usual = preset(graphs.name, first.model.method, len(graphs), graphs.target.kind, overlay(from_file, chosen))
    layers = overlay(default, usual, start, from_file, chosen, resolved, {"train": start.get("train", {})})
    return RunSettings.from_dict(layers), reading


def _check_descriptors(settings: RunSettings, graphs: GraphSet) -> None:
    """Refuse a target among the descriptors, and descriptors for a method that would ignore them."""
    given = graphs.recipe.get("descriptors") or {}
    if not given:
        return
    leaked = [name for name in given.get("columns", ()) if name in graphs.target.names]
    if leaked:
        raise ConfigError(
            f"{leaked[0]!r} is the target, so it cannot be a descriptor too. Leave it out of --descriptors"
        )
    if method(settings.model.method).trainer != "gradient":
        raise ConfigError(
            f"the method {settings.model.method!r} does not use descriptors. Leave out --descriptors and "
            f"--rdkit-descriptors, or use another method, such as --method {DEFAULT_METHOD}"
        )


def _start(chosen: Tables) -> dict[str, dict[str, Any]]:
    """The settings of the model that training starts from, and its absolute path."""
    path = chosen.get("train", {}).get("init_from")
    if not isinstance(path, str):
        return {}
    from asapool.training.new_model import load_start

    model = load_start(path).config.to_dict()
    model.pop("backend")  # chosen again for the size of the new data
    return {"model": model, "train": {"init_from": str(Path(path).resolve())}}


def settings_of_methods(
    names: Sequence[str], graphs: GraphSet, chosen: Tables, file: str | PathLike[str] | None = None
) -> dict[str, RunSettings]:
    """The settings of several methods on the same graphs; `chosen` and `file` apply to all of them."""
    given = overlay(read_toml(file, TABLES) if file is not None else {}, chosen)
    usual = {name: preset(graphs.name, name, len(graphs), graphs.target.kind, given) for name in names}
    return {name: RunSettings.from_dict(overlay(usual[name], given, {"model": {"method": name}})) for name in names}


def read_graphs(data: DataConfig, split: SplitConfig) -> GraphSet:
    """The graphs of read_for."""
    return read_for(data, split).graphs


def read_for(data: DataConfig, split: SplitConfig) -> Reading:
    """The graphs of a run: those with a label, or all of them if the split is a file of indices."""
    reading = data.read()
    return reading if split.kind == "file" else reading.labelled()


def overlay(*layers: Tables) -> dict[str, dict[str, Any]]:
    """Merge tables; later ones override earlier ones, and None is ignored.

    >>> overlay({"train": {"lr": 0.1, "clip": 1}}, {"train": {"lr": 0.2, "clip": None}})["train"]
    {'lr': 0.2, 'clip': 1}
    """
    merged: dict[str, dict[str, Any]] = {}
    for layer in layers:
        for table, values in layer.items():
            merged.setdefault(table, {}).update({name: value for name, value in values.items() if value is not None})
    return merged


def _known(kind: type, table: str, tables: Tables) -> dict[str, Any]:
    names = [f.name for f in fields(kind)]
    for name in tables.get(table, {}):
        if name not in names:
            raise ConfigError(f"{table}.{name} is not a setting. The settings are {', '.join(names)}")
    return dict(tables.get(table, {}))
