"""Records outside of a store: compact files that can be committed, and merging several sources into one store.

A file begins with a line of the machines, followed by the Runs in an order that depends only on their content, so that
adding some changes no other line. Settings at their default are left out; the key of the Run proves that nothing was
lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from asapool.errors import AsapoolError, DataError
from asapool.experiments.record import DIGITS, RunRecord, better
from asapool.experiments.run import FIRST_MODEL, FIRST_TRAIN, Run
from asapool.experiments.store import FILE, Store
from asapool.experiments.summary import SCORES
from asapool.files import write_text

VERSION = 1
OWN = ("best_epoch", "epochs", "stopped", "seconds", "cpu_seconds", "failure", "attempts")


def compact(records: Iterable[RunRecord]) -> str:
    """The text of a file of records."""
    ordered = sorted(records, key=_order)
    machines = {_name(record.machine): record.machine for record in ordered}
    head = {"version": VERSION, "machines": dict(sorted(machines.items()))}
    return "".join(f"{_json(line)}\n" for line in (head, *map(_line, ordered)))


def write_compact(path: str | PathLike[str], records: Iterable[RunRecord]) -> None:
    """Write a file of records, atomically."""
    write_text(path, compact(records))


def read_compact(path: str | PathLike[str]) -> dict[str, RunRecord]:
    """The records of a file by the key of their Run; an error names the damaged line."""
    lines = _lines(Path(path))
    records = {}
    machines: Mapping[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            plain = json.loads(line)
            if number == 1:
                if plain["version"] != VERSION:
                    raise DataError(f"version {VERSION} expected, got {plain['version']!r}")
                machines = plain["machines"]
                continue
            record = _record(plain, machines)
        except (ValueError, KeyError, TypeError, AttributeError, AsapoolError) as error:
            raise DataError(
                f"{path}, line {number}: not a record ({type(error).__name__}: {error}). Expected a file written by "
                "`python -m benchmarks.accuracy --add`; write it again from its store"
            ) from None
        if record.run.key != plain["key"]:
            raise DataError(
                f"{path}, line {number}: the run is {record.run.key}, but the line says {plain['key']}. The line was "
                "changed, or written by another version of asapool: write the file again from its store"
            )
        records[record.run.key] = record
    return records


def together(*parts: Mapping[str, RunRecord]) -> dict[str, RunRecord]:
    """Merge records; of one Run the finished record with more scores wins, and contradictions are refused."""
    merged: dict[str, RunRecord] = {}
    for part in parts:
        for key, record in part.items():
            merged[key] = better(merged[key], record) if key in merged else record
    return merged


def _line(record: RunRecord) -> dict[str, Any]:
    run = record.run.to_dict()
    run["model"] = _changed(run["model"], FIRST_MODEL, "method")
    run["train"] = _changed(run["train"], FIRST_TRAIN)
    scores = {part: _scores(getattr(record, part)) for part in ("validation", "test")}
    outcome = {name: getattr(record, name) for name in OWN if getattr(record, name) is not None}
    parts = {part: values for part, values in scores.items() if values is not None}
    return {"key": record.run.key, **run, **parts, **outcome, "machine": _name(record.machine)}


def _record(plain: Mapping[str, Any], machines: Mapping[str, Any]) -> RunRecord:
    names = ("data", "fingerprint", "model", "train", "seed", "fold", "folds", "protocol")
    more = {name: plain[name] for name in ("splits", "ensemble") if name in plain}
    run = Run.from_dict({name: plain[name] for name in names} | more)
    outcome = {name: plain[name] for name in OWN if name in plain}
    scores: dict[str, Any] = {
        part: None if part not in plain else dict.fromkeys(SCORES) | plain[part] for part in ("validation", "test")
    }
    return RunRecord(**{"run": run, "machine": machines[plain["machine"]], **scores, **outcome})


def _changed(values: Mapping[str, Any], default: Mapping[str, Any], *always: str) -> dict[str, Any]:
    """The settings that are not at their default."""
    return {name: value for name, value in values.items() if name in always or default.get(name, ...) != value}


def _scores(values: Mapping[str, Any] | None) -> dict[str, float] | None:
    if values is None:
        return None
    return {name: round(values[name], DIGITS) for name in SCORES if values.get(name) is not None}


def _order(record: RunRecord) -> tuple[Any, ...]:
    run = record.run
    plain = run.to_dict()
    settings = json.dumps([plain["model"], plain["train"], run.folds, run.protocol], sort_keys=True)
    return run.data, run.model.method, settings, run.seed, run.fold, run.key


def _name(machine: Mapping[str, Any]) -> str:
    return hashlib.sha256(_json(machine).encode()).hexdigest()[:8]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").rstrip("\n").split("\n")  # names may contain other line ends
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}). Write it again from its store") from None


def read_records(place: str | PathLike[str], *, light: bool = False) -> dict[str, RunRecord]:
    """The records of a store, of a compact file, or of a folder of compact files, by the key of their Run.

    light: without curves and probabilities, which compact files never have.
    """
    path = Path(place)
    if path.is_file():
        return Store.read(path.parent, light=light) if path.name == FILE else read_compact(path)
    files = [] if (path / FILE).is_file() else sorted(path.glob("*.jsonl"))
    if files:
        return together(*map(read_compact, files))
    if not path.is_dir():
        raise DataError(f"{place}: there is no such folder or file. Give a folder written by asapool reproduce")
    return Store.read(path, light=light)


def merge(*places: str | PathLike[str], into: str | PathLike[str]) -> int:
    """Merge the records of several sources into one store; returns how many were added.

    The same Run in two sources becomes one record: the finished one, or of two finished ones the one with more scores.
    Finished records in the store stay as they are. If two disagree on a score, nothing is written, and the error names
    both machines.
    """
    with Store.open(into) as store:
        best = {key: (-1, record) for key, record in store.records().items()}  # key → number of its source, record
        for number, place in enumerate(places):
            for key, record in read_records(place, light=True).items():
                if key not in best:
                    best[key] = number, record
                    continue
                source, current = best[key]
                in_store = source < 0 and current.finished  # never replaced, but must not be contradicted
                if better(current, record) is record and not in_store:
                    best[key] = number, record
        count = 0
        for number, place in enumerate(places):
            for key, record in read_records(place).items():
                if key in best and best[key][0] == number:  # skips records added since the first pass
                    store.append(record)
                    count += 1
    return count
