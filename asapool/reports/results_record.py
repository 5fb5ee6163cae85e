"""What a folder of reproduced tables holds, read back for its page: plans, records, tables, curves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.errors import DataError
from asapool.experiments.experiment import read_plans
from asapool.experiments.record import RunRecord
from asapool.experiments.reproducing import known
from asapool.experiments.store import FILE, Store
from asapool.experiments.tables import Table, make_table
from asapool.files import read_json

CURVES = ("loss", "val_loss", "val_accuracy")
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """Everything the page shows; curves: (run key → column → value per epoch)."""

    folder: Path
    tables: list[Table]
    fixed: dict[str, dict[str, Any]]  # table1 and table3 as they were written
    records: dict[str, RunRecord]
    curves: dict[str, dict[str, Floats]]


def is_results(folder: Path) -> bool:
    """Whether asapool reproduce worked in the folder."""
    return (folder / FILE).is_file() or any((folder / f"{name}.json").is_file() for name in ("table1", "table3"))


def read_results(folder: Path, *, curves: bool = True) -> Results:
    """Read a folder; its tables are made anew from its records, so that they are never older than these."""
    records = Store.read(folder, light=True) if (folder / FILE).is_file() else {}
    order = known()  # the paper's tables first, as the paper has them
    plans = sorted(read_plans(folder), key=lambda plan: order.index(plan.name) if plan.name in order else len(order))
    tables = [make_table(plan, records) for plan in plans]
    fixed = {name: read_json(path) for name in ("table1", "table3") if (path := folder / f"{name}.json").is_file()}
    if not tables and not fixed:
        raise DataError(
            f"{folder}: holds records but no plan of a table. Give the folder that asapool reproduce wrote, or let it "
            f"write the plan there: asapool reproduce WHAT --out {folder}"
        )
    courses = _curves(folder / FILE, records) if curves else {}
    return Results(folder=folder, tables=tables, fixed=fixed, records=records, curves=courses)


def _curves(path: Path, records: dict[str, RunRecord]) -> dict[str, dict[str, Floats]]:
    """The histories, one record at a time: all of them as records would not fit into the memory."""
    found: dict[str, dict[str, Floats]] = {}
    if not path.is_file():
        return found
    with open(path, "rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):
                break
            record = RunRecord.from_line(line)
            if record.history and record.run.key in records:
                found[record.run.key] = {
                    name: np.array([_or_nan(epoch.get(name)) for epoch in record.history]) for name in CURVES
                }
    return found


def _or_nan(value: Any) -> float:
    return float("nan") if value is None else float(value)
