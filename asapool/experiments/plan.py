"""Plan: the cells of a table and the training runs of each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from asapool.errors import CheckpointError, ConfigError, choose
from asapool.experiments.plan_file import LONGEST, DataEntry, PlanFile, read_plan
from asapool.experiments.protocols import PROTOCOLS, SplitFile
from asapool.experiments.run import FIRST_MODEL, Run
from asapool.models.config import ModelConfig
from asapool.training.config import TrainConfig, preset
from asapool.training.config import seeds as authors_seeds
from asapool.training.settings import DataConfig, SplitConfig, overlay, read_graphs

if TYPE_CHECKING:
    from asapool.data import GraphSet

# tiny graphs, a narrow model and one epoch, to check that all parts work
SMOKE_DATA = "synthetic:cycles?graphs=24&nodes=5"
SMOKE = {"model": {"hidden": 4}, "train": {"epochs": 1, "batch_size": 64}}
SMOKE_FOLDS = 3


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of a table: a model with its training settings on a data set.

    Args:
        row: Name of the row.
        column: Name of the data set.
        source: Where its graphs come from.
        model: The classifier.
        train: Its training settings.
        splits: Published splits of the data set, for a protocol that needs them.
        ensemble: How many models a training run trains and averages.
    """

    row: str
    column: str
    source: DataConfig
    model: ModelConfig
    train: TrainConfig
    splits: SplitFile | None = None
    ensemble: int = 1


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A table to be filled: every cell is the mean over seeds × folds training runs."""

    name: str
    title: str
    metric: Literal["test", "validation"] = "test"  # which accuracy the table shows
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...] = (8971,)
    folds: int = 10
    protocol: str = "authors"
    choose: bool = False  # per column, choose the row with the best validation accuracy and show its test accuracy
    reference: str | None = None  # the row that the others are compared with; None = "asap", or else the first row
    comparison: bool = False  # compares models on one data set with the first row, and shows all scores

    def __post_init__(self) -> None:
        choose("plan.metric", self.metric, ("test", "validation"))
        choose("plan.protocol", self.protocol, tuple(PROTOCOLS))
        if not self.cells:
            raise ConfigError(f"plan {self.name}: there is nothing to train. Name at least one row and one data set")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(f"plan {self.name}: seeds must be different numbers, at least one, got {self.seeds}")
        from_file = PROTOCOLS[self.protocol].from_file
        if self.folds < (1 if from_file else 3):
            raise ConfigError(f"plan {self.name}: folds must be at least 3 (training, validation, test): {self.folds}")
        seen = set()
        for cell in self.cells:
            if (cell.row, cell.column) in seen:
                raise ConfigError(f"plan {self.name}: there are two cells {cell.row!r} × {cell.column!r}")
            seen.add((cell.row, cell.column))
            if cell.source != self.sources[cell.column]:
                raise ConfigError(f"plan {self.name}: the data set {cell.column!r} has two sources")
            if (cell.splits is None) == from_file:
                raise ConfigError(
                    f"plan {self.name}: protocol {self.protocol!r} takes {'a' if from_file else 'no'} split file, but "
                    f"the data set {cell.column!r} has {'none' if from_file else cell.splits}. Set both or neither"
                )

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows in the order of the plan."""
        return tuple(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> tuple[str, ...]:
        """The data sets in the order of the plan."""
        return tuple(self.sources)

    @property
    def sources(self) -> dict[str, DataConfig]:
        """Where the graphs of each column come from."""
        sources: dict[str, DataConfig] = {}
        for cell in self.cells:
            sources.setdefault(cell.column, cell.source)
        return sources

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every cell with all its settings."""
        cells = [
            {
                "row": cell.row, "column": cell.column, "source": cell.source.to_dict(), "model": cell.model.to_dict(),
                "train": cell.train.to_dict(),
            } | ({} if cell.splits is None else {"splits": cell.splits.to_dict()})
            | ({} if cell.ensemble == 1 else {"ensemble": cell.ensemble})
            for cell in self.cells
        ]  # fmt: skip
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"cells": cells, "seeds": list(self.seeds)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Plan:
        """The plan that to_dict was called on."""
        try:
            cells = tuple(
                Cell(
                    row=cell["row"], column=cell["column"], source=DataConfig(**cell["source"]),
                    model=ModelConfig.from_dict(cell["model"]), train=TrainConfig.from_dict(cell["train"]),
                    splits=SplitFile(**cell["splits"]) if "splits" in cell else None,
                    ensemble=cell.get("ensemble", 1),
                )
                for cell in plain["cells"]
            )  # fmt: skip
            values = {name: value for name, value in plain.items() if name != "graphs"}
            return cls(**{**values, "cells": cells, "seeds": tuple(plain["seeds"])})
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CheckpointError(f"not a plan of asapool ({type(error).__name__}: {error})") from None

    @classmethod
    def from_first_version(cls, plain: Mapping[str, Any]) -> Plan:
        """The plan of a cross-validation of asapool 0.1.0 (its plan.json)."""
        try:
            name, train = plain["data"]["name"], TrainConfig.from_dict(plain["train"])
            cells = tuple(
                Cell(
                    row=row, column=name, source=in_memory(name), train=train,
                    model=ModelConfig.from_dict(FIRST_MODEL | model),
                )
                for row, model in plain["models"].items()
            )  # fmt: skip
            return cls(
                name="cv", title=f"Cross-validation on {name}", cells=cells, seeds=tuple(plain["seeds"]),
                folds=plain["folds"], protocol=plain["protocol"], comparison=True,
            )  # fmt: skip
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CheckpointError(f"not a plan of asapool 0.1.0 ({type(error).__name__}: {error})") from None

    def runs(self, graphs: Mapping[str, GraphSet]) -> list[Run]:
        """All training runs, each once; seeds outermost, then folds, then cells, so that the table fills evenly.

        graphs: by column.
        """
        by_cell = [self.runs_of(cell, graphs) for cell in self.cells]
        return list({run.key: run for turn in zip(*by_cell, strict=True) for run in turn}.values())

    def runs_of(self, cell: Cell, graphs: Mapping[str, GraphSet]) -> list[Run]:
        """The training runs of one cell, seeds outermost."""
        return list(_runs(cell, graphs[cell.column].fingerprint, self.seeds, self.folds, self.protocol))


# cached, because tables are updated often and computing the key of a Run is slow
@lru_cache(maxsize=4096)
def _runs(cell: Cell, fingerprint: str, seeds: tuple[int, ...], folds: int, protocol: str) -> tuple[Run, ...]:
    return tuple(
        Run(
            data=cell.column, fingerprint=fingerprint, model=cell.model, train=cell.train, seed=seed, fold=fold,
            folds=folds, protocol=protocol, splits="" if cell.splits is None else cell.splits.digest,
            ensemble=cell.ensemble,
        )
        for seed in seeds
        for fold in range(folds)
    )  # fmt: skip


def load_plan(
    path_or_name: str | PathLike[str] | PlanFile,
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    folds: int | None = None,
    epochs: int | None = None,
    semantics: str | None = None,
    data_root: str | PathLike[str] | None = None,
    smoke: bool = False,
) -> Plan:
    """A plan by name, or from a TOML file, restricted or changed by the options.

    datasets and methods select columns and rows (the name of a row, else the method of its model); seeds is
    the number of seeds. semantics is that of ASAP unless a row sets its own; other methods have none. smoke
    replaces every data set by a few small graphs.
    """
    file = path_or_name if isinstance(path_or_name, PlanFile) else read_plan(path_or_name)
    rows = file.rows_named(methods)
    data = file.data_named(datasets, data_root, smoke)
    splits = {} if smoke else {entry.name: _splits(entry, data_root) for entry in data if entry.splits is not None}
    cells = []
    for row in rows:
        for entry in data:
            named = overlay(file.tables, entry.tables, row.tables, row.on_data(entry.name)).get("model", {})
            layers: list[Mapping[str, Mapping[str, Any]]] = [preset(entry.name, named.get("method", "asap"))]
            layers += [file.tables, {"model": {"semantics": semantics}}, entry.tables, row.tables]
            layers += [row.on_data(entry.name)]
            layers += [SMOKE] if smoke else []
            tables = overlay(*layers, {"train": {"epochs": epochs}})
            if not tables["model"].get("method", "asap").startswith("asap"):
                tables["model"].pop("semantics", None)  # meaningless there, and it would change the key
            cells.append(
                Cell(
                    row=row.name,
                    column=f"{entry.name} (synthetic)" if smoke else entry.name,
                    source=DataConfig(source=SMOKE_DATA) if smoke else _source(entry, data_root),
                    model=ModelConfig.from_dict({"method": "asap"} | tables["model"]),
                    train=TrainConfig.from_dict(tables["train"]),
                    splits=splits.get(entry.name),
                    ensemble=row.ensemble,
                )
            )
    protocol = "authors" if smoke and splits_needed(file.protocol) else file.protocol
    return Plan(
        name=file.name,
        title=file.title,
        metric=file.metric,
        cells=tuple(cells),
        seeds=_seeds(file, 1 if smoke and seeds is None else seeds),
        folds=folds or (SMOKE_FOLDS if smoke else _folds(file, splits)),
        protocol=protocol,
        choose=file.choose,
        reference=file.reference,
    )


def in_memory(name: str) -> DataConfig:
    """A source for graphs of which only the name is known, even if it is not a valid file name."""
    return DataConfig(source=name.replace("\0", " ").encode()[:LONGEST].decode(errors="ignore"))


def splits_needed(protocol: str) -> bool:
    """Whether a protocol reads its folds from a file."""
    return protocol in PROTOCOLS and PROTOCOLS[protocol].from_file


def _folds(file: PlanFile, splits: Mapping[str, SplitFile]) -> int:
    """The number of folds of the split files, or else of the plan."""
    stated = {
        entry.name for entry in file.data if entry.splits_digest is not None
    }  # then the plan gives the number of folds
    counts = {name: file.folds if name in stated else len(one.folds) for name, one in splits.items()}
    if len(set(counts.values())) > 1:
        counted = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise ConfigError(
            f"{file.place}: the split files have different numbers of folds ({counted}). Use one plan each"
        )
    return next(iter(counts.values()), file.folds)


def _splits(entry: DataEntry, data_root: str | PathLike[str] | None) -> SplitFile:
    """The split file of a data set, relative to the working directory or the folder of the data sets."""
    assert entry.splits is not None  # for the type checker
    path = _located(entry.splits, data_root)
    if entry.splits_digest is None:
        return SplitFile.read(path)
    return SplitFile(str(path.absolute()), entry.splits_digest)


def _located(file: str, data_root: str | PathLike[str] | None) -> Path:
    """A file named in a plan: in the working directory or the folder of the data sets; unchanged if in neither."""
    roots = [Path(root) for root in (data_root, os.environ.get("ASAPOOL_DATA")) if root]
    return next((p for p in (Path(file), *(root / file for root in roots)) if p.exists()), Path(file))


def load_graphs(plans: Sequence[Plan]) -> dict[str, GraphSet]:
    """The graphs of all columns of the plans, by column; those without a label are left out."""
    sources: dict[str, DataConfig] = {}
    for plan in plans:
        for column, source in plan.sources.items():
            if sources.setdefault(column, source) != source:
                raise ConfigError(f"plan {plan.name}: the data set {column!r} has another source in another plan")
    graphs: dict[str, GraphSet] = {}
    for column, source in sources.items():
        files = [cell.splits.path for one in plans for cell in one.cells if cell.column == column and cell.splits]
        # the indices of published splits count all graphs, including those without a label
        split = SplitConfig(kind="file", file=files[0]) if files else SplitConfig()
        graphs[column] = read_graphs(source, split).renamed(column)
    for plan in plans:
        check_graphs(plan, graphs)
    return graphs


def check_graphs(plan: Plan, graphs: Mapping[str, GraphSet]) -> None:
    """Refuse graphs that do not fit the folds or a method of a plan, before anything is trained."""
    from asapool.models.batches import check_molecules

    for column in plan.columns:
        cells = [cell for cell in plan.cells if cell.column == column]
        first = cells[0]
        for run in plan.runs_of(first, graphs)[: plan.folds if first.splits else 1]:
            run.split(graphs[column], first.splits)
        if first.splits is not None:
            first.splits.check(graphs[column])
        for cell in cells:
            check_molecules(cell.model, graphs[column])


def _source(entry: DataEntry, data_root: str | PathLike[str] | None) -> DataConfig:
    root = {} if data_root is None else {"data_root": str(data_root)}
    source = dict(entry.source)
    if "/" in source.get("source", "") and not source["source"].startswith("synthetic:"):
        source["source"] = str(_located(source["source"], data_root))
    return DataConfig(**{"source": entry.name} | root | source).settled()


def _seeds(file: PlanFile, count: int | None) -> tuple[int, ...]:
    if isinstance(file.seeds, int):
        return authors_seeds(file.seeds if count is None else count)
    if count is not None and count > len(file.seeds):
        raise ConfigError(f"{file.place}: has {len(file.seeds)} seeds, not {count}. Add some to the plan")
    return file.seeds[:count]
