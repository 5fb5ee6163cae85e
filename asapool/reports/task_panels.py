"""What a model does on test graphs of measured values or yes/no tasks, as panels of a page."""

from __future__ import annotations

import numpy as np

from asapool.data.targets import Target
from asapool.insight.levels import Floats
from asapool.reports.charts import Line, line_chart
from asapool.reports.curves import Panel, calibration_chart
from asapool.reports.page import TableView
from asapool.training.selection import ALL_METRICS
from asapool.training.task import Task
from asapool.training.task_scores import Part

MOST = 6  # tasks that get charts of their own
POINTS = 2000  # of a chart


def task_panels(task: Task, y: Floats, p: Floats, target: Target) -> list[Panel]:
    """All panels that some test graphs allow."""
    parts = [part for part in task.parts(y, p, target) if len(part.y)]
    if task.probabilities:
        return _yes_no(parts)
    panels = []
    for part in parts[:MOST]:
        unit = target.units[target.names.index(part.name)]
        panels += _values(part, f"{part.name}, {unit}" if unit and unit not in part.name else part.name)
    return panels


def task_table(scores: dict[str, object], task: Task) -> TableView:
    """A row per task with all its scores, and their means."""
    tasks: dict[str, dict[str, float | None]] = scores["tasks"]  # type: ignore[assignment]
    rows = [
        [name, f"{one['entries']:,}", *(_number(one.get(key)) for key in task.shown)] for name, one in tasks.items()
    ]
    if len(tasks) > 1:
        means = (_number(scores.get(key)) for key in task.shown)  # type: ignore[arg-type]
        rows.append(["mean", f"{scores['entries']:,}", *means])
    header = ["task", "values", *(ALL_METRICS[key].label for key in task.shown)]
    return TableView(header, rows, "Scores of every task on the test graphs", "numbers")


def _values(part: Part, name: str) -> list[Panel]:
    """Measured against predicted values, and the residuals."""
    places = np.linspace(0, len(part.y) - 1, min(len(part.y), POINTS)).round().astype(int)
    y, p = part.y[places], part.p[places]
    low, high = float(min(y.min(), p.min())), float(max(y.max(), p.max()))
    room = 0.04 * (high - low) or 1.0
    span = (low - room, high + room)
    exact = Line("equal", list(span), list(span), aside=True)
    graphs = Line("test graphs", y.tolist(), p.tolist(), points=True)
    title = f"Measured and predicted: {part.name}"
    agreement = line_chart([exact, graphs], title.lower(), f"measured {name}", "predicted", span, span)
    residual = p - y
    zero = Line("no error", [float(p.min()), float(p.max())], [0.0, 0.0], aside=True)
    errors = Line("test graphs", p.tolist(), residual.tolist(), points=True)
    label = f"residuals of {part.name}"
    left = line_chart([zero, errors], label, f"predicted {name}", "predicted − measured")
    note = f"Mean error {residual.mean():+.3g}; half of the errors are below {np.median(np.abs(residual)):.3g}."
    return [Panel(title, agreement), Panel(f"Residuals: {part.name}", left, note=note)]


def _yes_no(parts: list[Part]) -> list[Panel]:
    """ROC curves of the tasks with most positives, and the calibration of all answers together."""
    from sklearn.metrics import roc_auc_score, roc_curve

    known = sorted((part for part in parts if len(np.unique(part.y)) > 1), key=lambda part: -int(part.y.sum()))
    lines = [Line("guessing", [0, 1], [0, 1], aside=True)]
    for part in known[:MOST]:
        fpr, tpr, _ = roc_curve(part.y, part.p[:, 1])
        lines.append(Line(f"{part.name}: {roc_auc_score(part.y, part.p[:, 1]):.3f}", fpr.tolist(), tpr.tolist()))
    panels = []
    if known:
        chart = line_chart(lines, "ROC curves", "false positive rate", "true positive rate", (0, 1), (0, 1))
        note = "" if len(known) <= MOST else f"The {MOST} tasks with most positive graphs, of {len(known)}."
        panels.append(Panel("ROC curves", chart, note=note))
    if parts:
        y, p = np.concatenate([part.y for part in parts]), np.concatenate([part.p for part in parts])
        panels.append(Panel("Calibration of all tasks together", calibration_chart(y, p)))
    return panels


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if abs(value) < 1e4 else f"{value:.3g}"
