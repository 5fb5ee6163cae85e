"""The files of a finished run, read back for its page."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data.targets import Target, empty_values
from asapool.errors import CheckpointError
from asapool.files import read_json
from asapool.insight.levels import Floats
from asapool.training.tasks import task_of


@dataclass(frozen=True, eq=False, kw_only=True)
class FinishedRun:
    """A run folder: metrics.json, history.csv, predictions.csv and the settings as they were written."""

    folder: Path
    metrics: dict[str, Any]
    history: dict[str, list[float | None]]  # column → values; None where a column is empty
    ids: list[str]  # of the test graphs, in the order of the test part
    y: npt.NDArray[Any]  # (G,) true classes of the test graphs, or (G, T) true values
    probability: Floats  # (G, C), or (G, T) answers
    classes: list[str]
    target: Target
    settings: str


def read_run(folder: Path) -> FinishedRun:
    """Read a finished run; one that is not finished, or no run at all, is refused in a sentence."""
    if not (folder / "metrics.json").is_file():
        if (folder / "config.toml").is_file():
            raise CheckpointError(f"{folder}: the run is not finished. Go on with: asapool train --resume {folder}")
        raise CheckpointError(
            f"{folder}: holds neither a run (metrics.json) nor a cross-validation (plan.json and table.json) nor "
            "reproduced tables (runs.jsonl). Give the folder that asapool train, cv, compare or reproduce wrote"
        )
    metrics = read_json(folder / "metrics.json")
    try:
        classes = list((metrics["test"] or metrics["validation"] or {}).get("class_names", []))
        target = Target.from_dict(metrics["target"]) if "target" in metrics else Target(classes=tuple(classes))
        ids, y, p = _predictions(folder / "predictions.csv", target)
        return FinishedRun(
            folder=folder, metrics=metrics, history=_history(folder / "history.csv"), ids=ids, y=y, probability=p,
            classes=classes, target=target, settings=(folder / "config.toml").read_text(encoding="utf-8"),
        )  # fmt: skip
    except (OSError, KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{folder}: its files do not fit together ({type(error).__name__}: {error}). Train again"
        ) from None


def _history(path: Path) -> dict[str, list[float | None]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) if row[name] else None for row in rows] for name in (rows[0] if rows else {})}


def _predictions(path: Path, target: Target) -> tuple[list[str], npt.NDArray[Any], Floats]:
    """Ids, true values and answers of the test graphs; none where the run kept no test part."""
    K = target.outputs
    if not path.is_file():
        return [], empty_values(target, 0), np.zeros((0, K))
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    p = np.array([[float(cell) for cell in row[-K:]] for row in rows]).reshape(len(rows), K)
    known = [row[2 : 2 + target.tasks] for row in rows]
    return [row[1] for row in rows], task_of(target).read_labels(known, target), p
