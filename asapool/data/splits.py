"""Ways to split a set: the authors' folds, stratified folds, one stratified split, scaffolds, or made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from asapool.data.csr import Ints
from asapool.data.graphset import GraphSet
from asapool.data.split import PARTS, Split, indices, read_json
from asapool.errors import ConfigError, DataError

__all__ = ["Split", "authors_folds", "given", "scaffold_split", "stratified_folds", "stratified_split"]


def authors_folds(graphs: GraphSet | int, seed: int, fold: int, folds: int = 10) -> Split:
    """The authors' protocol: shuffled folds; test is fold f, validation the fold before it, train the rest.

    test = F_f, val = F_{f-1 mod folds}, train = the others; every list ascends.

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
    """As authors_folds, but every fold has the classes in the proportions of the set."""
    from sklearn.model_selection import StratifiedKFold

    _check_folds(len(graphs), fold, folds)
    _check_classes(graphs, folds, f"{folds} folds", "Use fewer folds")
    chosen = StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(graphs)), graphs.y)
    return _from_parts(graphs, [test for _, test in chosen], fold, "stratified", seed)


def stratified_split(graphs: GraphSet, seed: int, val: float = 0.1, test: float = 0.1) -> Split:
    """One split with the classes in the proportions of the set; val and test are shares of all graphs."""
    _check_shares(val, test)
    _check_classes(graphs, 3, "three parts", "Add graphs of that class")
    rng = np.random.default_rng(seed)
    lists: dict[str, list[Ints]] = {part: [] for part in PARTS}
    for k in range(graphs.num_classes):
        members = rng.permutation(np.flatnonzero(graphs.y == k))
        if not len(members):
            continue
        # each part gets its share of every class, and at least one graph
        a = max(1, round(test * len(members)))
        b = a + max(1, round(val * len(members)))
        for part, chosen in (("test", members[:a]), ("val", members[a:b]), ("train", members[b:])):
            lists[part].append(chosen)
    joined: dict[str, Any] = {part: np.sort(np.concatenate(lists[part])) for part in PARTS}
    return Split(**joined, graphs=len(graphs), fingerprint=graphs.fingerprint, method="stratified-split", seed=seed)


def scaffold_split(graphs: GraphSet, val: float = 0.1, test: float = 0.1) -> Split:
    """Molecules that share a Bemis-Murcko scaffold stay together; frequent scaffolds train, rare ones judge."""
    from asapool.data.scaffolds import scaffolds

    _check_shares(val, test)
    groups: dict[str, list[int]] = {}
    for i, scaffold in enumerate(scaffolds(graphs)):
        groups.setdefault(scaffold, []).append(i)
    ordered = sorted(groups.values(), key=lambda group: (-len(group), group[0]))
    n = len(graphs)
    room = {"train": n - round(val * n) - round(test * n), "val": round(val * n), "test": n}
    lists: dict[str, list[int]] = {part: [] for part in PARTS}
    for group in ordered:
        part = next(part for part in PARTS if len(lists[part]) + len(group) <= room[part])
        lists[part].extend(group)
    joined: dict[str, Any] = {part: np.sort(np.array(lists[part], np.int64)) for part in PARTS}
    return Split(**joined, graphs=n, fingerprint=graphs.fingerprint, method="scaffold")


def given(graphs: GraphSet, path: str | PathLike[str]) -> Split:
    """A split made elsewhere: JSON lists of indices called train, val, test, or a CSV with the columns id and part."""
    path = Path(path)
    lists: dict[str, Any]
    if path.suffix.lower() in (".csv", ".tsv"):
        lists = _from_table(graphs, path)
    else:
        value = read_json(path)
        if value.get("format") == "asapool-split":
            split = Split.load(path)
            split.check(graphs)
            return split
        lists = {part: indices(value.get(part, []), path) for part in PARTS}
    return Split(**lists, graphs=len(graphs), fingerprint=graphs.fingerprint)


def _from_table(graphs: GraphSet, path: Path) -> dict[str, Ints]:
    from asapool.data.tables import even, guess, open_table

    number = {name: i for i, name in enumerate(graphs.ids)}
    lists: dict[str, list[int]] = {part: [] for part in PARTS}
    words = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
    with open_table(path) as (header, rows):
        own = guess(header, None, ("id", "graph", "graph_id"), path, None, "the ids")
        part = guess(header, None, ("part", "split", "set"), path, None, "train, val or test")
        for line, row in even(rows, header, path):
            name, word = str(row[own]).strip(), str(row[part]).strip().lower()
            if name not in number:
                raise DataError(f"{path}, line {line}: no graph of {graphs.name} has the id {name!r}")
            if word not in words:
                raise DataError(f"{path}, line {line}: part {word!r}, expected train, val or test")
            lists[words[word]].append(number[name])
    return {part: np.array(lists[part], np.int64) for part in PARTS}


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
        raise ConfigError(f"val and test must be positive and leave something to train on, got {val} and {test}")


def _check_classes(graphs: GraphSet, fewest: int, why: str, remedy: str) -> None:
    if bool((graphs.y < 0).any()):
        raise DataError(
            f"{graphs.name}: {int((graphs.y < 0).sum())} graphs have no label. Leave them out before a stratified split"
        )
    counts = np.bincount(graphs.y, minlength=graphs.num_classes).tolist()
    for name, count in zip(graphs.class_names, counts, strict=True):
        if 0 < count < fewest:
            raise DataError(
                f"{graphs.name}: class {name!r} has {count} graphs, too few for {why}. {remedy}, or merge classes"
            )
