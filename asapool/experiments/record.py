"""RunRecord: the result of a Run, with the machine and the versions that may affect it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import asapool
from asapool.errors import AsapoolError, DataError
from asapool.experiments.run import Run

LIBRARIES = {"numpy": "numpy", "numba": "numba", "torch": "torch", "torch_geometric": "torch-geometric"}


@cache
def machine() -> dict[str, Any]:
    """This machine and the versions of the libraries used.

    >>> sorted(machine())[:3]
    ['asapool', 'commit', 'cores']
    """
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: _version(package) for name, package in LIBRARIES.items()},
        "asapool": asapool.__version__,
        "commit": _commit(Path(asapool.__file__).parents[1]),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit(root: Path) -> str | None:
    """The commit of a checkout; None for an installed package, even if its environment lies inside a checkout."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


VERSION = 2  # 1 (asapool 0.1.0) had no checksums
END = re.compile(rb',"checksum":"([0-9a-f]{16})"}$')
DIGITS = 6  # of curves in a line, and to which scores must agree; scores are written in full


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Scores, curves, time and machine of one Run, or the reason why it failed."""

    run: Run
    validation: dict[str, Any] | None = None  # Scores as plain data
    test: dict[str, Any] | None = None
    history: list[dict[str, Any]] | None = None  # the Epochs as plain data
    best_epoch: int | None = None
    epochs: int | None = None
    stopped: str | None = None  # why it ended before its last epoch, if it did
    seconds: float | None = None
    cpu_seconds: float | None = None
    probabilities: dict[str, Any] | None = None  # graphs: numbers of the test graphs; proba: a row for each
    machine: dict[str, Any]
    failure: str | None = None
    attempts: int = 1  # how often it was tried so far
    model: bytes | None = None  # the content of its model file, if the Run keeps it; not part of the line

    @property
    def finished(self) -> bool:
        """Whether there are scores."""
        return self.failure is None

    @property
    def version(self) -> str:
        """The version of asapool that made it."""
        return str(self.machine.get("asapool") or "0.1.0")

    def light(self) -> RunRecord:
        """The same without curves and probabilities, which are large and not needed for tables."""
        return replace(self, history=None, probabilities=None, model=None)

    def to_line(self) -> str:
        """One line of JSON that ends with its checksum; curves are written by column, which halves the size."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "model"}
        plain |= {"run": self.run.to_dict(), "history": _columns(self.history)}
        present = {name: value for name, value in plain.items() if value is not None}
        head = {"version": VERSION, "key": self.run.key}
        line = json.dumps(head | present, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return with_checksum(line)

    @classmethod
    def from_line(cls, line: str | bytes) -> RunRecord:
        """Parse a line of to_line, or of 0.1.0 without a checksum; anything else is a DataError."""
        data = (line.encode() if isinstance(line, str) else line).removesuffix(b"\n")
        end = END.search(data)
        if end is not None and _checksum(data[: end.start()] + b"}") != end[1].decode():
            raise DataError("the checksum of the line is wrong: it was changed or damaged")
        try:
            plain = json.loads(data)
            version = plain.pop("version")
            if version not in (1, VERSION):
                raise DataError(f"expected a record of version {VERSION}. Use the asapool that wrote it")
            if (plain.pop("checksum", None) is None or end is None) != (version == 1):
                raise DataError("the checksum of the line is missing or damaged")
            key = plain.pop("key")
            record = cls(**plain | {"run": Run.from_dict(plain["run"]), "history": _rows(plain.get("history"))})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, AsapoolError) as error:
            raise DataError(f"not a record of a run ({type(error).__name__}: {error})") from None
        if record.run.key != key:
            raise DataError(f"the record has the key {key}, but its run is {record.run.key}: the line was changed")
        return record


def failed(run: Run, why: str, machine: dict[str, Any]) -> RunRecord:
    """The record of a Run that has no scores."""
    return RunRecord(run=run, failure=why, machine=machine)


def better(one: RunRecord, other: RunRecord) -> RunRecord:
    """Of two records of one Run, the finished one; of two finished ones, the one with more scores; else the first.

    A score that only one of them has is not a contradiction; for different scores the error names both machines.
    """
    if not (one.finished and other.finished):
        return other if other.finished else one
    for part in ("validation", "test"):
        a, b = _scores(one, part), _scores(other, part)
        if any(a[name] != b[name] for name in a if name in b):
            where = " and ".join(f"{r.machine.get('cpu')} (torch {r.machine.get('torch')})" for r in (one, other))
            raise DataError(
                f"run {one.run.key} ({one.run.data}, {one.run.model.method}, seed {one.run.seed}, fold {one.run.fold}) "
                f"has different {part} scores on {where}. Keep them in separate stores, or leave one of them out"
            )
    return other if _known(other) > _known(one) else one


def _known(record: RunRecord) -> int:
    return sum(len(_scores(record, part)) for part in ("validation", "test"))


def _scores(record: RunRecord, part: str) -> dict[str, Any]:
    values = getattr(record, part) or {}
    return {name: _rounded(value) for name, value in values.items() if value is not None}


def with_checksum(line: str) -> str:
    """A JSON object with its checksum as the last entry.

    >>> with_checksum('{"a":1}')
    '{"a":1,"checksum":"015abd7f5cc57a2d"}'
    """
    return f'{line[:-1]},"checksum":"{_checksum(line.encode())}"}}'


def _checksum(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:16]


def _columns(history: list[dict[str, Any]] | None) -> dict[str, list[Any]] | None:
    if history is None:
        return None
    names = list(history[0]) if history else []
    return {name: [_rounded(row[name]) for row in history] for name in names}


def _rows(columns: dict[str, list[Any]] | None) -> list[dict[str, Any]] | None:
    if columns is None:
        return None
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return round(value, DIGITS) if isinstance(value, float) else value
