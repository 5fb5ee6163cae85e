"""The curves of a classifier's test graphs: ROC, precision and recall, calibration, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asapool.insight.levels import Floats, Ints
from asapool.reports.charts import Line, line_chart
from asapool.reports.page import text

BINS = 10
MOST = 5  # classes that get a curve of their own
POINTS = 600  # of a curve: more than a chart has pixels, and few enough for many seeds of a large data set


def shown_classes(y: Ints, C: int) -> list[int]:
    """The second of two classes, as ROC-AUC is defined; of more, the frequent ones that can be told from others."""
    counts = np.bincount(y, minlength=C)
    there = [c for c in range(C) if 0 < counts[c] < len(y)]
    if C == 2:
        return [c for c in there if c == 1]
    return sorted(there, key=lambda c: -counts[c])[:MOST]


def judged_cards(
    y: Ints, p: Floats, classes: Sequence[str], confusion: Sequence[Sequence[int]], *, roc_auc: float | None = None,
    pr_auc: float | None = None,
) -> list[tuple[str, str]]:  # fmt: skip
    """What there is to say of some test graphs, each chart with its title; the areas as for roc_chart."""
    cards = [("Confusion", confusion_table(confusion, classes))]
    if len(set(y.tolist())) > 1:
        cards.append(("ROC", roc_chart(y, p, classes, roc_auc)))
        cards.append(("Precision and recall", pr_chart(y, p, classes, pr_auc)))
    if len(y):
        cards.append(("Calibration", calibration_chart(y, p)))
    return cards


def roc_chart(y: Ints, p: Floats, classes: Sequence[str], known: float | None = None) -> str:
    """True against false positives; the diagonal is guessing. known: the area, if worked out from more digits."""
    from sklearn.metrics import roc_auc_score, roc_curve

    lines = [Line("guessing", [0, 1], [0, 1], aside=True)]
    for c in shown_classes(y, len(classes)):
        fpr, tpr, _ = roc_curve(y == c, p[:, c])
        area = known if known is not None and len(classes) == 2 else roc_auc_score(y == c, p[:, c])
        lines.append(Line(f"{classes[c]}: {area:.3f}", _few(fpr), _few(tpr)))
    return line_chart(lines, "ROC curve", "false positives", "true positives", (0, 1), (0, 1))


def pr_chart(y: Ints, p: Floats, classes: Sequence[str], known: float | None = None) -> str:
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


def calibration_points(y: Ints, p: Floats, bins: int = BINS) -> tuple[list[float], list[float], list[int]]:
    """Mean confidence, share of right answers and number of graphs of every bin that is not empty.

    >>> calibration_points(np.array([0, 1, 1]), np.array([[0.75, 0.25], [0.75, 0.25], [0.0, 1.0]]))
    ([0.75, 1.0], [0.5, 1.0], [2, 1])
    """
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    found = [(float(confidence[place == b].mean()), float(right[place == b].mean()), int((place == b).sum()))
             for b in range(bins) if (place == b).any()]  # fmt: skip
    return [f[0] for f in found], [f[1] for f in found], [f[2] for f in found]


def calibration_chart(y: Ints, p: Floats) -> str:
    """How often the model is right when it says it is sure; on the diagonal it keeps its word."""
    x, r, n = calibration_points(y, p)
    low = min([0.5, *x])
    lines = [Line("as sure as right", [low, 1], [low, 1], aside=True), Line("this model", x, r, dots=True)]
    chart = line_chart(lines, "calibration", "probability of the answer", "share that is right", (low, 1), (0, 1))
    told = ", ".join(f"{a:.2f}: {k}" for a, k in zip(x, n, strict=True))
    return chart.replace("</ul>", f"<li>graphs per point — {told}</li></ul>")


def confusion_table(confusion: Sequence[Sequence[int]], classes: Sequence[str]) -> str:
    """Rows are true classes, columns answers; the more of a row, the darker."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in classes)
    body = ""
    for name, row in zip(classes, confusion, strict=True):
        total = max(sum(row), 1)
        cells = ""
        for answer, n in zip(classes, row, strict=True):
            tint = "--accent" if answer == name else "--plus"
            ground = f"background:color-mix(in srgb, var({tint}) {8 + 52 * n / total:.0f}%, transparent)"
            cells += f'<td style="{ground}">{n:,}<br><small>{n / total:.0%}</small></td>'
        body += f'<tr><th scope="row">{text(name)}</th>{cells}</tr>'
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="confusion matrix"><table class="confusion">'
        f"<caption>Rows: true class. Columns: answer.</caption><thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _few(values: Floats) -> list[float]:
    """The points of a curve that are drawn, its ends among them.

    >>> len(_few(np.arange(10_000.0))), _few(np.arange(3.0))
    (600, [0.0, 1.0, 2.0])
    """
    places = np.linspace(0, len(values) - 1, min(len(values), POINTS)).round().astype(int)
    few: list[float] = values[places].tolist()
    return few
