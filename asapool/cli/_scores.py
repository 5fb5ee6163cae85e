"""Scores of a run or of a part as rows of text, for any kind of target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asapool.errors import plural

if TYPE_CHECKING:
    from asapool.data.targets import Target

MATRIX = 6  # classes of the largest confusion matrix that is printed whole
ERRORS = 5  # errors that are printed of a larger one
NO_SCORES = "none, because there are no validation or test graphs; asapool cv with the same settings estimates them"
TASKS = 20  # tasks whose scores are printed one by one


def run_rows(folder: Path, metrics: dict[str, Any]) -> dict[str, Any]:
    """The summary of a run, as rows of text."""
    from asapool.data.targets import Target
    from asapool.training.assessment import win_text
    from asapool.training.selection import ALL_METRICS
    from asapool.training.tasks import task_of

    parts, column = metrics["parts"], metrics["data"].get("class_column")
    target = Target.from_dict(metrics["target"]) if "target" in metrics else _classes(metrics)
    task = task_of(target)
    kept = "last epoch" if metrics.get("selected_by") == "last" else "best epoch"
    rule = metrics.get("selected_by") or "last"  # old runs do not say
    chosen = "" if rule == "last" else f", by validation {ALL_METRICS[rule].label if rule in ALL_METRICS else rule}"
    shown: dict[str, Any] = {
        "data": f"{metrics['data']['name']}: {parts['train']:,} training, {parts['val']:,} validation, "
        f"{parts['test']:,} test graphs",
        **({f"{task.column} column": column} if column else {}),
        "method": f"{metrics['method']} ({metrics['parameters']:,} parameters)",
        kept: f"{metrics['best_epoch']} of {metrics['epochs']}{chosen}"
        + (f" ({metrics['stopped']})" if metrics["stopped"] else ""),
    }
    if metrics["validation"] is not None:
        first = ALL_METRICS[task.headline]
        shown[f"validation {first.label}"] = first.text(metrics["validation"][task.headline])
    if parts["val"] == parts["test"] == 0:
        shown["scores"] = NO_SCORES
    if metrics["test"] is not None:
        trivial = metrics.get("trivial") or {}
        shown |= score_rows(
            metrics["test"], target, trivial.get("scores"), metrics.get("test_intervals"), "test ",
            trivial.get("scores_of_tasks"), metrics.get("test_intervals_of_tasks"),
        )  # fmt: skip
        if "majority_class" in metrics:
            best = metrics["majority_class"]
            shown["majority class"] = f"{number(best['test_accuracy'])} (always {best['class']!r})"
        won = win_text(trivial, task.baseline)
        shown |= {"verdict": won} if won else {}  # if it is not better, a warning says so
        shown |= coverage_row(metrics.get("conformal") or {}, target)
    return shown | {"time": f"{metrics['seconds']:.1f} s", "folder": str(folder)}


def coverage_row(conformal: Mapping[str, Any], target: Target) -> dict[str, str]:
    """The share of conformal predictions on the test part that contain the truth, or why there are none.

    >>> from asapool.data.targets import Target
    >>> target, levels = Target(classes=("no", "yes")), [{"coverage": 0.9, "covered": 0.875, "size": 1.25}]
    >>> coverage_row({"validation": 50, "levels": levels}, target)
    {'conformal, 90 %': '0.8750 of the test predictions contain the truth (calibrated on 50 validation graphs)'}
    >>> coverage_row({"validation": 4, "levels": levels}, target)
    {'conformal, 90 %': '90 % sets need at least 9 validation graphs, there are 4'}
    >>> several = Target(kind="multilabel", names=("a", "b"))
    >>> coverage_row({"validation": 4, "levels": levels}, several)["conformal, 90 %"].split("; ")[1]
    '90 % sets need at least 9 validation graphs, there are 4 in the task with the fewest'
    """
    from asapool.training.calibration import too_few_graphs

    level = next((one for one in conformal.get("levels", ()) if one["coverage"] == 0.9), None)
    if level is None or level["covered"] is None:
        return {}
    graphs, few = conformal["validation"], too_few_graphs(conformal, target)
    text = f"{number(level['covered'])} of the test predictions contain the truth"
    if few:  # of several tasks, others may have enough
        text = few if target.tasks == 1 else f"{text}; {few}"
    else:
        text += f" (calibrated on {graphs} validation graphs)"
    return {"conformal, 90 %": text}


def score_rows(
    scores: Mapping[str, Any], target: Target, trivial: Mapping[str, Any] | None = None,
    spans: Mapping[str, Any] | None = None, part: str = "", trivial_of_tasks: Mapping[str, Any] | None = None,
    spans_of_tasks: Mapping[str, Any] | None = None,
) -> dict[str, str]:  # fmt: skip
    """The scores of a part.

    Args:
        scores: as plain data.
        target: what was predicted.
        trivial: the scores of the trivial baseline.
        spans: bootstrap intervals; by default those in the scores.
        part: prefix of the name of the first score.
        trivial_of_tasks: task → scores of the trivial baseline; by default those in the scores.
        spans_of_tasks: task → bootstrap intervals; by default those in the scores.
    """
    from asapool.training.selection import ALL_METRICS
    from asapool.training.tasks import task_of

    task, rows = task_of(target), {}
    undefined: dict[str, list[str]] = {}  # reason → scores of several tasks
    spans = spans or scores.get("intervals") or {}
    for name in task.shown:
        metric, value = ALL_METRICS[name], scores.get(name)
        label, text, notes = metric.label, metric.text(value), []
        span = spans.get(name)
        if value is not None and span:
            lead = "95 % interval " if name == task.shown[0] else ""  # the others follow
            notes.append(f"{lead}{metric.text(span[0])} to {metric.text(span[1])}")
        if trivial and trivial.get(name) is not None:
            notes.append(f"trivial {metric.text(trivial[name])}")
        why = scores["notes"].get(name)
        if why and len(scores.get("tasks") or {}) > 1:
            undefined.setdefault(why, []).append(label)
        elif why:
            notes.append(why)
        elif name in ("pr_auc", "f1") and scores.get("pr_auc_class"):
            notes.append(f"of the class {scores['pr_auc_class']!r}")
        rows[f"{part}{label}" if name == task.shown[0] else label] = text + (f" ({'; '.join(notes)})" if notes else "")
    for why, labels in undefined.items():
        rows["tasks left out"] = f"{', '.join(labels)}: {why}"
    if "confusion" in scores:
        rows["confusion"] = confusion_text(scores["class_names"], scores["confusion"])
        rows |= {} if part else {"majority class": number(scores["majority"])}
    trivial_of_tasks = trivial_of_tasks or (scores.get("trivial") or {}).get("scores_of_tasks")
    return rows | task_rows(scores, target, trivial_of_tasks, spans_of_tasks or scores.get("intervals_of_tasks"))


def task_rows(
    scores: Mapping[str, Any], target: Target, trivial: Mapping[str, Any] | None = None,
    spans: Mapping[str, Any] | None = None,
) -> dict[str, str]:  # fmt: skip
    """The scores of several tasks, a row each; the first score with its interval and that of the trivial baseline.

    Args:
        scores: as plain data.
        target: what was predicted.
        trivial: task → scores of the trivial baseline.
        spans: task → bootstrap intervals.
    """
    from asapool.training.selection import ALL_METRICS
    from asapool.training.tasks import task_of

    tasks, shown, rows = scores.get("tasks") or {}, task_of(target).shown[:3], dict[str, str]()
    for name, one in list(tasks.items())[:TASKS] if len(tasks) > 1 else ():
        texts = []
        for metric in (ALL_METRICS[key] for key in shown):
            span, base = ((table or {}).get(name, {}).get(metric.name) for table in (spans, trivial))
            notes = [f"{metric.text(span[0])} to {metric.text(span[1])}"] if span else []
            notes += [f"trivial {metric.text(base)}"] if base is not None else []
            more = f" ({'; '.join(notes)})" if notes and metric.name == shown[0] else ""
            texts.append(f"{metric.label} {metric.text(one[metric.name])}{more}")
        rows[f"  {name}"] = f"{', '.join(texts)}; {plural(one['entries'], 'value')}"
    if len(tasks) > TASKS:
        rows["  …"] = f"{len(tasks) - TASKS} more tasks; --json has all of them"
    return rows


def confusion_text(names: Sequence[str], matrix: Sequence[Sequence[int]]) -> str:
    """The confusion matrix in one line; for many classes only the most frequent errors.

    >>> confusion_text(["no", "yes"], [[5, 1], [2, 7]])
    'true no: 5 no, 1 yes; true yes: 2 no, 7 yes'
    """
    if len(names) <= MATRIX:
        rows = [", ".join(f"{n} {other}" for n, other in zip(row, names, strict=True)) for row in matrix]
        return "; ".join(f"true {name}: {row}" for name, row in zip(names, rows, strict=True))
    errors = [
        (-count, f"{name} → {other} ({count})")
        for name, row in zip(names, matrix, strict=True)
        for other, count in zip(names, row, strict=True)
        if count and other != name
    ]
    most = ", ".join(text for _, text in sorted(errors)[:ERRORS]) or "no errors"
    return f"{len(names)} classes; most frequent errors: {most}. --json has the matrix"


def number(value: float | None) -> str:
    """A share with four decimals, or a dash for None.

    >>> number(0.5), number(None)
    ('0.5000', '–')
    """
    return "–" if value is None else f"{value:.4f}"


def _classes(metrics: Mapping[str, Any]) -> Target:
    """The target of a run of 0.1.0, which supported only classes."""
    from asapool.data.targets import Target

    scores = metrics["test"] or metrics["validation"] or {}
    return Target(classes=tuple(scores.get("class_names", ())))
