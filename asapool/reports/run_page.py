"""The report of one run: scores, curves, most confident errors, settings."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet, Split
from asapool.data.targets import Target, empty_values
from asapool.errors import AsapoolError, CheckpointError
from asapool.experiments.paper import claim
from asapool.files import read_json
from asapool.insight import Hierarchy, explain
from asapool.insight.importance import KINDS
from asapool.insight.levels import Floats
from asapool.models import checkpoint
from asapool.reports.charts import Line, line_chart
from asapool.reports.coverage import coverage_panel, half_widths
from asapool.reports.curves import Panel, class_panels, task_panels, task_table
from asapool.reports.explorer import explorer_view
from asapool.reports.page import Fact, TableView, render
from asapool.training.assessment import win_text
from asapool.training.selection import ALL_METRICS
from asapool.training.settings import RunSettings, read_graphs
from asapool.training.task_scores import WrongAnswer
from asapool.training.tasks import task_of


@dataclass(frozen=True, eq=False, kw_only=True)
class FinishedRun:
    """The contents of a run folder: metrics.json, history.csv, predictions.csv and config.toml."""

    folder: Path
    metrics: dict[str, Any]
    history: dict[str, list[float | None]]  # column → values; None if a cell is empty
    ids: list[str]  # of the test graphs, in the order of the test part
    y: npt.NDArray[Any]  # (G,) true classes of the test graphs, or (G, T) true values
    probability: Floats  # (G, C), or (G, T) predictions
    classes: list[str]
    target: Target
    settings: str


def read_run(folder: Path) -> FinishedRun:
    """Read a finished run; raise CheckpointError if the folder contains none."""
    if not (folder / "metrics.json").is_file():
        if (folder / "config.toml").is_file():
            raise CheckpointError(f"{folder}: the run is not finished. Resume it with: asapool train --resume {folder}")
        raise CheckpointError(
            f"{folder}: contains neither a run (metrics.json) nor a cross-validation (cv.plan.json) nor reproduced "
            "tables (runs.jsonl). Give a folder written by asapool train, cv, compare or reproduce"
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
            f"{folder}: its files are inconsistent ({type(error).__name__}: {error}). Train again"
        ) from None


def _history(path: Path) -> dict[str, list[float | None]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) if row[name] else None for row in rows] for name in (rows[0] if rows else {})}


def _predictions(path: Path, target: Target) -> tuple[list[str], npt.NDArray[Any], Floats]:
    """Ids, true values and predictions of the test graphs; empty if the run has no test part."""
    K = target.outputs
    if not path.is_file():
        return [], empty_values(target, 0), np.zeros((0, K))
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    p = np.array([[float(cell) for cell in row[-K:]] for row in rows]).reshape(len(rows), K)
    known = [row[2 : 2 + target.tasks] for row in rows]
    return [row[1] for row in rows], task_of(target).read_labels(known, target), p


LARGE = 1000  # kinds that run the model for every node are left out for graphs with more nodes


def explain_errors(
    record: FinishedRun, errors: Sequence[WrongAnswer], graphs: GraphSet | None = None
) -> list[Hierarchy]:
    """Explain wrong predictions with the model of the run; graphs that are not given are read again."""
    trained = checkpoint.load(record.folder / "model.safetensors")
    if graphs is None:
        settings = RunSettings.from_file(record.folder / "config.toml")
        graphs = read_graphs(settings.data, settings.split)
    split = Split.load(record.folder / "split.json")
    split.check(graphs)
    explained = []
    for error in errors:
        i = int(split.test[error.place])
        large = graphs.ptr[i + 1] - graphs.ptr[i] > LARGE
        kinds = [kind for kind in KINDS if not (large and KINDS[kind].per_node)]
        explained.append(explain(trained, graphs, i, target=error.output, importance=kinds))
    return explained


def errors_view(record: FinishedRun, count: int, graphs: GraphSet | None = None) -> dict[str, Any] | None:
    """The section on errors: drawings, or a list and the reason if the graphs cannot be read."""
    if not len(record.y) or not count:
        return None
    task = task_of(record.target)
    errors = task.errors(record.y, record.probability, record.target, count)
    places = [error.place for error in errors]
    view: dict[str, Any] = {
        "title": task.errors_title, "lead": "", "explained": [], "reason": "", "lines": [],
        "target": record.target.kind,
    }  # fmt: skip
    if not places:
        return view
    try:
        explained = explain_errors(record, errors, graphs)
    except AsapoolError as error:
        lines = [f"{record.ids[error.place]}: {error.text}" for error in errors]
        return view | {"reason": str(error), "lines": lines}
    return view | {
        "lead": task.errors_lead,
        "explained": [explorer_view(h, f"m{k}", "h3") for k, h in enumerate(explained)],
    }


BASELINES = {
    "classification": "which predicts the shares of the classes in the training graphs",
    "regression": "which predicts the mean of the training graphs",
    "multilabel": "which predicts the share of yes in the training graphs",
}
PARTS = {"train": "training", "validation": "validation", "test": "test"}


def run_page(record: FinishedRun, graphs: GraphSet | None = None, errors: int = 3) -> str:
    """The whole page; graphs saves reading them again for the most confident errors."""
    m = record.metrics
    parts = m["parts"]
    heading = f"{m['data']['name']}: {m['method']}"
    about = f"{parts['train']:,} training graphs, none for validation or testing"
    if parts["val"] or parts["test"]:
        about = (
            f"{parts['train']:,} training, {parts['val']:,} validation, {parts['test']:,} test graphs "
            f"({parts['split'].removesuffix('-split')} split)"
        )
    return render(
        "run.html", heading=heading, about=about, title=f"asapool: {heading}", scores=_scores(record),
        classes=_parts_table(record), training=_training(record), panels=_panels(record),
        coverage=coverage_panel(m.get("conformal"), record.target),  # runs of 0.1.0 have no conformal levels
        errors=errors_view(record, errors, graphs), repeat=_repeat(record), settings=record.settings,
    )  # fmt: skip


def _scores(record: FinishedRun) -> dict[str, Any]:
    m, task = record.metrics, task_of(record.target)
    part = "test" if m["test"] is not None else "validation"
    scores = m[part]
    if scores is None:
        return {"title": "Scores", "lead": "", "facts": [], "paper": "", "warnings": m.get("warnings", [])}
    facts = []
    known = (m.get("trivial") or {}).get("scores", {}) if part == "test" else {}
    spans = (m.get("test_intervals") or {}) if part == "test" else {}
    for key in (name for name in task.shown if name in scores):  # runs of 0.1.0 have neither MCC nor F1
        value, remark = scores[key], scores["notes"].get(key, "")
        if remark and value is not None and len(scores.get("tasks", ())) > 1:
            defined = sum(one[key] is not None for one in scores["tasks"].values())
            remark = f"mean of {defined} of {len(scores['tasks'])} tasks"
        if key in ("pr_auc", "f1") and not remark and scores.get("pr_auc_class") is not None:  # older runs lack it
            remark = f"of the class {scores['pr_auc_class']!r}"
        lines = [remark] if remark else []
        if value is not None and spans.get(key):
            lines.insert(0, f"{_score(spans[key][0])} to {_score(spans[key][1])}")
        if key == task.headline and "majority_class" in m and m["majority_class"]["test_accuracy"] is not None:
            trivial = m["majority_class"]
            lines.append(f"always {trivial['class']!r}: {trivial['test_accuracy']:.3f}")
        elif known.get(key) is not None and key != "calibration_error":  # a constant is calibrated, but useless
            lines.append(f"baseline {_score(known[key])}")
        facts.append(Fact(ALL_METRICS[key].label, "–" if value is None else _score(value), "\n".join(lines)))
    label = ALL_METRICS[task.headline].label
    members = _members(record)
    source = f"ensemble of {members}" if members else f"epoch {m['best_epoch']}"
    facts += [  # runs of 0.1.0 have no scores of the training graphs
        Fact(f"{PARTS[other]} {label}", _score(m[other][task.headline]), source)
        for other in PARTS
        if other != part and (m.get(other) or {}).get(task.headline) is not None
    ]
    reported = claim(m["data"]["name"], m["method"])
    paper = "" if reported is None else f"{reported.mean:.2f} ± {reported.deviation:.2f}"
    title = f"{PARTS[part].capitalize()} scores"
    lead = "Ranges are 95 % bootstrap intervals over the test graphs." if spans else ""
    lead += f" Baseline: the trivial baseline, {BASELINES[record.target.kind]}." if known else ""
    won = win_text(m.get("trivial") or {}, task.baseline) if part == "test" else ""
    lead += f" The model is {won}." if won else ""  # if it is not better, a warning says so
    return {"title": title, "lead": lead, "facts": facts, "paper": paper, "warnings": m.get("warnings", [])}


def _parts_table(record: FinishedRun) -> TableView:
    """The number of graphs of each class per part (row sums of its confusion matrix), or the scores by task."""
    m = record.metrics
    scores = m["test"] or m["validation"]
    if scores is not None and "tasks" in scores:
        known = (m.get("trivial"), m.get("test_intervals"), m.get("test_intervals_of_tasks")) if m["test"] else ()
        return task_table(scores, task_of(record.target), *known)
    parts = [part for part in PARTS if m.get(part)]
    classes = m[parts[0]]["class_names"] if parts else []
    rows = [[name, *(f"{sum(m[part]['confusion'][c]):,}" for part in parts)] for c, name in enumerate(classes)]
    return TableView(["class", *(PARTS[part] for part in parts)], rows, "Graphs per class", "numbers narrow")


def _training(record: FinishedRun) -> dict[str, Any] | None:
    m, h = record.metrics, record.history
    epoch = [e or 0.0 for e in h.get("epoch", [])]
    if len(epoch) < 2:  # no curve: one epoch, or a method without epochs
        return None
    losses = [_line(name, epoch, h.get(key, [])) for name, key in (("training", "loss"), ("validation", "val_loss"))]
    accuracy, score = (_line("validation", epoch, h.get(key, [])) for key in ("val_accuracy", "val_score"))
    chosen = m.get("selected_by", "paper")
    best, span = float(m["best_epoch"]), (min(epoch), max(epoch))
    charts = [line_chart([s for s in losses if s.x], "loss by epoch", "epoch", "loss", span, mark=best, whole=True)]
    if accuracy.x and chosen in ("paper", "accuracy", "loss"):
        label = "validation accuracy by epoch"
        charts.append(line_chart([accuracy], label, "epoch", "accuracy", span, mark=best, whole=True))
    elif score.x and chosen in ALL_METRICS:
        name = ALL_METRICS[chosen].label
        charts.append(line_chart([score], f"validation {name} by epoch", "epoch", name, span, mark=best, whole=True))
    stopped = f" It stopped early: {m['stopped']}." if m["stopped"] else ""
    by = f", the best by validation {ALL_METRICS[chosen].label if chosen in ALL_METRICS else chosen}"
    best_of = f"epoch {m['best_epoch']} (dotted line){by if chosen in (*ALL_METRICS, 'loss') else ''}"
    if members := _members(record):
        lead = (
            f"An ensemble of {members} members, trained in {m['seconds']:.1f} s in total. The charts show the first "
            f"member: {m['epochs']} epochs, of which it keeps {best_of}."
        )
    else:
        lead = f"{m['epochs']} epochs in {m['seconds']:.1f} s; the model is from {best_of}."
    columns = {
        "lr": "learning rate", "loss": "training loss", "val_loss": "validation loss",
        **({"val_accuracy": "validation accuracy"} if accuracy.x or not score.x else {"val_score": "validation score"}),
    }  # fmt: skip
    rows = [[f"{e:.0f}", *(_number(h[key][k]) for key in columns)] for k, e in enumerate(epoch)]
    table = TableView(["epoch", *columns.values()], rows, "All epochs")
    return {"lead": lead + stopped, "charts": charts, "epochs": table}


def _panels(record: FinishedRun) -> list[Panel]:
    scores = record.metrics["test"] or record.metrics["validation"]
    if scores is None:
        return []
    if "tasks" in scores:
        halves = half_widths(record.metrics.get("conformal"), record.target)
        return task_panels(task_of(record.target), record.y, record.probability, record.target, halves)
    known = record.y >= 0
    y, p = record.y[known], record.probability[known]
    areas = {name: scores[name] for name in ("roc_auc", "pr_auc")}
    return class_panels(y, p, record.classes, scores["confusion"], **areas)


def _members(record: FinishedRun) -> int:
    """The number of members of an ensemble; 0 for a single model."""
    return int((record.metrics.get("ensemble") or {}).get("members", 0))


def _repeat(record: FinishedRun) -> TableView:
    m = record.metrics
    rows = [
        ["data", f"{m['data']['source']} ({m['data']['graphs']:,} graphs, fingerprint {m['data']['fingerprint']})"],
        ["parameters", f"{m['parameters']:,}"],
        *([f"version of {name}", version] for name, version in m["versions"].items() if name != "numerics"),
        ["folder", str(record.folder)],
    ]
    return TableView(["", ""], rows, "To reproduce this run", "plain")


def _line(name: str, x: list[float], y: list[float | None]) -> Line:
    points = [(a, b) for a, b in zip(x, y, strict=False) if b is not None]
    return Line(name, [a for a, _ in points], [b for _, b in points])


def _score(value: float) -> str:
    """Three decimals; three digits for measured values of another size.

    >>> _score(0.8125), _score(0), _score(2.1e-9), _score(52_000.5)
    ('0.812', '0.000', '2.1e-09', '5.2e+04')
    """
    return f"{value:.3f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3g}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
