"""Splits a set into training, validation and test graphs: by folds, shares, scaffolds or a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from asapool.data.csr import Ints
from asapool.data.graphset import GraphSet
from asapool.data.strata import merge_small, part_sizes
from asapool.errors import ConfigError, DataError, plural
from asapool.files import read_json, writing

VERSION = 1
PARTS = ("train", "val", "test")
WORDS = {"train": "training", "val": "validation", "test": "test"}  # for messages


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """Three disjoint lists of graphs; fingerprint is that of the set they were drawn from ("" = any)."""

    train: Ints
    val: Ints
    test: Ints
    graphs: int  # number of graphs in the set; a graph may be in no list
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
        values, counts = np.unique(np.concatenate([self.train, self.val, self.test]), return_counts=True)
        if bool((counts > 1).any()):
            raise DataError(f"split: graph {values[counts > 1][0]} is listed twice. A graph belongs to one part only")

    def check(self, graphs: GraphSet) -> None:
        """Refuse any set but the one this split was drawn from."""
        if self.graphs != len(graphs) or self.fingerprint not in ("", graphs.fingerprint):
            raise DataError(
                f"the split was made for {self.graphs} graphs with fingerprint {self.fingerprint or 'unknown'}, "
                f"and {graphs.name} has {len(graphs)} with {graphs.fingerprint}. Make a split for this set"
            )

    def apply(self, graphs: GraphSet) -> tuple[GraphSet, GraphSet, GraphSet]:
        """The three parts of the set."""
        self.check(graphs)
        return graphs.subset(self.train), graphs.subset(self.val), graphs.subset(self.test)

    def merged(self) -> Split:
        """The same split with the validation graphs in the training part."""
        return replace(self, train=np.sort(np.concatenate([self.train, self.val])), val=self.val[:0])

    def to_json(self) -> dict[str, Any]:
        """The split as plain data, as in the file."""
        return {
            "format": "asapool-split", "version": VERSION, "method": self.method, "seed": self.seed, "fold": self.fold,
            "graphs": self.graphs, "fingerprint": self.fingerprint,
            **{part: getattr(self, part).tolist() for part in PARTS},
        }  # fmt: skip

    def save(self, path: str | PathLike[str]) -> None:
        """Write the split as JSON, atomically."""
        with writing(path) as out:
            out.write(json.dumps(self.to_json()).encode() + b"\n")

    @staticmethod
    def load(path: str | PathLike[str]) -> Split:
        """Read a split that save wrote."""
        value = _read_object(path)
        if value.get("format") != "asapool-split" or value.get("version") != VERSION:
            raise DataError(f"{path}: not a split that asapool saved. For plain lists use splits.given(graphs, path)")
        try:
            lists: dict[str, Any] = {part: _indices(value[part], path) for part in PARTS}
            rest = {key: value[key] for key in ("graphs", "fingerprint", "method", "seed", "fold")}
            return Split(**lists, **rest)
        except (KeyError, TypeError) as error:
            raise DataError(f"{path}: the split is incomplete ({error}). Make it again") from None


def all_for_training(graphs: GraphSet) -> Split:
    """Every graph in the training part, for a final model; the other parts are empty."""
    every, mark = np.arange(len(graphs)), graphs.fingerprint
    return Split(train=every, val=every[:0], test=every[:0], graphs=len(every), fingerprint=mark, method="all")


def authors_folds(graphs: GraphSet | int, seed: int, fold: int, folds: int = 10) -> Split:
    """The authors' protocol: shuffled folds; test is fold f, validation the fold before it, train the rest.

    test = F_f, val = F_{f-1 mod folds}, train = the others; every list is sorted.

    >>> split = authors_folds(20, seed=0, fold=0)
    >>> len(split.train), split.val.tolist(), split.test.tolist()
    (16, [12, 15], [1, 18])
    """
    from sklearn.model_selection import KFold

    n = _count(graphs)
    _check_folds(n, fold, folds)
    parts = [test for _, test in KFold(folds, shuffle=True, random_state=seed).split(np.zeros(n))]
    return _from_parts(graphs, parts, fold, "authors", seed)


def stratified_folds(graphs: GraphSet, seed: int, fold: int, folds: int = 10) -> Split:
    """As authors_folds, but every fold has the class proportions of the set.

    Measured values are stratified by their quantiles, several yes/no tasks by the rarest positive task of a graph.
    """
    from sklearn.model_selection import StratifiedKFold

    _check_folds(len(graphs), fold, folds)
    groups = strata(graphs, folds, f"{folds} folds", "Use fewer folds")
    chosen = StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(graphs)), groups)
    return _from_parts(graphs, [test for _, test in chosen], fold, "stratified", seed)


def stratified_split(graphs: GraphSet, seed: int, val: float = 0.1, test: float = 0.1) -> Split:
    """One split with the class proportions of the set in every part; val and test are fractions of all graphs.

    Measured values are stratified by their quantiles, several yes/no tasks by the rarest positive task of a graph.
    """
    _check_shares(val, test)
    measured = graphs.target.kind == "regression"
    # a stratum of measured values is large enough for one graph in each part; of a class, any three graphs will do
    fewest = max(3, ceil(1 / min(val, test))) if measured else 3
    groups = strata(graphs, fewest, "three parts", "Add graphs of that class")
    counts = np.bincount(groups, minlength=1).tolist()
    rng = np.random.default_rng(seed)
    lists: dict[str, list[Ints]] = {part: [] for part in PARTS}
    for k, (in_test, in_val) in enumerate(part_sizes(counts, val, test, fit_total=measured)):
        members = rng.permutation(np.flatnonzero(groups == k))
        if not len(members):
            continue
        a, b = in_test, in_test + in_val
        for part, chosen in (("test", members[:a]), ("val", members[a:b]), ("train", members[b:])):
            lists[part].append(chosen)
    joined: dict[str, Any] = {part: np.sort(np.concatenate(lists[part])) for part in PARTS}
    return Split(**joined, graphs=len(graphs), fingerprint=graphs.fingerprint, method="stratified-split", seed=seed)


def scaffold_split(graphs: GraphSet, val: float = 0.1, test: float = 0.1, seed: int = 0) -> Split:
    """One split that keeps molecules with the same Bemis-Murcko scaffold together.

    Seed 0 puts frequent scaffolds into the training part and rare ones into the others, as is usual. Any other seed
    takes the scaffolds in random order, except those with more than half as many molecules as the validation or test
    part should have: these go into the training part, so that the parts have about the right sizes. If a class is
    missing from validation or test, its smallest training scaffold moves there, unless that is its only one.
    """
    from asapool.data.descriptors import scaffolds

    _check_shares(val, test)
    groups: dict[str, list[int]] = {}
    for i, scaffold in enumerate(scaffolds(graphs)):
        groups.setdefault(scaffold, []).append(i)
    # ties: the scaffold that appears last in the file comes first, as in DeepChem, since many files are sorted by class
    ordered = sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True)
    n = len(graphs)
    capacity = {"train": n - round(val * n) - round(test * n), "val": round(val * n), "test": n}
    if seed:
        shuffled = [ordered[k] for k in np.random.default_rng(seed).permutation(len(ordered)).tolist()]
        shares = [share for share in (val, test) if share > 0]
        most = max(1, round(min(shares) * n) // 2) if shares else n
        ordered = [g for g in ordered if len(g) > most] + [g for g in shuffled if len(g) <= most]
    parts: dict[str, list[list[int]]] = {part: [] for part in PARTS}
    size = dict.fromkeys(PARTS, 0)
    for group in ordered:
        part = next(part for part in PARTS if size[part] + len(group) <= capacity[part])
        parts[part].append(group)
        size[part] += len(group)
    _spread_classes(graphs, parts)
    for part, share in zip(PARTS, (1.0, val, test), strict=True):
        if share > 0 and not parts[part]:
            raise DataError(
                f"{graphs.name}: a scaffold split leaves no molecule for the {WORDS[part]} part: the {n} molecules "
                f"have {plural(len(ordered), 'scaffold')} in all, {len(max(ordered, key=len))} of them the same one. "
                "Make that part larger, or use a stratified split"
            )
    joined: dict[str, Any] = {
        part: np.sort(np.array([i for group in parts[part] for i in group], np.int64)) for part in PARTS
    }
    return Split(**joined, graphs=n, fingerprint=graphs.fingerprint, method="scaffold", seed=seed or None)


def scaffold_folds(graphs: GraphSet, seed: int, fold: int, folds: int = 10) -> Split:
    """Folds of about equal size that keep molecules with the same Bemis-Murcko scaffold together.

    From the most to the least frequent, each scaffold goes into the fold that is smallest so far; the seed orders
    equally frequent ones. Test is fold f, validation the fold before it.
    """
    from asapool.data.descriptors import scaffolds

    _check_folds(len(graphs), fold, folds)
    groups: dict[str, list[int]] = {}
    for i, scaffold in enumerate(scaffolds(graphs)):
        groups.setdefault(scaffold, []).append(i)
    if len(groups) < folds:
        raise DataError(f"{graphs.name}: {len(groups)} scaffolds are too few for {folds} folds. Use fewer folds")
    listed = list(groups.values())
    shuffled = [listed[k] for k in np.random.default_rng(seed).permutation(len(listed)).tolist()]
    parts: list[list[int]] = [[] for _ in range(folds)]
    for group in sorted(shuffled, key=len, reverse=True):
        min(parts, key=len).extend(group)
    return _from_parts(graphs, [np.sort(np.array(part, np.int64)) for part in parts], fold, "scaffold-folds", seed)


def _spread_classes(graphs: GraphSet, parts: dict[str, list[list[int]]]) -> None:
    """Move the smallest group of a class that val or test lacks there, if the training part has another one."""
    if graphs.target.kind != "classification":
        return
    for part in ("val", "test"):
        for k in range(graphs.num_classes):
            if any((graphs.y[group] == k).any() for group in parts[part]):
                continue
            groups = [group for group in parts["train"] if (graphs.y[group] == k).any()]
            if len(groups) > 1:
                moved = min(groups, key=len)
                parts["train"].remove(moved)
                parts[part].append(moved)


def strata(graphs: GraphSet, fewest: int, why: str, remedy: str) -> Ints:
    """The stratum of every graph (G,): its class, the decile of its first value, or its rarest positive task.

    A class with fewer than `fewest` graphs is refused; other strata that small are merged with the next one.
    """
    if graphs.target.kind == "classification":
        _check_classes(graphs, fewest, why, remedy)
        classes: Ints = graphs.y
        return classes
    y = graphs.y
    if graphs.target.kind == "multilabel":
        rarest = np.argsort((y == 1).sum(axis=0), kind="stable")
        yes = y[:, rarest] == 1
        groups = np.where(yes.any(axis=1), yes.argmax(axis=1), y.shape[1])
    else:
        present = ~np.isnan(y)
        first = y[np.arange(len(y)), present.argmax(axis=1)]  # first value that is not missing; all missing = NaN, last
        rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")
        groups = rank * min(10, max(1, len(y) // fewest)) // max(len(y), 1)
    return merge_small(groups, fewest)


def given(graphs: GraphSet, path: str | PathLike[str]) -> Split:
    """A split from a file: JSON lists of indices named train, val, test, or a CSV with the columns id and part."""
    path = Path(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        lists: dict[str, Any] = _from_table(graphs, path)
    else:
        value = _read_object(path)
        if value.get("format") == "asapool-split":
            split = Split.load(path)
            split.check(graphs)
            return split
        lists = {part: _indices(value.get(part, []), path) for part in PARTS}
    return Split(**lists, graphs=len(graphs), fingerprint=graphs.fingerprint)


def _from_table(graphs: GraphSet, path: Path) -> dict[str, Ints]:
    from asapool.data.tables import checked_rows, guess, open_table

    index_of = {name: i for i, name in enumerate(graphs.ids)}
    lists: dict[str, list[int]] = {part: [] for part in PARTS}
    aliases = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
    with open_table(path) as (header, rows):
        id_column = guess(header, None, ("id", "graph", "graph_id"), path, None, "the ids")
        part_column = guess(header, None, ("part", "split", "set"), path, None, "train, val or test")
        for line, row in checked_rows(rows, header, path):
            name, part = str(row[id_column]).strip(), str(row[part_column]).strip().lower()
            if name not in index_of:
                raise DataError(f"{path}, line {line}: no graph of {graphs.name} has the id {name!r}")
            if part not in aliases:
                raise DataError(f"{path}, line {line}: part {part!r}, expected train, val or test")
            lists[aliases[part]].append(index_of[name])
    if not any(lists.values()):
        raise DataError(f"{path}: there are column names but no rows. Add one row per graph, with its id and part")
    return {part: np.array(lists[part], np.int64) for part in PARTS}


def _read_object(path: str | PathLike[str]) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object with train, val and test, got {type(value).__name__}")
    return value


def _indices(value: Any, path: str | PathLike[str]) -> Ints:
    """A JSON list of graph indices as an array."""
    if not isinstance(value, list) or not all(type(v) is int and abs(v) < 2**62 for v in value):
        raise DataError(f"{path}: train, val and test must be lists of whole numbers")
    return np.array(value, np.int64)


def _count(graphs: GraphSet | int) -> int:
    return graphs if isinstance(graphs, int) else len(graphs)


def _from_parts(graphs: GraphSet | int, parts: Sequence[Ints], fold: int, method: str, seed: int) -> Split:
    test, val = parts[fold], parts[fold - 1]
    train = np.setdiff1d(np.arange(_count(graphs)), np.concatenate([test, val]))
    fingerprint = "" if isinstance(graphs, int) else graphs.fingerprint
    return Split(
        train=train, val=val, test=test, graphs=_count(graphs), fingerprint=fingerprint,
        method=method, seed=seed, fold=fold,
    )  # fmt: skip


def _check_folds(n: int, fold: int, folds: int) -> None:
    if not 3 <= folds <= n:
        raise ConfigError(f"folds must lie between 3 and the {n} graphs, got {folds}")
    if not 0 <= fold < folds:
        raise ConfigError(f"fold must lie in 0 to {folds - 1}, got {fold}")


def _check_shares(val: float, test: float) -> None:
    if not (0 < val < 1 and 0 < test < 1 and val + test < 1):
        merge = "--set split.merge_validation=true trains on the validation part too"
        final = "train --final (split.kind = 'all') trains on all graphs"
        advice = "" if val else f". {merge if test > 0 else final}"
        raise ConfigError(f"val and test must be positive and add up to less than 1, got {val} and {test}{advice}")


def _check_classes(graphs: GraphSet, fewest: int, why: str, remedy: str) -> None:
    if bool((graphs.y < 0).any()):
        raise DataError(
            f"{graphs.name}: {int((graphs.y < 0).sum())} graphs have no label. Leave them out before a stratified split"
        )
    counts = np.bincount(graphs.y, minlength=graphs.num_classes).tolist()
    for name, count in zip(graphs.class_names, counts, strict=True):
        if 0 < count < fewest:
            raise DataError(
                f"{graphs.name}: class {name!r} has {plural(count, 'graph')}, too few for {why}. {remedy}, or merge "
                "classes"
            )
