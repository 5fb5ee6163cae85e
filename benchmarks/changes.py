"""What became faster or slower than the committed numbers, by more than the noise of both.

    python -m benchmarks.changes           the files in benchmarks/results against those of the last commit

A measurement is a median with its quartiles. Two differ when their quartile ranges do not overlap. Times are compared
only where both were measured on the same processor; ratios to torch_geometric always.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measuring import RESULTS

RATIOS = ("times_faster", "ratio")  # names of measurements where more is better; of all others less is
NAMES = ("data", "threads", "name", "edges", "what", "side")  # fields that tell the entries of a list apart


class Change(NamedTuple):
    """One measurement that differs."""

    where: str
    before: float
    now: float
    better: bool

    def __str__(self) -> str:
        factor = max(self.before, self.now) / max(min(self.before, self.now), 1e-12)
        return (
            f"{self.where}: {self.before:.3g} → {self.now:.3g} ({factor:.2f} × {'better' if self.better else 'worse'})"
        )


def measurements(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
    """Every median with its quartiles in a result, with the way to it."""
    if isinstance(tree, dict):
        if {"median", "quartile_1", "quartile_3"} <= tree.keys():
            yield path, tree
            return
        for key, value in tree.items():
            yield from measurements(value, (*path, str(key)))
    elif isinstance(tree, list):
        for k, value in enumerate(tree):
            yield from measurements(value, (*path, _name(value, k)))


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[Change]:
    """The measurements of two results of one benchmark that differ by more than the noise of both.

    >>> old = {"ms": {"median": 5.0, "quartile_1": 4.8, "quartile_3": 5.3}}
    >>> new = {"ms": {"median": 4.0, "quartile_1": 3.9, "quartile_3": 4.2}}
    >>> [str(change) for change in changes(old, new)]
    ['ms: 5 → 4 (1.25 × better)']
    >>> changes(old, {"ms": {"median": 4.9, "quartile_1": 4.7, "quartile_3": 5.0}})
    []
    """
    same_machine = _processor(before) == _processor(now)
    old = dict(measurements(before))
    result = []
    for path, new in measurements(now):
        more_is_better = any(word in part for part in path for word in RATIOS)
        if path not in old or not (same_machine or more_is_better):
            continue
        was = old[path]
        apart = new["quartile_1"] > was["quartile_3"] or new["quartile_3"] < was["quartile_1"]
        if apart:
            better = (new["median"] > was["median"]) == more_is_better
            result.append(Change(" / ".join(path), was["median"], new["median"], better))
    return result


def committed(path: Path) -> dict[str, Any] | None:
    """The content of a result in the last commit, None where it is new."""
    name = f"HEAD:./{path.name}"
    shown = subprocess.run(["git", "show", name], capture_output=True, text=True, cwd=path.parent, check=False)
    content: dict[str, Any] | None = json.loads(shown.stdout) if shown.returncode == 0 else None
    return content


def main() -> int:
    """Print the changes of all results; the code is 0 whatever they are."""
    count = 0
    for path in sorted(RESULTS.glob("*.json")):
        before = committed(path)
        if before is None:
            print(f"{path.stem}: new")
            continue
        for change in changes(before, json.loads(path.read_text())):
            print(f"{path.stem}: {change}")
            count += 1
    print(f"{count} measurements differ from the committed ones by more than the noise of both")
    return 0


def _name(value: Any, number: int) -> str:
    if not isinstance(value, dict):
        return str(number)
    parts = [f"{key} {value[key]}" for key in NAMES if isinstance(value.get(key), (str, int, float))]
    return ", ".join(parts) or str(number)


def _processor(result: dict[str, Any]) -> str | None:
    machine = result.get("machine")
    return machine.get("cpu") if isinstance(machine, dict) else None


if __name__ == "__main__":
    sys.exit(main())
