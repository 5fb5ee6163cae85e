"""README.md of a run folder: a model card with front matter as model hubs read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asapool import __version__
from asapool.files import write_text
from asapool.models.methods import method

MARK = "library_name: asapool"
SCORES = ("accuracy", "balanced_accuracy", "roc_auc", "f1", "mcc", "log_loss", "mae", "rmse", "r2")


def write_card(
    path: Path, metrics: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]], classes: tuple[str, ...]
) -> None:
    """Write the card, unless a README.md that is not ours is there."""
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
    front = ["---", MARK, "pipeline_tag: graph-ml", "tags:", "- graph-classification", f"- {_y(name)}"]
    front += ["model-index:", f"- name: {_y(name + ' on ' + str(data['name']))}", "  results:"]
    front += ["  - task: {type: graph-ml}", f"    dataset: {{name: {_y(data['name'])}, type: {_y(data['name'])}}}"]
    front += ["    metrics:"] if shown else ["    metrics: []"]
    front += [f"    - {{type: {key}, value: {test[key]:.6g}}}" for key in shown]
    parts = metrics["parts"]
    lines = [
        *front, "---", "", f"# {name} on {_md(data['name'])}", "",
        method(name).sentence, "",
        f"Answers: {', '.join(_md(c) for c in classes)}.", "",
        "## Data", "",
        f"{data['graphs']:,} graphs of `{_md(data['source'])}`: {parts['train']:,} to train on, {parts['val']:,} to "
        f"choose the epoch by, {parts['test']:,} to test on ({_md(parts['split'])}).",
        f"Fingerprint `{data['fingerprint']}`.",
        "", "## Scores on the test graphs", "",
    ]  # fmt: skip
    if shown:
        intervals = metrics.get("test_intervals") or {}
        lines += ["| score | value | 95 % interval |", "|---|---|---|"]
        lines += [f"| {key.replace('_', ' ')} | {test[key]:.4f} | {_interval(intervals.get(key))} |" for key in shown]
    else:
        lines += ["There were no test graphs."]
    lines += ["", *(f"> {_md(text)}" for text in metrics.get("warnings") or ()), "", "## Settings", ""]
    lines += [
        f"- {table}: " + ", ".join(f"{key} = {_md(json.dumps(value))}" for key, value in sorted(values.items()))
        for table, values in settings.items() if table != "data"
    ]  # fmt: skip
    lines += [
        "", "## Limits", "",
        "The scores are those of one split and one training. Graphs unlike the training data can get confident wrong "
        "answers. Explanations describe the model, not nature.",
        "", "## Use", "", "```python", "import asapool", "", 'model = asapool.load_model("THIS_FOLDER")',
        "model.predict(new_graphs)", "```", "", f"Written by asapool {__version__}.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _interval(pair: Any) -> str:
    numbers = list(pair) if isinstance(pair, (list, tuple)) else []
    return f"{numbers[0]:.4f} to {numbers[1]:.4f}" if len(numbers) == 2 and None not in numbers else "–"


def _y(value: Any) -> str:
    """A text in YAML: JSON's quoted texts are."""
    return json.dumps(str(value))


def _md(value: Any) -> str:
    """A text that cannot begin markup in Markdown."""
    text = str(value).replace("\n", " ").replace("|", "\\|")
    return text.replace("<", "&lt;").replace("`", "'")
