"""The plans behind stored training runs: those in their folder, or else the ones that come with asapool."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from asapool.experiments import paper
from asapool.experiments.experiment import read_plans
from asapool.experiments.plan import Plan, load_plan
from asapool.experiments.plan_file import read_plan

if TYPE_CHECKING:
    from asapool.data import GraphSet
    from asapool.experiments.record import RunRecord

MAIN = "table2"  # shows all its columns, even those with a single row
ORDER = (
    MAIN,
    "table-plus",
    "table-plus-folds",
    "ablation-plus",
    "pooling-helps",
    "pooling-range",
    "table-rates",
    "table-semantics",
    *paper.ABLATIONS,
    "table-hyper",
)


def plans_behind(folder: str | PathLike[str], records: Mapping[str, RunRecord]) -> list[Plan]:
    """The plans of a folder; without any, the ones of asapool that its records fill, in ORDER."""
    filled = (filled_plan(name, records) for name in ORDER)
    return read_plans(folder) or [plan for plan in filled if plan is not None]


def filled_plan(name: str, records: Mapping[str, RunRecord]) -> Plan | None:
    """A plan of asapool on the data sets that have records of it; None if there is nothing to compare.

    Plans share training runs, so a single filled row does not mean that the table was trained.
    """
    prints = {record.run.data: record.run.fingerprint for record in records.values()}
    present = {paper.canonical(data) for data in prints}
    names = [entry.name for entry in read_plan(name).data]
    names += [stand_in for stand_in, other in paper.STAND_INS.items() if other in names]
    columns = [column for column in names if column in present]
    if not columns:
        return None
    plan = load_plan(name, datasets=columns)
    graphs = cast("dict[str, GraphSet]", {data: SimpleNamespace(fingerprint=value) for data, value in prints.items()})
    rows: dict[str, int] = dict.fromkeys(columns, 0)
    for cell in plan.cells:
        keys = (run.key for run in plan.runs_of(cell, graphs)) if cell.column in graphs else ()
        rows[cell.column] += any(key in records and records[key].finished for key in keys)
    least = 1 if name == MAIN and max(rows.values()) > 1 else 2
    filled = [column for column in columns if rows[column] >= least]
    return load_plan(name, datasets=filled) if filled else None
