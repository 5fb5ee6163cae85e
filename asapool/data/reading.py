"""Reading a source: its options, its result, and how options apply to a set that is already finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from asapool.data.classes import LABELS, Labels, check_labels, number_classes
from asapool.data.csr import Repeats
from asapool.data.features import CHOICES
from asapool.data.targets import KINDS, Kind, Target, empty_values
from asapool.errors import ConfigError, DataError, choose

if TYPE_CHECKING:
    from asapool.data.graphset import GraphSet

EdgeFeatures = Literal["basic", "extended"]
Features = Literal["auto", "labels", "attributes", "both", "degree", "constant"]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options of asapool.load; a reader uses those that apply to it."""

    features: Features | None = None  # what the node features are made from; None = the default of the source
    labels: Labels | None = None  # None = "required", or "optional" if a recipe is given or the source has no labels
    recipe: Mapping[str, Any] | None = None  # columns and classes of an earlier set, for new data of the same kind
    data_root: str | Path | None = None  # where TU names are looked up; else $ASAPOOL_DATA
    smiles: str | None = None  # column of a table that holds the SMILES
    target: str | Sequence[str] | None = None  # column of a table with the labels; several columns = several tasks
    task: Kind | None = None  # "classification", "regression" or "multilabel"; None = inferred from the values
    id_column: str | None = None  # column of a table that holds the ids of the graphs
    encoding: str = "utf-8"  # of a text table
    decimal: str | None = None  # "," for a table whose numbers have decimal commas; None = "."
    keep_columns: bool = False  # keep all columns of a table in the Reading
    skip_invalid: bool | None = None  # leave out rows that cannot be read, or refuse the file; None = see unreadable.py
    duplicates: str | None = None  # rows of a table with the same molecule: None = "keep", or "merge" into one graph
    repeats: Repeats | None = None  # edges that a TU data set lists more than once: None = "drop", or "sum" of weights
    descriptors: str | Sequence[str] | None = None  # columns of a table with numbers for the model's head
    rdkit_descriptors: bool = False  # let RDKit compute descriptors
    edge_features: EdgeFeatures | None = None  # for molecules: None = "basic" (6 columns), "extended" has 9
    workers: int | None = None  # processes for a large table; None = as many as pay off

    def __post_init__(self) -> None:
        if self.features is not None:
            choose("features", self.features, CHOICES)
        if self.labels is not None:
            choose("labels", self.labels, LABELS)
        if self.task is not None:
            choose("task", self.task, KINDS)
        if isinstance(self.target, (list, tuple)) and not all(isinstance(name, str) for name in self.target):
            raise ConfigError(f"target must be the name of a column or a list of names, got {self.target!r}")
        for name in (
            "data_root",
            "smiles",
            "id_column",
            "encoding",
            *(() if isinstance(self.target, (list, tuple)) else ("target",)),
        ):
            value = getattr(self, name)
            if not isinstance(value, (str, Path)) and (value is not None or name == "encoding"):
                raise ConfigError(f"{name} must be text, got {value!r}. Write it in quotes")
        if self.decimal is not None:
            choose("decimal", self.decimal, (".", ","))
        if self.edge_features is not None:
            choose("edge_features", self.edge_features, ("basic", "extended"))
        if self.duplicates is not None:
            choose("duplicates", self.duplicates, ("keep", "merge"))
        if self.repeats is not None:
            choose("repeats", self.repeats, ("drop", "sum"))
        for name in ("skip_invalid", "rdkit_descriptors", "keep_columns"):
            if not isinstance(getattr(self, name), bool) and (name != "skip_invalid" or self.skip_invalid is not None):
                raise ConfigError(f"{name} must be true or false, without quotes, got {getattr(self, name)!r}")
        named = [self.descriptors] if isinstance(self.descriptors, str) else self.descriptors or ()
        if not isinstance(named, (list, tuple)) or not all(isinstance(name, str) for name in named):
            raise ConfigError(f"descriptors must be the name of a column or a list of names, got {self.descriptors!r}")
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"workers must be at least 1, got {self.workers}")
        if self.recipe is not None and self.features is not None:
            raise ConfigError("features and recipe exclude each other: the recipe defines the features")

    @property
    def label_rule(self) -> Labels:
        """Whether labels are required: yes to learn from a set, no to predict with a model's recipe."""
        return self.labels or ("required" if self.recipe is None else "optional")

    @property
    def known_target(self) -> Target | None:
        """The target that the recipe fixes; None if it is classification."""
        task = None if self.recipe is None else self.recipe.get("task")
        return None if task is None else Target.from_dict(task)

    @property
    def known_task(self) -> Kind | None:
        """The kind of target, if the recipe or the caller fixes it."""
        if self.recipe is None:
            return self.task
        known = self.known_target
        return "classification" if known is None else known.kind

    @property
    def classes(self) -> list[str] | None:
        """The class names that the recipe fixes."""
        return None if self.recipe is None else list(self.recipe.get("classes") or []) or None


class Skipped(NamedTuple):
    """A row that could not be read and was left out."""

    line: int
    reason: str


class Refused(NamedTuple):
    """A graph that was read but that the model cannot predict; `graph` is its index in the source."""

    graph: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The result of asapool.data.read.

    Args:
        graphs: the packed set; in a piece of a stream it may be empty.
        skipped: rows that could not be read.
        missing: values of the target column that were treated as missing → how often they occur.
        unlabelled: number of graphs without a label.
        notes: sentences about the source, such as how many repeated edges were dropped.
        columns: of a table read with keep_columns: name → the cell of every graph; None = not kept.
        refused: graphs that were left out because the model cannot predict them.
        noted: the skipped rows are few and were left out without being asked to; one of the notes describes them.

    >>> from asapool.data import read
    >>> read("synthetic:paths?graphs=3").unlabelled
    3
    """

    graphs: GraphSet
    skipped: tuple[Skipped, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    unlabelled: int = 0
    notes: tuple[str, ...] = ()
    columns: Mapping[str, Sequence[Any]] | None = None
    refused: tuple[Refused, ...] = ()
    noted: bool = False

    def labelled(self) -> Reading:
        """The same with only the graphs that have a label; unlabelled still counts the others."""
        return self.only(self.graphs.labelled)

    def only(self, mask: npt.NDArray[np.bool_]) -> Reading:
        """The same with only the graphs that the mask (G,) selects."""
        if mask.all():
            return self
        columns = self.columns
        if columns is not None:
            columns = {
                name: [cell for cell, kept in zip(cells, mask, strict=True) if kept] for name, cells in columns.items()
            }
        return replace(self, graphs=self.graphs.subset(mask), columns=columns)

    def without(self, refused: Mapping[int, str]) -> Reading:
        """The same without the graphs that a model cannot predict; refused: index in the set → reason."""
        mask = np.ones(len(self.graphs), np.bool_)
        mask[list(refused)] = False
        rows = (Refused(int(self.graphs.places[i]), reason) for i, reason in sorted(refused.items()))
        return replace(self.only(mask), refused=(*self.refused, *rows))

    def counts(self) -> dict[str, int]:
        """Counts for a run's metrics.json: rows that could not be read, graphs without a label."""
        return {"skipped_rows": len(self.skipped), "without_class": self.unlabelled}


Numbered = Iterator[tuple[int, Reading]]  # the pieces of a source, numbered from 0
Wanted = Callable[[int], bool]  # whether to read the piece with this number


def all_pieces(number: int) -> bool:
    """Every piece is wanted."""
    return True


@dataclass
class Log:
    """Collects skipped rows, missing values and notes while a source is read."""

    skipped: list[Skipped] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    columns: Mapping[str, Sequence[Any]] | None = None
    allowed: float = 0  # rows of a table that may be skipped; more are refused
    noted: bool = False

    def skip(self, line: int, reason: str) -> None:
        """Record a row that is left out."""
        self.skipped.append(Skipped(line, reason))

    def clear(self) -> None:
        """Reset, for the next piece of a stream."""
        self.skipped.clear()
        self.missing.clear()
        self.notes.clear()

    def reading(self, graphs: GraphSet) -> Reading:
        """The finished Reading."""
        return Reading(
            graphs=graphs, skipped=tuple(self.skipped), missing=dict(self.missing), notes=tuple(self.notes),
            unlabelled=int((~graphs.labelled).sum()), columns=self.columns, noted=self.noted,
        )  # fmt: skip


MAKES_X = ("version", "kind", "features", "labels", "attributes", "max_degree")  # keys that determine the columns of x


def apply_recipe(graphs: GraphSet, options: ReadOptions) -> GraphSet:
    """Give a finished set the classes of the recipe in the options; refuse it if its columns are different."""
    features = graphs.recipe.get("features", "auto")
    if options.features not in (None, "auto", features):
        raise DataError(
            f"{graphs.name}: the features are already made ({features}), so features={options.features!r} does not "
            "apply. Read the original source instead"
        )
    if options.recipe is not None:
        if _columns(options.recipe) != _columns(graphs.recipe):
            raise DataError(
                f"{graphs.name}: the features were made by another recipe than the one given. "
                "Read the original source with that recipe instead"
            )
        graphs = _with_target_of(graphs, options)
    elif options.task not in (None, graphs.target.kind):
        raise DataError(
            f"{graphs.name}: the target is already made ({graphs.target.kind}), so task={options.task!r} does not "
            "apply. Read the original source instead"
        )
    if options.labels == "ignored":
        return graphs.with_fields(y=empty_values(graphs.target, len(graphs)))
    if graphs.target.kind == "classification":
        check_labels(graphs.y, graphs.name, options.labels or "optional")
    return graphs


def _with_target_of(graphs: GraphSet, options: ReadOptions) -> GraphSet:
    """Number the classes as the recipe does, or check that the targets are those of the recipe."""
    assert options.recipe is not None
    known = options.known_target
    if known is not None:
        if graphs.target.kind == known.kind and graphs.target.names == known.names:
            return graphs.with_fields(recipe=dict(options.recipe), target=known)
        return graphs.with_fields(
            recipe=dict(options.recipe), target=known, class_names=(), y=empty_values(known, len(graphs))
        )
    measured = graphs.target.kind != "classification"
    labels = [
        None if measured or k < 0 else graphs.class_names[k] for k in ([0] * len(graphs) if measured else graphs.y)
    ]
    y, names = number_classes(labels, graphs.name, options.classes)
    return graphs.with_fields(
        y=y, class_names=names, target=Target(classes=names), recipe=dict(options.recipe) | {"classes": list(names)}
    )


def _columns(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {key: recipe[key] for key in MAKES_X if key in recipe}
