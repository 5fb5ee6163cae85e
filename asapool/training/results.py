"""The results of a finished run: its scores (metrics.json), its files, and its model card (README.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import torch

from asapool import __version__
from asapool.data import GraphSet, Split
from asapool.data.loading import class_column
from asapool.data.targets import Target
from asapool.files import remove, write_csv, write_json, write_text
from asapool.models import GraphModel, checkpoint
from asapool.models.methods import method
from asapool.training.assessment import intervals_by_task, win_text
from asapool.training.calibration import too_few_graphs
from asapool.training.fitting import Fit
from asapool.training.prediction_files import write_predictions
from asapool.training.predictions import predict
from asapool.training.selection import ALL_METRICS
from asapool.training.settings import RunSettings
from asapool.training.state import Epoch
from asapool.training.tasks import task_of
from asapool.training.trust import measured_coverage, trust_of

MARK = "library_name: asapool"
CARD_COVERAGE = 0.9  # of the conformal sets or intervals that the card describes
NO_SCORES = (
    "There are none, because there were no validation or test graphs. A cross-validation with the same settings "
    "(`asapool cv`) estimates them."
)
SCORES = ("accuracy", "balanced_accuracy", "roc_auc", "f1", "mcc", "log_loss", "mae", "rmse", "r2")


def evaluate_run(settings: RunSettings, graphs: GraphSet, split: Split, model: GraphModel, done: Fit) -> dict[str, Any]:
    """The content of metrics.json."""
    target = graphs.target if model.target is None else model.target
    task = task_of(target)

    def scores(y: Any, p: Any) -> dict[str, Any] | None:
        return task.score(y, p, target) if len(y) else None

    answer = task.trivial(graphs.y[split.train], target)
    val, test = ((graphs.y[part], predict(model, graphs, part)) for part in (split.val, split.test))
    trivial = task.compare(*test, answer, target)
    warnings = [
        *done.notes,
        *task.cannot_learn(graphs.y[split.train], target),
        *task.warnings(*val, target, "validation", {}),
    ]
    warnings += task.warnings(*test, target, "test", trivial)
    intervals, of_tasks = intervals_by_task(task.parts(*test, target), task.metrics, len(split.test))
    return {
        "version": 1,
        "data": {
            "source": settings.data.source,
            "name": graphs.name,
            "graphs": len(graphs),
            "fingerprint": graphs.fingerprint,
            "class_column": class_column(settings.data.source, graphs),
        },
        "target": target.to_dict(),
        "parts": {"train": len(split.train), "val": len(split.val), "test": len(split.test), "split": split.method},
        "method": settings.model.method,
        "parameters": sum(p.numel() for p in model.parameters()),
        "best_epoch": done.best_epoch,
        "epochs": len(done.history),
        "stopped": done.stopped,
        "train": scores(graphs.y[split.train], predict(model, graphs, split.train)),
        "selected_by": done.selected_by,
        "validation": scores(*val),
        "test": scores(*test),
        "test_intervals": intervals if len(split.test) else None,
        **({"test_intervals_of_tasks": of_tasks} if len(split.test) and len(of_tasks) > 1 else {}),
        **task.extras(test[0], answer, target),
        "trivial": trivial,
        "warnings": warnings,
        "seconds": sum(epoch.seconds for epoch in done.history),
        "versions": {"asapool": __version__, "torch": torch.__version__, "numerics": checkpoint.NUMERICS},
    }


def write_run(
    path: Path, settings: RunSettings, graphs: GraphSet, split: Split, model: GraphModel, done: Fit,
    metrics: dict[str, Any],
) -> None:  # fmt: skip
    # nothing that depends on time goes into the model file: the same run must give the same bytes
    summary = {
        "train": settings.train.to_dict(),
        "best_epoch": done.best_epoch,
        "epochs": len(done.history),
        "stopped": done.stopped,
    }
    summary |= {
        "validation": metrics["validation"],
        "test": metrics["test"],
        "source": settings.data.source,
        "name": graphs.name,
    }
    trust = trust_of(model, graphs, split)
    checkpoint.save(
        path / "model.safetensors", model, recipe=graphs.recipe, summary=summary, fingerprint=graphs.fingerprint,
        extra={"trust": trust},
    )  # fmt: skip
    metrics["conformal"] = measured_coverage(trust, graphs, split.test, model)
    write_results(path, settings, graphs, split, model, done, metrics)


def write_results(
    path: Path, settings: RunSettings, graphs: GraphSet, split: Split, model: GraphModel, done: Fit,
    metrics: dict[str, Any],
) -> None:  # fmt: skip
    """Write the model card, history.csv, predictions.csv and, to mark the run as finished, metrics.json."""
    write_card(path / "README.md", metrics, settings.to_dict(), graphs.target.output_names)
    write_csv(path / "history.csv", [f.name for f in fields(Epoch)], map(astuple, done.history), durable=True)
    if len(split.test):
        tested = graphs.subset(split.test)
        write_predictions(path / "predictions.csv", [(tested, predict(model, tested))], graphs.target, labels=True)
    write_json(path / "metrics.json", metrics, durable=True)  # last: it marks the run as finished
    remove(path / "state.safetensors")


def write_card(
    path: Path, metrics: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]], classes: tuple[str, ...]
) -> None:
    """Write the card, unless there is a README.md that asapool did not write."""
    try:
        if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
            return
    except OSError:
        return
    write_text(path, model_card(metrics, settings, classes), durable=True)


def model_card(metrics: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]], classes: tuple[str, ...]) -> str:
    """The text of the card.

    Args:
        metrics: the content of metrics.json.
        settings: the four tables of config.toml.
        classes: names of the classes or tasks.

    Returns:
        Markdown with YAML front matter; the same run gives the same bytes.
    """
    data, name = metrics["data"], str(metrics["method"])
    test = metrics.get("test") or {}
    shown = [key for key in SCORES if isinstance(test.get(key), (int, float))]
    target = Target.from_dict(metrics["target"]) if "target" in metrics else Target(classes=classes)
    tag = "graph-regression" if target.kind == "regression" else "graph-classification"
    front = ["---", MARK, "pipeline_tag: graph-ml", "tags:", f"- {tag}", f"- {_y(name)}"]
    front += ["model-index:", f"- name: {_y(name + ' on ' + str(data['name']))}", "  results:"]
    front += ["  - task: {type: graph-ml}", f"    dataset: {{name: {_y(data['name'])}, type: {_y(data['name'])}}}"]
    front += ["    metrics:"] if shown else ["    metrics: []"]
    front += [f"    - {{type: {key}, value: {test[key]:.6g}}}" for key in shown]
    parts, members = metrics["parts"], (metrics.get("ensemble") or {}).get("members", 1)
    runs = "one training run" if members == 1 else f"{members} training runs"
    lines = [
        *front, "---", "", f"# {name} on {_md(data['name'])}", "",
        method(name).sentence + (f" This model is the mean of {members} of them." if members > 1 else ""), "",
        f"Predicts: {', '.join(_md(c) for c in classes)}.", "",
        "## Data", "",
        f"{data['graphs']:,} graphs of `{_md(data['source'])}`: {parts['train']:,} for training, {parts['val']:,} for "
        f"validation, {parts['test']:,} for testing ({_md(parts['split'])}).",
        f"Fingerprint `{data['fingerprint']}`.",
        "", "## Scores on the test graphs", "",
    ]  # fmt: skip
    if shown:
        intervals = metrics.get("test_intervals") or {}
        trivial = (metrics.get("trivial") or {}).get("scores") or {}
        lines += ["| score | value | 95 % interval | trivial baseline |", "|---|---|---|---|"]
        for key in shown:
            text = ALL_METRICS[key].text
            cells = key.replace("_", " "), text(test[key]), _interval(intervals.get(key), text), text(trivial.get(key))
            lines.append(f"| {' | '.join(cells)} |")
        lines += _trust_lines(metrics, target)
    else:
        lines += ["There were no test graphs." if parts["val"] else NO_SCORES]
    lines += ["", *(f"> {_md(text)}" for text in metrics.get("warnings") or ()), "", "## Settings", ""]
    lines += [
        f"- {table}: " + ", ".join(f"{key} = {_md(json.dumps(value))}" for key, value in sorted(values.items()))
        for table, values in settings.items() if table != "data"
    ]  # fmt: skip
    lines += [
        "", "## Limits", "",
        (f"The scores come from one split and {runs}. " if shown else "")
        + "Predictions for graphs unlike the training data can be confident and wrong. Explanations describe the "
        "model, not nature.",
        "", "## Use", "", "```python", "import asapool", "", 'model = asapool.load_model("THIS_FOLDER")',
        "model.predict(new_graphs)", "```", "", f"Written by asapool {__version__}.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _trust_lines(metrics: Mapping[str, Any], target: Target) -> list[str]:
    """How the model compares with the trivial baseline, and how often conformal predictions contain the truth."""
    task, conformal = task_of(target), metrics.get("conformal") or {}
    lines = []
    if won := win_text(metrics.get("trivial") or {}, task.baseline):  # if it is not better, a warning says so
        lines += ["", f"The model is {won}."]
    level = next((one for one in conformal.get("levels", ()) if one["coverage"] == CARD_COVERAGE), None)
    what = "intervals" if target.kind == "regression" else "sets"
    if few := too_few_graphs(conformal, target, CARD_COVERAGE):
        lines += ["", f"{few}."]
    elif level is not None and level["covered"] is not None:
        lines += [
            "",
            f"Conformal {what} at {100 * CARD_COVERAGE:g} % contain {100 * level['covered']:.1f} % of the test values "
            f"(calibrated on {conformal['validation']:,} validation graphs).",
        ]
    return lines


def _interval(pair: Any, text: Callable[[float], str]) -> str:
    numbers = list(pair) if isinstance(pair, (list, tuple)) else []
    return f"{text(numbers[0])} to {text(numbers[1])}" if len(numbers) == 2 and None not in numbers else "–"


def _y(value: Any) -> str:
    """A quoted YAML string; JSON strings are valid YAML."""
    return json.dumps(str(value))


def _md(value: Any) -> str:
    """Text without Markdown markup."""
    text = str(value).replace("\n", " ").replace("|", "\\|")
    return text.replace("<", "&lt;").replace("`", "'")
