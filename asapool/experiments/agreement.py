"""Two records of one Run: which one to keep, and when they contradict each other."""

from __future__ import annotations

from typing import Any

from asapool.errors import DataError
from asapool.experiments.record import RunRecord

DIGITS = 6  # to which scores must agree; compact files have no more
PARTS = ("validation", "test")


def better(one: RunRecord, other: RunRecord) -> RunRecord:
    """The finished one, of two finished ones that which says more, and else the first.

    What just one of them says is no contradiction; two that say different things are refused, with both machines.
    """
    if not (one.finished and other.finished):
        return other if other.finished else one
    for part in PARTS:
        a, b = _scores(one, part), _scores(other, part)
        if any(a[name] != b[name] for name in a if name in b):
            where = " and ".join(f"{r.machine.get('cpu')} (torch {r.machine.get('torch')})" for r in (one, other))
            raise DataError(
                f"run {one.run.key} ({one.run.data}, {one.run.model.method}, seed {one.run.seed}, fold {one.run.fold}) "
                f"has different {part} scores on {where}. Keep the two apart, or leave one of them out"
            )
    return other if _known(other) > _known(one) else one


def _known(record: RunRecord) -> int:
    return sum(len(_scores(record, part)) for part in PARTS)


def _scores(record: RunRecord, part: str) -> dict[str, Any]:
    values = getattr(record, part) or {}
    return {name: _rounded(value) for name, value in values.items() if value is not None}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return round(value, DIGITS) if isinstance(value, float) else value
