"""The page of one training: scores, training curves, test curves, most confident errors, settings."""

from __future__ import annotations

from typing import Any

from asapool.data import GraphSet
from asapool.experiments.paper import claim
from asapool.reports.charts import Line, line_chart
from asapool.reports.curves import Panel, class_panels
from asapool.reports.errors import errors_view
from asapool.reports.page import Fact, TableView, render
from asapool.reports.run_record import FinishedRun

NAMES = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "roc_auc": "ROC AUC", "pr_auc": "PR AUC",
    "calibration_error": "calibration error",
}  # fmt: skip
PARTS = {"train": "training", "validation": "validation", "test": "test"}


def run_page(record: FinishedRun, graphs: GraphSet | None = None, errors: int = 3) -> str:
    """The whole page; graphs saves reading them again for the most confident errors."""
    m = record.metrics
    parts = m["parts"]
    heading = f"{m['data']['name']}: {m['method']}"
    about = (
        f"{parts['train']:,} training, {parts['val']:,} validation, {parts['test']:,} test graphs "
        f"({parts['split'].removesuffix('-split')} split)"
    )
    return render(
        "run.html", heading=heading, about=about, title=f"asapool: {heading}", scores=_scores(m), classes=_classes(m),
        training=_training(record), panels=_panels(record), errors=errors_view(record, errors, graphs),
        repeat=_repeat(record), settings=record.settings,
    )  # fmt: skip


def _scores(m: dict[str, Any]) -> dict[str, Any]:
    part = "test" if m["test"] is not None else "validation"
    scores = m[part]
    if scores is None:
        return {"title": "Scores", "facts": [], "paper": ""}
    facts = []
    for key, name in NAMES.items():
        value, remark = scores[key], scores["notes"].get(key, "")
        if key == "pr_auc" and not remark and scores.get("pr_auc_class") is not None:  # older runs do not have it
            remark = f"of the class {scores['pr_auc_class']!r}"
        facts.append(Fact(name, "–" if value is None else f"{value:.3f}", remark))
    trivial = m["majority_class"]
    if trivial["test_accuracy"] is not None:
        facts[0] = facts[0]._replace(remark=f"always {trivial['class']!r}: {trivial['test_accuracy']:.3f}")
    facts += [  # runs of 0.1.0 have no scores of the training graphs
        Fact(f"{PARTS[other]} accuracy", f"{m[other]['accuracy']:.3f}", f"epoch {m['best_epoch']}")
        for other in PARTS
        if other != part and (m.get(other) or {}).get("accuracy") is not None
    ]
    known = claim(m["data"]["name"], m["method"])
    paper = "" if known is None else f"{known.mean:.2f} ± {known.deviation:.2f}"
    return {"title": f"{PARTS[part].capitalize()} scores", "facts": facts, "paper": paper}


def _classes(m: dict[str, Any]) -> TableView:
    """How many graphs of every class each part has: the row sums of its confusion matrix."""
    known = [part for part in PARTS if m.get(part)]
    classes = m[known[0]]["class_names"] if known else []
    rows = [[name, *(f"{sum(m[part]['confusion'][c]):,}" for part in known)] for c, name in enumerate(classes)]
    return TableView(["class", *(PARTS[part] for part in known)], rows, "Graphs per class", "numbers narrow")


def _training(record: FinishedRun) -> dict[str, Any] | None:
    m, h = record.metrics, record.history
    epoch = [e or 0.0 for e in h.get("epoch", [])]
    if not epoch:
        return None
    losses = [_line(name, epoch, h.get(key, [])) for name, key in (("training", "loss"), ("validation", "val_loss"))]
    accuracy = _line("validation", epoch, h.get("val_accuracy", []))
    best, span = float(m["best_epoch"]), (min(epoch), max(epoch))
    charts = [line_chart([s for s in losses if s.x], "loss by epoch", "epoch", "loss", span, mark=best, whole=True)]
    if accuracy.x:
        label = "validation accuracy by epoch"
        charts.append(line_chart([accuracy], label, "epoch", "accuracy", span, mark=best, whole=True))
    stopped = f" It stopped early: {m['stopped']}." if m["stopped"] else ""
    lead = f"{m['epochs']} epochs in {m['seconds']:.1f} s; the model is that of epoch {m['best_epoch']} (dotted line)."
    columns = {
        "lr": "learning rate", "loss": "training loss", "val_loss": "validation loss",
        "val_accuracy": "validation accuracy",
    }  # fmt: skip
    rows = [[f"{e:.0f}", *(_number(h[key][k]) for key in columns)] for k, e in enumerate(epoch)]
    table = TableView(["epoch", *columns.values()], rows, "All epochs")
    return {"lead": lead + stopped, "charts": charts, "epochs": table}


def _panels(record: FinishedRun) -> list[Panel]:
    scores = record.metrics["test"] or record.metrics["validation"]
    if scores is None:
        return []
    known = record.y >= 0
    y, p = record.y[known], record.probability[known]
    areas = {name: scores[name] for name in ("roc_auc", "pr_auc")}
    return class_panels(y, p, record.classes, scores["confusion"], **areas)


def _repeat(record: FinishedRun) -> TableView:
    m = record.metrics
    rows = [
        ["data", f"{m['data']['source']} ({m['data']['graphs']:,} graphs, fingerprint {m['data']['fingerprint']})"],
        ["parameters", f"{m['parameters']:,}"],
        *([f"version of {name}", version] for name, version in m["versions"].items()),
        ["folder", str(record.folder)],
    ]
    return TableView(["", ""], rows, "What it takes to repeat this run", "")


def _line(name: str, x: list[float], y: list[float | None]) -> Line:
    points = [(a, b) for a, b in zip(x, y, strict=False) if b is not None]
    return Line(name, [a for a, _ in points], [b for _, b in points])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
