"""chemprop as a peer of benchmarks.molecules: its own program with its defaults, on our splits, in its own environment.

    python -m venv ENV && ENV/bin/pip install chemprop
    python -m benchmarks.molecules --methods chemprop --chemprop ENV/bin/chemprop

chemprop is no dependency of asapool. It gets a table with the parts of our split in a column.
"""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from asapool.data import GraphSet, Split
from asapool.training.tasks import task_of

KINDS = {"regression": "regression", "multilabel": "classification", "classification": "classification"}


def chemprop_record(
    program: str, graphs: GraphSet, split: Split, folder: Path, seed: int, metric: str, epochs: int | None,
    descriptors: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Train chemprop on the training part, with RDKit's 2D descriptors if wanted, and score it on the test part."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"task{t}" for t in range(1 if graphs.y.ndim == 1 else graphs.y.shape[1])]
    table = folder / "table.csv"
    write_table(table, graphs, split, names)
    command = [
        program, "train", "-i", str(table), "-s", "smiles", "--target-columns", *names, "--splits-column", "part",
        "-t", KINDS[graphs.target.kind], "-o", str(folder / "model"), "--pytorch-seed", str(seed),
        "--accelerator", "cpu", "-n", "0", "--remove-checkpoints", *(["--epochs", str(epochs)] if epochs else []),
        *(["--molecule-featurizers", "rdkit_2d"] if descriptors else []),
    ]  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    with open(folder / "log.txt", "w", encoding="utf-8") as log:
        subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT, env=environment)
    version = subprocess.run(
        [str(Path(program).parent / "python"), "-c", "import importlib.metadata as m; print(m.version('chemprop'))"],
        check=True, capture_output=True, text=True, env=environment,
    ).stdout.strip()  # fmt: skip
    y, task = graphs.y[split.test], task_of(graphs.target)
    p = answers(folder / "model" / "model_0" / "test_predictions.csv", names, graphs.target.kind)
    if len(p) != len(y):
        raise RuntimeError(f"chemprop answered {len(p)} of {len(y)} molecules: see {folder}/log.txt")
    return {
        "members": 1, "member": 0, "metric": metric, "score": task.mean(metric, y, p, graphs.target), "trivial": None,
        "scores": {name: task.mean(name, y, p, graphs.target) for name in task.metrics}, "coverage": None,
        "seconds_per_epoch": None, "parts": [len(split.train), len(split.val), len(split.test)],
        "chemprop": version,
    }  # fmt: skip


def write_table(path: Path, graphs: GraphSet, split: Split, names: list[str]) -> None:
    """The molecules in the order of the set, their targets (empty where missing) and their part."""
    part = np.full(len(graphs), "", dtype=object)
    for name in ("train", "val", "test"):
        part[getattr(split, name)] = name
    columns = graphs.y.reshape(len(graphs), -1).astype(float)
    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["smiles", *names, "part"])
        for text, values, where in zip(graphs.source_text or (), columns, part, strict=True):
            writer.writerow([text, *("" if np.isnan(v) else f"{v:g}" for v in values), where])


def answers(path: Path, names: list[str], kind: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Predictions as asapool has them: values, probabilities of yes, or a column per class."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    p = np.array([[float(row[name]) for name in names] for row in rows])
    return np.concatenate([1 - p, p], axis=1) if kind == "classification" else p
