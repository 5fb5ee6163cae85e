"""Split: which graphs to train on, to choose by, and to judge by; kept as a file that knows its data set."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from asapool.data.csr import Ints
from asapool.data.graphset import GraphSet
from asapool.errors import DataError
from asapool.files import writing

VERSION = 1
PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """Three lists of graphs that share none; fingerprint is that of the set they were drawn for ("" = any)."""

    train: Ints
    val: Ints
    test: Ints
    graphs: int  # how many the set has; a graph may be in no list
    fingerprint: str = ""
    method: str = "given"
    seed: int | None = None
    fold: int | None = None

    def __post_init__(self) -> None:
        for part in PARTS:
            given = np.asarray(getattr(self, part))
            if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
                raise DataError(f"split: {part} must be a list of whole numbers")
            indices = given.astype(np.int64)
            if indices.size and (indices.min() < 0 or indices.max() >= self.graphs):
                bad = indices.max() if indices.max() >= self.graphs else indices.min()
                raise DataError(f"split: {part} names graph {bad}, but graphs are 0 to {self.graphs - 1}")
            indices.flags.writeable = False
            object.__setattr__(self, part, indices)
        together = np.concatenate([self.train, self.val, self.test])
        values, counts = np.unique(together, return_counts=True)
        if bool((counts > 1).any()):
            raise DataError(f"split: graph {values[counts > 1][0]} is listed twice. A graph belongs to one part only")

    def check(self, graphs: GraphSet) -> None:
        """Refuse any set but the one this split was drawn for."""
        if self.graphs != len(graphs) or self.fingerprint not in ("", graphs.fingerprint):
            raise DataError(
                f"the split was made for {self.graphs} graphs with fingerprint {self.fingerprint or 'unknown'}, "
                f"and {graphs.name} has {len(graphs)} with {graphs.fingerprint}. Make a split for this set"
            )

    def apply(self, graphs: GraphSet) -> tuple[GraphSet, GraphSet, GraphSet]:
        """The three parts of the set."""
        self.check(graphs)
        return graphs.subset(self.train), graphs.subset(self.val), graphs.subset(self.test)

    def to_json(self) -> dict[str, Any]:
        """The split as plain data, as the file holds it."""
        return {
            "format": "asapool-split", "version": VERSION, "method": self.method, "seed": self.seed, "fold": self.fold,
            "graphs": self.graphs, "fingerprint": self.fingerprint,
            **{part: getattr(self, part).tolist() for part in PARTS},
        }  # fmt: skip

    def save(self, path: str | PathLike[str]) -> None:
        """Write the split as JSON, whole or not at all."""
        with writing(path) as out:
            out.write(json.dumps(self.to_json()).encode() + b"\n")

    @staticmethod
    def load(path: str | PathLike[str]) -> Split:
        """Read a split that save wrote."""
        value = read_json(Path(path))
        if value.get("format") != "asapool-split" or value.get("version") != VERSION:
            raise DataError(f"{path}: not a split that asapool saved. For plain lists use splits.given(graphs, path)")
        try:
            lists: dict[str, Any] = {part: indices(value[part], path) for part in PARTS}
            rest = {key: value[key] for key in ("graphs", "fingerprint", "method", "seed", "fold")}
            return Split(**lists, **rest)
        except (KeyError, TypeError) as error:
            raise DataError(f"{path}: the split is incomplete ({error}). Make it again") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error}). Make the split again") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: a JSON object with train, val and test expected, {type(value).__name__} came")
    return value


def indices(value: Any, path: str | PathLike[str]) -> Ints:
    """A JSON list of graph numbers."""
    if not isinstance(value, list) or not all(type(v) is int and abs(v) < 2**62 for v in value):
        raise DataError(f"{path}: train, val and test must be lists of whole numbers")
    return np.array(value, np.int64)
