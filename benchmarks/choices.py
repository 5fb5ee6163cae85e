"""Which settings asap+ should have by default: trials on training graphs only.

    python -m benchmarks.choices --data NCI1 --settings "base;average" --trials 3
    python -m benchmarks.choices --page                      # just the page docs/defaults.md

For every trial the test part of a published fold (or of a scaffold split) is set aside and never used. The other graphs
are divided again into training, validation and test graphs of the trial, and a setting is scored on the latter. The
same trial has the same parts for all settings. benchmarks/results/choices.jsonl has one line per training; what is
listed there is not trained again. "base" are the default settings of the day: after changing them, begin a new file.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from asapool.data import GraphSet, read
from asapool.data.splits import Split, scaffold_split, stratified_split
from asapool.files import load_toml, write_text
from asapool.models import ModelConfig
from asapool.models.methods import PLUS, PLUS_SCHEDULE
from asapool.training import fit, predict
from asapool.training.config import PRESETS, TrainConfig, preset
from asapool.training.new_model import new_model
from asapool.training.tasks import task_of
from benchmarks import markdown
from benchmarks.measuring import RESULTS, machine
from benchmarks.molecules import LABELS, SCORES, SETS, append, records, source

ROOT = Path(__file__).parents[1]
FILE, PAGE = ROOT / "benchmarks" / "results" / "choices.jsonl", ROOT / "docs" / "defaults.md"
FOLDS = {"NCI1": "NCI1", "DD": "DD", "PROTEINS": "PROTEINS_full"}  # sets with published folds, and the files of these

# changes of the default settings: tables [model] and [train]
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "base": {},
    "average": {"train": {"average": 10}},
    "three convs, average": {"model": {"first_convs": 3}, "train": {"average": 10}},
    "hidden 64": {"model": {"hidden": 64}},
    "hidden 64, less dropout": {"model": {"hidden": 64, "dropout": 0.2}},
    "hidden 128, less dropout": {"model": {"hidden": 128, "dropout": 0.2}},
    "hidden 64, no dropout": {"model": {"hidden": 64, "dropout": 0.0, "readout_dropout": 0.1, "conv_dropout": 0.0}},
    "twice as long, average": {"train": {"epochs": 2.0, "average": 10}},
    "last": {"train": {"select_by": "last"}},
    "last, average": {"train": {"select_by": "last", "average": 10}},
    "last, hidden 64": {"model": {"hidden": 64}, "train": {"select_by": "last"}},
    "last, average, hidden 64, 60 epochs": {
        "model": {"hidden": 64, "counts": "none"},
        "train": {"select_by": "last", "average": 10, "epochs": 3.0, "lr": 0.003},
    },
    "longer, average": {"train": {"epochs": 1.5, "average": 10}},
    "four convs": {"model": {"first_convs": 4}},
    "less dropout": {"model": {"dropout": 0.2}},
    "less decay": {"train": {"weight_decay": 0.01}},
    "more readout dropout": {"model": {"readout_dropout": 0.5}},
    "batches of 16": {"train": {"batch_size": 16}},
    "batches of 16, more readout dropout": {"model": {"readout_dropout": 0.5}, "train": {"batch_size": 16}},
    "batches of 16, average": {"train": {"batch_size": 16, "average": 10}},
}


def main() -> None:
    """Train what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="NCI1", help=", ".join([*FOLDS, *SETS]))
    parser.add_argument("--settings", default="base;average", help="; ".join(SETTINGS))
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--root", type=Path, default=Path(os.environ.get("ASAPOOL_DATA", "../shared/datasets")))
    parser.add_argument("--page", action="store_true", help="train nothing")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if not chosen.page:
        graphs = load(chosen.data, chosen.root)
        for trial in range(chosen.trials):
            for name in chosen.settings.split(";"):
                work_on(graphs, chosen.data, chosen.root, name, trial)
    write_text(PAGE, page(records(FILE)))
    print(f"wrote {PAGE}")


def load(data: str, root: Path) -> GraphSet:
    """The graphs of a set."""
    if data in FOLDS:
        return read(data, data_root=str(root)).graphs
    return read(source(root, data), skip_invalid=True, **SETS[data]).graphs


def parts(graphs: GraphSet, data: str, root: Path, trial: int) -> tuple[GraphSet, Split]:
    """The graphs outside the test part of a fold or a scaffold split, and their own split."""
    if data in FOLDS:
        folds = json.loads((root / "splits" / f"{FOLDS[data]}.json").read_text())
        fold = folds[trial % len(folds)]  # further trials divide the same training graphs in another way
        inside = graphs.subset(np.setdiff1d(np.arange(len(graphs)), fold["test"]))
        return inside, stratified_split(inside, seed=trial, val=0.1, test=0.15)
    outer = scaffold_split(graphs, seed=trial)
    inside = graphs.subset(np.sort(np.concatenate([outer.train, outer.val])))
    return inside, scaffold_split(inside, val=0.1, test=0.15, seed=1000 + trial)


def work_on(graphs: GraphSet, data: str, root: Path, name: str, trial: int) -> None:
    """Train one setting on one trial, if its record is not there."""
    wanted = {"data": data, "settings": name, "trial": trial}
    if any(wanted.items() <= record.items() for record in records(FILE)):
        return
    inside, split = parts(graphs, data, root, trial)
    model, train = settings_of(data, inside, name)
    began = time.process_time()
    network = new_model(model, inside, split.train, train)
    done = fit(network, inside, split, train)
    target, task = inside.target, task_of(inside.target)
    metric = "accuracy" if data in FOLDS else SCORES[target.kind]
    scores = {
        part: task.mean(metric, inside.y[indices], predict(network, inside, indices), target)
        for part, indices in (("val", split.val), ("test", split.test))
    }
    line = wanted | {
        "metric": metric, "score": scores["test"], "val_score": scores["val"], "best_epoch": done.best_epoch,
        "parts": [len(split.train), len(split.val), len(split.test)], "seconds": time.process_time() - began,
        "config": model.to_dict(), "train": train.to_dict(), "machine": machine(),
    }  # fmt: skip
    append(FILE, [line])
    print(f"{data}, {name}, trial {trial}: {scores['test']:.4f} ({line['seconds']:.0f} s)", flush=True)


def settings_of(data: str, graphs: GraphSet, name: str) -> tuple[ModelConfig, TrainConfig]:
    """The default settings for a set of this size, with the changes of that name."""
    tables = preset(data, "asap+", len(graphs), graphs.target.kind)
    change = SETTINGS[name]
    train = TrainConfig(**tables["train"] | {"seed": 0, "threads": 1})
    more = dict(change.get("train", {}))
    if "epochs" in more:
        more["epochs"] = round(train.epochs * more["epochs"])
    return ModelConfig(method="asap+", **tables["model"] | change.get("model", {})), replace(train, **more)


def page(lines: list[dict[str, Any]]) -> str:
    """docs/defaults.md: the default settings, and the trials."""
    presets = load_toml(PRESETS)
    entries = [[kind, _graphs(one), _settings(one)] for kind, several in presets.items() for one in several]
    settings = markdown.table(["target", "graphs", "settings"], entries)
    head = ["data", "settings", "score", "trials", "mean", "beside the base settings"]
    tried = json.loads((RESULTS / "large_set_batches.json").read_text())["batches"]
    batches = ", ".join(f"{one['validation_rmse']:.4f} with {one['batch_size']}" for one in tried)
    sizes = ",".join(str(one["batch_size"]) for one in tried)
    trials = markdown.table(head, rows(lines))
    schedule = {name: value for name, value in PLUS_SCHEDULE.items() if name not in ("epochs", "lr", "batch_size")}
    others = _settings({"model": PLUS, "train": schedule})
    return TEXT.format(settings=settings, others=others, trials=trials, batches=batches, sizes=sizes)


def rows(lines: list[dict[str, Any]]) -> list[list[str]]:
    """Mean score per setting, and the mean paired difference to the base settings with its standard error."""
    result = []
    for data in dict.fromkeys(line["data"] for line in lines):
        mine = [line for line in lines if line["data"] == data]
        base = {line["trial"]: line["score"] for line in mine if line["settings"] == "base"}
        label = LABELS.get(mine[0]["metric"], mine[0]["metric"])
        for name in dict.fromkeys(line["settings"] for line in mine):
            scores = {line["trial"]: line["score"] for line in mine if line["settings"] == name}
            gains = [scores[trial] - base[trial] for trial in scores if trial in base]
            beside = "–"
            if name != "base" and gains:
                error = f" ± {statistics.stdev(gains) / len(gains) ** 0.5:.3f}" if len(gains) > 1 else ""
                beside = f"{statistics.fmean(gains):+.3f}{error}".replace("-", "−")
            changed = "base" if name == "base" else f"{name}: {_settings(SETTINGS[name])}"
            result.append([data, changed, label, str(len(scores)), f"{statistics.fmean(scores.values()):.3f}", beside])
    return result


def _graphs(entry: dict[str, Any]) -> str:
    return f"fewer than {entry['graphs_below']:,}" if "graphs_below" in entry else "more"


def _settings(entry: dict[str, Any]) -> str:
    """The settings of an entry as text; a number of epochs below 10 is a factor."""
    shown = []
    for table in ("model", "train"):
        for name, value in entry.get(table, {}).items():
            factor = name == "epochs" and isinstance(value, float)
            shown.append(f"`{name}` × {value:g}" if factor else f"`{name} = {json.dumps(value)}`")
    return ", ".join(shown)


TEXT = """# Default settings of asap+

The width, the number of epochs and some other settings of `asap+` and `none+` depend on the kind of target and the
number of graphs. `asapool train` writes all settings of a run to its `config.toml`; those that you give come first.

{settings}

All other settings are the same everywhere (`asapool/models/methods.py`): {others}.

What a user should know about some of them:

- `select_by = "last"` keeps the weights of the last epoch. The schedule ends with a small learning rate, and a
  validation part of a hundred molecules is too small to choose the epoch: it often picked an early, unfinished one.
- `average = 10` keeps the mean of the weights over about ten epochs.
- `counts = "none"` leaves out the Weisfeiler-Lehman counts.
- `batch_size` is 64 below 100,000 graphs. Larger batches take less time per epoch but learn less in it: six epochs on
  30,000 molecules with a measured value (logP, `python -m benchmarks.large_set --batches {sizes}`) gave a validation
  RMSE of {batches}. So only sets with many steps per epoch
  have them. Classes and yes/no tasks of large sets were not tried.

## How they were chosen

Each trial sets aside the test part of a published fold or of a scaffold split, divides the remaining graphs again into
training, validation and test graphs, and compares settings on the latter, one training each. *base* are the default
settings at the time of the trial; the last column is the mean paired difference ± its standard error (RMSE: lower is
better; ROC-AUC and accuracy: higher is better). With few trials only large differences mean anything, and the best of
several settings looks better than it is. Most other settings were chosen earlier, on validation parts, without a
record.

A trial never uses the test part of its own fold or split. But folds and splits overlap: test graphs of the others take
part in it. So the settings are not chosen on any test score, yet not independently of all test graphs either, on the
sets named below.

{trials}

This page is written by `python -m benchmarks.choices --page` from `benchmarks/results/choices.jsonl`.
"""


if __name__ == "__main__":
    main()
