"""RunRecord: what came of one Run, as one line of JSON, with all that is needed to repeat it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from asapool.errors import AsapoolError, DataError
from asapool.experiments.run import Run

VERSION = 1
DIGITS = 6  # of the curves, which are for the eye; scores are kept in full


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Scores, curves, time and machine of one Run; or the reason why there are none."""

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
    attempts: int = 1  # how often it was tried until now

    @property
    def finished(self) -> bool:
        """Whether there are scores."""
        return self.failure is None

    def light(self) -> RunRecord:
        """The same without curves and probabilities, which tables do not need and which fill the memory."""
        return replace(self, history=None, probabilities=None)

    def to_line(self) -> str:
        """One line of JSON; curves are written by column, which takes half the room."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain |= {"run": self.run.to_dict(), "history": _columns(self.history)}
        there = {name: value for name, value in plain.items() if value is not None}
        key = {"version": VERSION, "key": self.run.key}
        return json.dumps(key | there, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_line(cls, line: str | bytes) -> RunRecord:
        """The record that to_line wrote; anything else is a DataError."""
        try:
            plain = json.loads(line)
            if plain.pop("version") != VERSION:
                raise DataError(f"a record of version {VERSION} expected. Use the asapool that wrote it")
            key = plain.pop("key")
            record = cls(**plain | {"run": Run.from_dict(plain["run"]), "history": _rows(plain.get("history"))})
        except (ValueError, KeyError, TypeError, AttributeError, AsapoolError) as error:
            raise DataError(f"not a record of a run ({type(error).__name__}: {error})") from None
        if record.run.key != key:
            raise DataError(f"the record is called {key}, but its run is {record.run.key}: the line was changed")
        return record


def failed(run: Run, why: str, machine: dict[str, Any]) -> RunRecord:
    """The record of a Run that came to nothing."""
    return RunRecord(run=run, failure=why, machine=machine)


def plain(record: RunRecord) -> dict[str, Any]:
    """A record as plain data for JSON."""
    return asdict(record) | {"run": record.run.to_dict()}


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
    return round(value, DIGITS) if isinstance(value, float) else value
