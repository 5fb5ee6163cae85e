"""Protocols: how a fold becomes training, validation and test parts, in one table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from asapool.data.splits import Split, authors_folds, scaffold_folds, stratified_folds
from asapool.errors import CheckpointError, ConfigError, DataError

if TYPE_CHECKING:
    from asapool.data import GraphSet

PARTS = ("train", "val", "test")
Fold = dict[str, list[int]]  # part → numbers of graphs
Options = Mapping[str, Any]  # additional inputs of a protocol: "splits" is the SplitFile


@dataclass(frozen=True)
class SplitFile:
    """Published splits in a JSON file: a list of folds, as numbers of graphs counted from 0.

    A fold is {"train": [...], "val": [...], "test": [...]} ("validation" is another name of "val"), or has the form of
    gnn-comparison: {"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}.

    Args:
        path: Of the file.
        digest: Of its folds, independent of the form of the file.
    """

    path: str
    digest: str

    @classmethod
    def read(cls, path: str | PathLike[str]) -> SplitFile:
        """Read and check a file."""
        folds = _read(Path(path))
        return cls.unpacked({"path": str(Path(path).resolve()), "digest": _digest(folds), "folds": folds})

    @classmethod
    def unpacked(cls, values: Mapping[str, Any]) -> SplitFile:
        """The file with its folds already loaded."""
        file = cls(values["path"], values["digest"])
        file.__dict__["folds"] = values["folds"]
        return file

    @classmethod
    def of(cls, split: Split, path: str | PathLike[str]) -> SplitFile:
        """A split file with a single split, which need not be written."""
        fold = {part: getattr(split, part).tolist() for part in PARTS}
        return cls.unpacked({"path": str(Path(path).resolve()), "digest": _digest([fold]), "folds": [fold]})

    @cached_property
    def folds(self) -> list[Fold]:
        """The folds; read from the file if needed, and refused if it has changed."""
        folds = _read(Path(self.path))
        if _digest(folds) != self.digest:
            raise CheckpointError(
                f"{self.path}: its splits have changed since the experiment started (digest {_digest(folds)}, expected "
                f"{self.digest}). Restore the old file, or start in another folder"
            )
        return folds

    def check(self, graphs: GraphSet) -> None:
        """Refuse the file of a smaller set: its folds name every graph up to some number, and none after it."""
        named = {number for fold in self.folds for part in PARTS for number in fold[part]}
        if len(named) == max(named) + 1 and graphs.labelled[len(named) :].any():
            raise DataError(
                f"{self.path}: names graphs 0 to {max(named)}, but {graphs.name} has {len(graphs)}. Give the split "
                f"file that was made for {graphs.name}"
            )

    def to_dict(self) -> dict[str, str]:
        """Plain data for JSON, without the folds."""
        return {"path": self.path, "digest": self.digest}


class Protocol(NamedTuple):
    """One entry of the table.

    Args:
        sentence: What it does, for help texts and tables.
        split: (graphs, seed, fold, folds, options) → Split.
        from_file: Whether the folds come from a split file.
    """

    sentence: str
    split: Callable[[GraphSet, int, int, int, Options], Split]
    from_file: bool = False


def _authors(graphs: GraphSet, seed: int, fold: int, folds: int, options: Options) -> Split:
    return authors_folds(graphs, seed, fold, folds)


def _stratified(graphs: GraphSet, seed: int, fold: int, folds: int, options: Options) -> Split:
    return stratified_folds(graphs, seed, fold, folds)


def _scaffold(graphs: GraphSet, seed: int, fold: int, folds: int, options: Options) -> Split:
    return scaffold_folds(graphs, seed, fold, folds)


def _published(graphs: GraphSet, seed: int, fold: int, folds: int, options: Options) -> Split:
    file: SplitFile = options["splits"]
    if len(file.folds) != folds:
        raise ConfigError(f"{file.path}: has {len(file.folds)} folds, not {folds}. Leave out the number of folds")
    parts: Any = file.folds[fold]
    try:
        return Split(**parts, graphs=len(graphs), fingerprint=graphs.fingerprint, method="splits", seed=seed, fold=fold)
    except DataError as error:
        raise DataError(
            f"{file.path}, fold {fold}: {error}. Give the split file that was made for {graphs.name}"
        ) from None


PROTOCOLS: dict[str, Protocol] = {
    "authors": Protocol("plain shuffled folds, validation on the fold before the test fold", _authors),
    "stratified": Protocol("the same, stratified by class", _stratified),
    "scaffold": Protocol("molecules with the same scaffold in one fold", _scaffold),
    "splits": Protocol("published splits from a file; the seed affects only training", _published, from_file=True),
}


def _read(path: Path) -> list[Fold]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}). Give a JSON file of splits") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON ({error}). Give a JSON file of splits") from None
    entries = content if isinstance(content, list) else [content]
    if not entries:
        raise DataError(f"{path}: has no folds. Give a list of folds with train, validation and test")
    return [_fold(entry, f"{path}, fold {k}") for k, entry in enumerate(entries)]


def _fold(entry: Any, where: str) -> Fold:
    if not isinstance(entry, dict):
        raise DataError(f"{where}: expected an object with train, validation and test, got {type(entry).__name__}")
    inner = entry.get("model_selection")
    if inner is not None:
        if not isinstance(inner, list) or len(inner) != 1 or not isinstance(inner[0], dict):
            raise DataError(f"{where}: expected one entry of model_selection (an inner holdout)")
        entry = {**inner[0], "test": entry.get("test")}
    lists = {"train": entry.get("train"), "val": entry.get("val", entry.get("validation")), "test": entry.get("test")}
    for part, numbers in lists.items():
        if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < 2**62 for n in numbers):
            raise DataError(f"{where}: {part} must be a list of graph numbers, counted from 0")
        if not numbers:
            raise DataError(f"{where}: {part} is empty. Every fold needs training, validation and test graphs")
    return {part: sorted(lists[part] or []) for part in PARTS}


def _digest(folds: list[Fold]) -> str:
    return hashlib.sha256(json.dumps(folds, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
