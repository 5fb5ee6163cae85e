"""Records from wherever they lie (a store, a compact file, a folder of such), and several places made one store."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from asapool.errors import DataError
from asapool.experiments.compact import read_compact, together
from asapool.experiments.record import RunRecord, better
from asapool.experiments.store import FILE, Store


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
                if key not in best:
                    best[key] = number, record
                    continue
                held, there = best[key]
                in_store = held < 0 and there.finished  # such a record is never replaced, but must not be contradicted
                if better(there, record) is record and not in_store:
                    best[key] = number, record
        count = 0
        for number, place in enumerate(places):
            for key, record in read_records(place).items():
                if key in best and best[key][0] == number:  # a store that is being filled may have gained some
                    store.append(record)
                    count += 1
    return count
