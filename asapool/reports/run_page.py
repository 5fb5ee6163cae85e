"""The page of one training: how it went, how good the model is, where it is surest and wrong, and how to repeat it."""

from __future__ import annotations

from typing import Any

from asapool.data import GraphSet
from asapool.experiments.paper import claim
from asapool.reports.charts import Line, line_chart
from asapool.reports.curves import judged_cards
from asapool.reports.mistakes import mistakes_section
from asapool.reports.page import document, section, table, text
from asapool.reports.record import RunRecord

NAMES = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "roc_auc": "ROC AUC", "pr_auc": "PR AUC",
    "calibration_error": "calibration error",
}  # fmt: skip


def run_page(record: RunRecord, graphs: GraphSet | None = None, mistakes: int = 3) -> str:
    """The whole page; graphs saves reading them again."""
    m = record.metrics
    title = f"{m['data']['name']}: {m['method']}"
    parts = m["parts"]
    about = (
        f"{parts['train']:,} graphs to learn from, {parts['val']:,} to choose the epoch, {parts['test']:,} to judge "
        f"({parts['split'].removesuffix('-split')} split)"
    )
    head = f'<header class="top"><h1>{text(title)}</h1><p class="lead">{text(about)}</p></header>'
    body = _scores(m) + _training(record) + _test(record) + mistakes_section(record, mistakes, graphs) + _repeat(record)
    return document(f"asapool: {title}", f"{head}<main>{body}</main>")


def facts(rows: list[tuple[str, str, str]]) -> str:
    """Large numbers: name, number, remark."""
    cells = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(number)}{f'<small>{text(remark)}</small>' if remark else ''}</dd></div>"
        for name, number, remark in rows
    )
    return f'<dl class="facts">{cells}</dl>'


def _scores(m: dict[str, Any]) -> str:
    scores, which = (m["test"], "Test") if m["test"] is not None else (m["validation"], "Validation")
    if scores is None:
        return section("Scores", "<p>No graphs were kept to judge the model by.</p>")
    rows = []
    for key, name in NAMES.items():
        value, why = scores[key], scores["notes"].get(key, "")
        if key == "pr_auc" and not why and scores.get("pr_auc_class") is not None:  # older runs do not say it
            why = f"of the class {scores['pr_auc_class']!r}"
        rows.append((name, "–" if value is None else f"{value:.3f}", why))
    best = m["majority_class"]
    if best["test_accuracy"] is not None:
        rows[0] = (*rows[0][:2], f"always {best['class']!r}: {best['test_accuracy']:.3f}")
    body = facts(rows)
    known = claim(m["data"]["name"], m["method"])
    if known is not None:
        body += (
            f"<p>The paper reports {known.mean:.2f} ± {known.deviation:.2f} percent over 20 seeds of 10 folds; "
            "one split is a sample of that, so compare with <code>asapool cv</code>.</p>"
        )
    return section(f"{which} scores", body)


def _training(record: RunRecord) -> str:
    m, h = record.metrics, record.history
    epoch = [e or 0.0 for e in h.get("epoch", [])]
    if not epoch:
        return ""
    losses = [_series(name, epoch, h.get(key, [])) for name, key in (("training", "loss"), ("validation", "val_loss"))]
    accuracy = _series("validation", epoch, h.get("val_accuracy", []))
    mark = float(m["best_epoch"])
    span = (min(epoch), max(epoch))
    charts = [line_chart([s for s in losses if s.x], "loss by epoch", "epoch", "loss", span, mark=mark, whole=True)]
    if accuracy.x:
        about = "validation accuracy by epoch"
        charts.append(line_chart([accuracy], about, "epoch", "accuracy", span, mark=mark, whole=True))
    stopped = f" It stopped early: {m['stopped']}." if m["stopped"] else ""
    lead = f"{m['epochs']} epochs in {m['seconds']:.1f} s; the model is that of epoch {m['best_epoch']}, "
    lead += f"the dotted line.{stopped}"
    rows = [
        [f"{e:.0f}", *(_number(h[key][k]) for key in ("lr", "loss", "val_loss", "val_accuracy"))]
        for k, e in enumerate(epoch)
    ]
    every = table(
        ["epoch", "learning rate", "loss", "validation loss", "validation accuracy"], rows, "All epochs", "numbers"
    )
    drawn = "".join(f"<div>{chart}</div>" for chart in charts)
    more = f"<details><summary>All epochs as a table</summary>{every}</details>"
    return section("Training", f'<div class="grid two">{drawn}</div>{more}', lead)


def _test(record: RunRecord) -> str:
    scores = record.metrics["test"] or record.metrics["validation"]
    if scores is None:
        return ""
    known = record.y >= 0
    y, p = record.y[known], record.probability[known]
    areas = {name: scores[name] for name in ("roc_auc", "pr_auc")}
    cards = judged_cards(y, p, record.classes, scores["confusion"], **areas)
    return '<div class="grid two">' + "".join(section(name, chart) for name, chart in cards) + "</div>"


def _repeat(record: RunRecord) -> str:
    m = record.metrics
    rows = [
        ["data", f"{m['data']['source']} ({m['data']['graphs']:,} graphs, fingerprint {m['data']['fingerprint']})"],
        ["weights", f"{m['parameters']:,}"],
        *([f"version of {name}", version] for name, version in m["versions"].items()),
        ["folder", str(record.folder)],
    ]
    told = f"<details><summary>All settings</summary><pre>{text(record.settings)}</pre></details>"
    return section("Settings and versions", table(["", ""], rows, "What it takes to repeat this run") + told)


def _series(name: str, x: list[float], y: list[float | None]) -> Line:
    there = [(a, b) for a, b in zip(x, y, strict=False) if b is not None]
    return Line(name, [a for a, _ in there], [b for _, b in there])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
