"""Bootstrap intervals of cross-validated scores: how much a mean over folds depends on the graphs of the data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.experiments.cells import TableCell, shown
from asapool.experiments.summary import factor_of, score_names
from asapool.training.assessment import Intervals, intervals_over_runs
from asapool.training.task_scores import Part
from asapool.training.tasks import task_of

if TYPE_CHECKING:
    from asapool.data.targets import Target
    from asapool.experiments.record import RunRecord
    from asapool.experiments.tables import Table

WORK = 20_000  # test parts that are scored, over all resamples of a cell
LEAST, MOST = 100, 1000  # resamples


def with_intervals(
    table: Table, records: Mapping[str, RunRecord], y: npt.NDArray[Any], target: Target, known: Table | None = None
) -> Table:
    """The table of a comparison with the intervals of its finished cells.

    Args:
        table: made by make_table.
        records: by key, with their probabilities.
        y: the labels of all graphs.
        target: what they are.
        known: an earlier table; the intervals of the same training runs are taken from it.
    """
    before = {cell.runs: cell for cell in known.cells if cell.intervals} if known is not None else {}
    cells = []
    for cell in table.cells:
        if cell.runs in before:
            same = before[cell.runs]
            cells.append(replace(cell, intervals=same.intervals, tasks=same.tasks))
        else:
            cells.append(_with_intervals(cell, [records[key] for key in cell.runs], y, target))
    return replace(table, cells=tuple(cells))


def _with_intervals(cell: TableCell, records: Sequence[RunRecord], y: npt.NDArray[Any], target: Target) -> TableCell:
    runs = [parts for record in records if (parts := _parts(record, y, target)) is not None]
    if not cell.finished or len(runs) < len(records) or not runs:
        return cell
    task = task_of(target)
    metrics = {name: task.metrics[name] for name in score_names(task.headline)}
    resamples = min(MOST, max(LEAST, WORK // (len(runs) * target.tasks * len(metrics))))
    whole, of_tasks = intervals_over_runs(runs, metrics, len(y), resamples=resamples)
    tasks = cell.tasks and {
        name: scores | {"intervals": _shown(of_tasks[name])} for name, scores in cell.tasks.items() if name in of_tasks
    }
    return replace(cell, intervals=_shown(whole), tasks=tasks)


def _parts(record: RunRecord, y: npt.NDArray[Any], target: Target) -> list[Part] | None:
    """The test entries of a training run, with the numbers of their graphs; None for a record without predictions."""
    if record.probabilities is None:
        return None
    graphs = np.asarray(record.probabilities["graphs"], np.int64)
    p = np.asarray(record.probabilities["proba"], np.float64)
    return [part._replace(rows=graphs[part.rows]) for part in task_of(target).parts(y[graphs], p, target)]


def _shown(intervals: Intervals) -> dict[str, list[float] | None]:
    return {
        name: None if span is None else [float(shown(end, factor_of(name)) or 0.0) for end in span]
        for name, span in intervals.items()
    }
