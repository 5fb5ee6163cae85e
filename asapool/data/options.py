"""How a source is to be read: one frozen object that every reader takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from asapool.data.classes import LABELS, Labels
from asapool.data.csr import Repeats
from asapool.data.features import CHOICES
from asapool.data.targets import KINDS, Kind, Target
from asapool.errors import ConfigError, choose

EdgeFeatures = Literal["basic", "extended"]
Features = Literal["auto", "labels", "attributes", "both", "degree", "constant"]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options of asapool.load; a reader uses those that concern it."""

    features: Features | None = None  # what the node features are made of; None = the source's own default
    labels: Labels | None = None  # None = "required", and "optional" where a recipe is given or the source has none
    recipe: Mapping[str, Any] | None = None  # columns and classes of an earlier set, for new data of the same kind
    data_root: str | Path | None = None  # where TU names are looked up; else $ASAPOOL_DATA
    smiles: str | None = None  # column of a table that holds the SMILES
    target: str | Sequence[str] | None = None  # column of a table with the labels; several make several tasks
    task: Kind | None = None  # "classification", "regression" or "multilabel"; None = decide by the values
    id_column: str | None = None  # column of a table that holds the graphs' names
    encoding: str = "utf-8"  # of a text table
    keep_columns: bool = False  # the Reading holds all columns of a table
    skip_invalid: bool = False  # leave out rows that cannot be read instead of refusing the file
    repeats: Repeats | None = None  # edges that a TU data set lists more than once: None = "drop", or "sum" of weights
    descriptors: str | Sequence[str] | None = None  # columns of a table with numbers for the model's head
    rdkit_descriptors: bool = False  # let RDKit compute such numbers
    edge_features: EdgeFeatures | None = None  # of molecules: None = "basic" (6 columns), "extended" has 9
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
        if self.edge_features is not None:
            choose("edge_features", self.edge_features, ("basic", "extended"))
        if self.repeats is not None:
            choose("repeats", self.repeats, ("drop", "sum"))
        for name in ("skip_invalid", "rdkit_descriptors", "keep_columns"):
            if not isinstance(getattr(self, name), bool):
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
        """Whether labels must be there: yes to learn from a set, no to predict with a model's recipe."""
        return self.labels or ("required" if self.recipe is None else "optional")

    @property
    def known_target(self) -> Target | None:
        """The target the recipe fixes, where it is not classification."""
        task = None if self.recipe is None else self.recipe.get("task")
        return None if task is None else Target.from_dict(task)

    @property
    def known_task(self) -> Kind | None:
        """The kind of target, where the recipe or the caller decides it."""
        if self.recipe is None:
            return self.task
        known = self.known_target
        return "classification" if known is None else known.kind

    @property
    def classes(self) -> list[str] | None:
        """The class names the recipe fixes."""
        return None if self.recipe is None else list(self.recipe.get("classes") or []) or None
