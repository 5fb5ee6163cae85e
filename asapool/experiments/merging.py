"""Records from wherever they lie (a store, a compact file, a folder of such), and several places made one store."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from asapool.errors import DataError
from asapool.experiments.compact import read_compact, together
from asapool.experiments.record import RunRecord
from asapool.experiments.store import FILE, Store

DIGITS = 6  # to which two machines must agree on a score; compact files have no more


def read_records(place: str | PathLike[str], *, light: bool = False) -> dict[str, RunRecord]:
    """The records of a store, of a compact file, or of a folder of compact files, by the key of their Run.

    light: without curves and probabilities, which compact files do not have anyway.
    """
    path = Path(place)
    if path.is_file():
        return Store.read(path.parent, light=light) if path.name == FILE else read_compact(path)
    files = [] if (path / FILE).is_file() else sorted(path.glob("*.jsonl"))
    if files:
        return together(*map(read_compact, files))
    if not path.is_dir():
        raise DataError(f"{place}: there is no such folder or file. Give a folder that asapool reproduce wrote")
    return Store.read(path, light=light)


def merge(*places: str | PathLike[str], into: str | PathLike[str]) -> int:
    """Bring the records of several places together in one store; returns how many came in.

    The same Run in two places becomes one record: the finished one, and of two finished ones that which says more.
    What the store has finished stays as it is. Where two disagree on a score nothing is written, and both machines are
    named.
    """
    with Store.open(into) as store:
        best = {key: (-1, record) for key, record in store.records().items()}  # key → number of its place, record
        for number, place in enumerate(places):
            for key, record in read_records(place, light=True).items():
                if key not in best or _is_better(record, best[key][1], fixed=best[key][0] < 0):
                    best[key] = number, record
        count = 0
        for number, place in enumerate(places):
            for key, record in read_records(place).items():
                if key in best and best[key][0] == number:  # a store that is being filled may have gained some
                    store.append(record)
                    count += 1
    return count


def _is_better(one: RunRecord, than: RunRecord, fixed: bool) -> bool:
    """Whether a record is to replace another of the same Run; two finished ones must have the same scores.

    fixed: the other one is in the store already, where a finished record is never replaced.
    """
    if not (one.finished and than.finished):
        return one.finished and not than.finished
    a, b = _scores(than), _scores(one)
    if any(a[name] != b[name] for name in a if name in b):
        where = " and ".join(f"{r.machine.get('cpu')} (torch {r.machine.get('torch')})" for r in (than, one))
        raise DataError(
            f"run {one.run.key} ({one.run.data}, {one.run.model.method}, seed {one.run.seed}, fold {one.run.fold}) has "
            f"different scores on {where}. Keep the stores apart, or leave one of them out"
        )
    return not fixed and len(b) > len(a)


def _scores(record: RunRecord) -> dict[tuple[str, str], Any]:
    """What a record knows of its scores; a compact one knows less, and that is no contradiction."""
    parts: dict[str, Mapping[str, Any] | None] = {"validation": record.validation, "test": record.test}
    return {
        (part, name): _rounded(value)
        for part, values in parts.items()
        for name, value in (values or {}).items()
        if value is not None
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return round(value, DIGITS) if isinstance(value, float) else value
