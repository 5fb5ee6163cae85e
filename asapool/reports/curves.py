"""Panels that show predictions on test graphs: for classes, measured values and yes/no tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from asapool.data.targets import Target
from asapool.insight.levels import Floats, Ints
from asapool.reports.charts import Chart, Line, line_chart
from asapool.reports.page import TableView
from asapool.training.assessment import p_of_tasks, p_text
from asapool.training.metrics import calibration_bins
from asapool.training.selection import ALL_METRICS
from asapool.training.task import Task
from asapool.training.task_scores import Part

MOST = 5  # classes that get a curve of their own
POINTS = 600  # per curve: more than a chart has pixels, few enough for many seeds of a large data set
THRESHOLDS = tuple(k / 10 for k in range(1, 10))  # on the probability of the second of two classes


class ConfusionCell(NamedTuple):
    """Graphs of a true class with a predicted class."""

    graphs: str
    share: str
    tint: int  # percent of the colour
    right: bool


class ConfusionRow(NamedTuple):
    """The graphs of one true class."""

    name: str
    cells: list[ConfusionCell]
    total: str


class Confusion(NamedTuple):
    """A confusion matrix: rows are true classes, columns predicted ones."""

    classes: Sequence[str]
    rows: list[ConfusionRow]


class Panel(NamedTuple):
    """A titled part of a page with a chart, or a confusion matrix and a table."""

    title: str
    chart: Chart | None = None
    confusion: Confusion | None = None
    table: TableView | None = None
    note: str = ""


def shown_classes(y: Ints, C: int) -> list[int]:
    """The second of two classes, as in ROC AUC; of more, the most frequent ones, except one that all graphs have."""
    counts = np.bincount(y, minlength=C)
    present = [c for c in range(C) if 0 < counts[c] < len(y)]
    if C == 2:
        return [c for c in present if c == 1]
    return sorted(present, key=lambda c: -counts[c])[:MOST]


def class_panels(
    y: Ints, p: Floats, classes: Sequence[str], confusion: Sequence[Sequence[int]], *, roc_auc: float | None = None,
    pr_auc: float | None = None,
) -> list[Panel]:  # fmt: skip
    """All panels that the test graphs allow; the areas are those of roc_chart and pr_chart."""
    first = Panel("Confusion matrix and thresholds", confusion=confusion_matrix(confusion, classes))
    if len(classes) == 2 and len(y):
        note = (
            f"The model predicts {classes[1]!r} if its probability is above 0.5. These are test graphs: use "
            "validation graphs to choose another threshold."
        )
        first = first._replace(table=threshold_table(y == 1, p[:, 1], classes[1]), note=note)
    else:
        first = first._replace(title="Confusion matrix")
    panels = [first]
    if len(set(y.tolist())) > 1:
        panels.append(Panel("ROC curve", roc_chart(y, p, classes, roc_auc)))
        panels.append(Panel("Precision and recall", pr_chart(y, p, classes, pr_auc)))
    if len(y):
        panels.append(Panel("Calibration", calibration_chart(y, p)))
    return panels


def roc_chart(y: Ints, p: Floats, classes: Sequence[str], known: float | None = None) -> Chart:
    """True against false positive rate; the diagonal is guessing. known: the area, if computed from more digits."""
    from sklearn.metrics import roc_auc_score, roc_curve

    lines = [Line("guessing", [0, 1], [0, 1], aside=True)]
    chosen = shown_classes(y, len(classes))
    for c in chosen:
        fpr, tpr, _ = roc_curve(y == c, p[:, c])
        area = known if known is not None and len(classes) == 2 else roc_auc_score(y == c, p[:, c])
        lines.append(Line(f"{classes[c]}: {area:.3f}", _few(fpr), _few(tpr)))
    if len(classes) == 2 and chosen:
        above, positive = p[:, 1] > 0.5, y == 1
        point = (
            [float((above & ~positive).sum() / (~positive).sum())],
            [float((above & positive).sum() / positive.sum())],
        )
        lines.append(Line("at threshold 0.5", *point, dots=True))
    return line_chart(lines, "ROC curve", "false positive rate", "true positive rate", (0, 1), (0, 1))


def pr_chart(y: Ints, p: Floats, classes: Sequence[str], known: float | None = None) -> Chart:
    """Precision against recall; the dashed line is the share of the class. known: as for roc_chart."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    lines: list[Line] = []
    chosen = shown_classes(y, len(classes))
    for c in chosen:
        precision, recall, _ = precision_recall_curve(y == c, p[:, c])
        area = known if known is not None and len(classes) == 2 else average_precision_score(y == c, p[:, c])
        lines.append(Line(f"{classes[c]}: {area:.3f}", _few(recall), _few(precision)))
    if len(chosen) == 1:
        share = float((y == chosen[0]).mean())
        lines.append(Line(f"share of {classes[chosen[0]]}", [0, 1], [share, share], aside=True))
    return line_chart(lines, "precision and recall", "recall", "precision", (0, 1), (0, 1))


def calibration_chart(y: Ints, p: Floats) -> Chart:
    """Accuracy against confidence, in the bins of the calibration error; on the diagonal both are equal."""
    bins = calibration_bins(p.max(axis=1), p.argmax(axis=1) == y)
    x, accuracy = bins.confidence.tolist(), bins.accuracy.tolist()
    low = min([0.5, *x])
    lines = [
        Line("share of the graphs", x, (bins.graphs / max(bins.graphs.sum(), 1)).tolist(), bars=True),
        Line("perfect calibration", [low, 1], [low, 1], aside=True),
        Line("this model", x, accuracy, dots=True),
    ]
    return line_chart(lines, "calibration", "predicted probability", "accuracy", (low, 1), (0, 1))


def confusion_matrix(confusion: Sequence[Sequence[int]], classes: Sequence[str]) -> Confusion:
    """Counts with their share of the row; the larger the share, the darker."""
    rows = []
    for true, counts in enumerate(confusion):
        total = sum(counts)
        cells = [
            ConfusionCell(f"{n:,}", f"{n / max(total, 1):.0%}", round(8 + 52 * n / max(total, 1)), predicted == true)
            for predicted, n in enumerate(counts)
        ]
        rows.append(ConfusionRow(classes[true], cells, f"{total:,}"))
    return Confusion(classes, rows)


def threshold_table(positive: Ints, p: Floats, name: str) -> TableView:
    """Precision, recall and specificity for several thresholds on the probability of the positive class."""
    rows = []
    for threshold in THRESHOLDS:
        above = p > threshold
        right = int((above & positive).sum())
        values = [
            _share(right, int(above.sum())),
            _share(right, int(positive.sum())),
            _share(int((~above & ~positive).sum()), int((~positive).sum())),
            _share(int((above == positive).sum()), len(p)),
        ]
        rows.append([f"{threshold:.1f}", f"{int(above.sum()):,}", *values])
    header = ["threshold", "graphs above", "precision", "recall", "specificity", "accuracy"]
    return TableView(header, rows, f"Predicting {name} if its probability is above the threshold")


def mean_and_deviation(curves: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Mean and standard deviation (n − 1) over several curves, epoch by epoch; shorter curves count while they last.

    >>> mean, deviation = mean_and_deviation([np.array([1.0, 2.0]), np.array([3.0])])
    >>> mean.tolist(), deviation.tolist()
    ([2.0, 2.0], [1.4142135623730951, 0.0])
    """
    length = max((len(c) for c in curves), default=0)
    padded = np.full((len(curves), length), np.nan)
    for row, curve in zip(padded, curves, strict=True):
        row[: len(curve)] = curve
    present = ~np.isnan(padded)
    count = present.sum(axis=0)
    mean = np.where(present, padded, 0.0).sum(axis=0) / np.maximum(count, 1)
    square = np.where(present, (padded - mean) ** 2, 0.0).sum(axis=0)
    deviation: Floats = np.sqrt(square / np.maximum(count - 1, 1))
    return mean[count > 0], deviation[count > 0]


def mean_line(name: str, curves: Sequence[Floats]) -> Line:
    """The mean of some curves over their epochs, with the deviation as a band."""
    mean, deviation = mean_and_deviation(curves)
    return Line(name, list(range(1, len(mean) + 1)), mean.tolist(), band=deviation.tolist())


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "–"


def _few(values: Floats) -> list[float]:
    """The points of a curve that are drawn, including its ends.

    >>> len(_few(np.arange(10_000.0))), _few(np.arange(3.0))
    (600, [0.0, 1.0, 2.0])
    """
    places = np.linspace(0, len(values) - 1, min(len(values), POINTS)).round().astype(int)
    few: list[float] = values[places].tolist()
    return few


MOST_TASKS = 6  # tasks that get charts of their own
DOTS = 2000  # in a chart


def task_panels(
    task: Task, y: Floats, p: Floats, target: Target, halves: Mapping[str, float] | None = None
) -> list[Panel]:
    """All panels that the test graphs allow; halves: task → half the width of its 90 % interval, if known."""
    parts = [part for part in task.parts(y, p, target) if len(part.y)]
    if task.probabilities:
        return _yes_no(parts)
    panels = []
    for part in parts[:MOST_TASKS]:
        unit = target.units[target.names.index(part.name)]
        name = f"{part.name}, {unit}" if unit and unit not in part.name else part.name
        panels += _values(part, name, (halves or {}).get(part.name))
    return panels


def task_table(
    scores: Mapping[str, Any], task: Task, trivial: Mapping[str, Any] | None = None,
    spans: Mapping[str, Any] | None = None, spans_of_tasks: Mapping[str, Any] | None = None,
) -> TableView:  # fmt: skip
    """A row per task with all its scores, and their means.

    Args:
        scores: of a part, as plain data.
        task: the kind of target.
        trivial: scores of the trivial baseline, with its tests; the first score is shown beside the model's.
        spans: 95 % intervals of the means.
        spans_of_tasks: of every task; without them there are no such columns, as in runs of older versions.
    """
    trivial, spans, spans_of_tasks = trivial or {}, spans or {}, spans_of_tasks or {}
    tasks: Mapping[str, Mapping[str, Any]] = scores["tasks"]
    first, *others = task.shown
    bases, tests = trivial.get("scores_of_tasks") or {}, p_of_tasks(trivial)
    further = {"95 % interval": bool(spans_of_tasks), "baseline": bool(bases), "p": bool(bases) and bool(tests)}

    def cells(one: Mapping[str, Any], span: Any, base: Any, p: float | None) -> list[str]:
        interval = f"{_number(span[0])} to {_number(span[1])}" if span else "–"
        p_cell = "–" if p is None else p_text(p).removeprefix("p ").removeprefix("= ")
        more = zip((interval, _number(base), p_cell), further.values(), strict=True)
        return [
            _number(one.get(first)),
            *(cell for cell, shown in more if shown),
            *(_number(one.get(k)) for k in others),
        ]

    rows = []
    for name, one in tasks.items():
        span, base = ((table.get(name) or {}).get(first) for table in (spans_of_tasks, bases))
        rows.append([name, f"{one['entries']:,}", *cells(one, span, base, tests.get(name))])
    if len(tasks) > 1:
        base = (trivial.get("scores") or {}).get(first)
        rows.append(["mean", f"{scores['entries']:,}", *cells(scores, spans.get(first), base, None)])
    labels = [ALL_METRICS[key].label for key in others]
    header = ["task", "values", ALL_METRICS[first].label, *(name for name, shown in further.items() if shown), *labels]
    meanings = {
        "95 % interval": f"Of {ALL_METRICS[first].label}, by bootstrap over the test graphs.",
        "baseline": f"{ALL_METRICS[first].label} of the trivial baseline.",
        "p": "One-sided test of whether the model is better than the baseline, not corrected for the number of tasks.",
    }
    notes = [(name, meanings[name]) for name, shown in further.items() if shown]
    return TableView(header, rows, "Scores of every task on the test graphs", "numbers", notes)


def _values(part: Part, name: str, half: float | None) -> list[Panel]:
    """Measured against predicted values, with the 90 % interval, and the residuals."""
    places = np.linspace(0, len(part.y) - 1, min(len(part.y), DOTS)).round().astype(int)
    y, p = part.y[places], part.p[places]
    low, high = float(min(y.min(), p.min())), float(max(y.max(), p.max()))
    room = 0.04 * (high - low) or 1.0
    span = (low - room, high + room)
    exact = Line("equal", list(span), list(span), aside=True)
    graphs = Line("test graphs", y.tolist(), p.tolist(), points=True)
    title = f"Measured and predicted: {part.name}"
    band = [] if half is None else [_interval(span, half)]
    agreement = line_chart([*band, exact, graphs], title.lower(), f"measured {name}", "predicted", span, span)
    caption = "" if half is None else f"Band: the conformal interval at 90 % coverage, prediction ± {half:.3g}."
    residual = p - y
    zero = Line("no error", [float(p.min()), float(p.max())], [0.0, 0.0], aside=True)
    errors = Line("test graphs", p.tolist(), residual.tolist(), points=True)
    label = f"residuals of {part.name}"
    left = line_chart([zero, errors], label, f"predicted {name}", "predicted − measured")
    note = f"Mean error {residual.mean():+.3g}; half of the errors are below {np.median(np.abs(residual)):.3g}."
    return [Panel(title, agreement, note=caption), Panel(f"Residuals: {part.name}", left, note=note)]


def _interval(span: tuple[float, float], half: float) -> Line:
    """The band of ± half around the diagonal, with points where its edges meet the frame.

    >>> _interval((0.0, 4.0), 1.0).x, _interval((0.0, 4.0), 9.0).x
    ([0.0, 1.0, 3.0, 4.0], [0.0, 4.0])
    """
    low, high = span
    x = sorted({low, high, *(at for at in (low + half, high - half) if low < at < high)})
    return Line("90 % interval", x, x, band=[half] * len(x), shade=True)


def _yes_no(parts: list[Part]) -> list[Panel]:
    """ROC curves of the tasks with the most positives, and the calibration of all tasks together."""
    from sklearn.metrics import roc_auc_score, roc_curve

    known = sorted((part for part in parts if len(np.unique(part.y)) > 1), key=lambda part: -int(part.y.sum()))
    lines = [Line("guessing", [0, 1], [0, 1], aside=True)]
    for part in known[:MOST_TASKS]:
        fpr, tpr, _ = roc_curve(part.y, part.p[:, 1])
        lines.append(Line(f"{part.name}: {roc_auc_score(part.y, part.p[:, 1]):.3f}", fpr.tolist(), tpr.tolist()))
    panels = []
    if known:
        chart = line_chart(lines, "ROC curves", "false positive rate", "true positive rate", (0, 1), (0, 1))
        note = "" if len(known) <= MOST_TASKS else f"{MOST_TASKS} of {len(known)} tasks, those with the most positives."
        panels.append(Panel("ROC curves", chart, note=note))
    if parts:
        y, p = np.concatenate([part.y for part in parts]), np.concatenate([part.p for part in parts])
        panels.append(Panel("Calibration of all tasks together", calibration_chart(y, p)))
    return panels


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if abs(value) < 1e4 else f"{value:.3g}"
