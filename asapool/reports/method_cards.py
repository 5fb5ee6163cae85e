"""What a comparison says of each method: its curves, how its trainings went, and its surest mistakes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asapool.experiments.record import RunRecord
from asapool.insight.levels import Floats, Ints
from asapool.reports.charts import Line, line_chart
from asapool.reports.curves import judged_cards
from asapool.reports.page import section, table, text

MISTAKES = 10  # listed per method


class Named(NamedTuple):
    """The graphs that the records of a folder speak of: their ids and the names of their classes."""

    ids: list[str]
    classes: list[str]

    @classmethod
    def read(cls, path: Path) -> Named:
        """Read graphs.csv."""
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return cls([row["id"] for row in rows], [row["class"] for row in rows])


class Pooled(NamedTuple):
    """The test graphs of all folds and seeds of a method, one after the other."""

    graph: Ints  # (M,) number of the graph
    fold: Ints
    seed: Ints
    y: Ints  # (M,) true class
    probability: Floats  # (M, C)
    classes: list[str]
    confusion: list[list[int]]


def pooled(records: Sequence[RunRecord], graphs: Named) -> Pooled | None:
    """Lay the test graphs of finished trainings end to end; None where nothing is finished."""
    parts = [(r, r.probabilities, r.test) for r in records if r.probabilities is not None and r.test is not None]
    if not parts:
        return None
    classes = list(parts[0][2]["class_names"])
    number = {name: c for c, name in enumerate(classes)}
    graph = np.concatenate([np.asarray(p["graphs"], np.int64) for _, p, _ in parts])
    sizes = [len(p["graphs"]) for _, p, _ in parts]
    return Pooled(
        graph=graph,
        fold=np.repeat([r.run.fold for r, _, _ in parts], sizes),
        seed=np.repeat([r.run.seed for r, _, _ in parts], sizes),
        y=np.array([number[graphs.classes[g]] for g in graph.tolist()], np.int64),
        probability=np.concatenate([np.asarray(p["proba"], np.float64) for _, p, _ in parts]),
        classes=classes,
        confusion=np.sum([t["confusion"] for _, _, t in parts], axis=0).tolist(),
    )


def method_section(method: str, records: Sequence[RunRecord], graphs: Named) -> str:
    """The part of the page about one method; empty where none of its trainings finished."""
    found = pooled(records, graphs)
    if found is None:
        return ""
    cards = judged_cards(found.y, found.probability, found.classes, found.confusion)
    cards += _training([r.history for r in records if r.history])
    body = "".join(f"<div><h3>{text(title)}</h3>{chart}</div>" for title, chart in cards)
    lead = "The test graphs of all folds and seeds together, so areas differ a little from means over folds."
    return section(method, f'<div class="grid two">{body}</div>{_mistakes(found, graphs)}', lead)


def mean_curve(
    histories: Sequence[Sequence[dict[str, Any]]], name: str
) -> tuple[list[float], list[float], list[float]]:
    """Epochs, and mean and deviation of a column of the trainings that reached each of them.

    >>> mean_curve([[{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 0.5}], [{"epoch": 1, "loss": 3.0}]], "loss")
    ([1.0, 2.0], [2.0, 0.5], [1.0, 0.0])
    """
    by_epoch: dict[float, list[float]] = {}
    for row in (row for history in histories for row in history):
        if row[name] is not None:
            by_epoch.setdefault(float(row["epoch"]), []).append(row[name])
    epochs = sorted(by_epoch)
    values = [by_epoch[e] for e in epochs]
    return epochs, [float(np.mean(v)) for v in values], [float(np.std(v)) for v in values]


def surest(found: Pooled, count: int = MISTAKES) -> list[int]:
    """Places of the wrong answers, surest first."""
    wrong = np.flatnonzero(found.probability.argmax(axis=1) != found.y)
    sure = found.probability[wrong].max(axis=1)
    chosen: list[int] = wrong[np.argsort(-sure, kind="stable")][:count].tolist()
    return chosen


def _training(histories: Sequence[Sequence[dict[str, Any]]]) -> list[tuple[str, str]]:
    def lines(*columns: tuple[str, str]) -> list[Line]:
        made = [(name, mean_curve(histories, column)) for name, column in columns]
        return [Line(name, x, y, band=spread) for name, (x, y, spread) in made if x]

    cards = []
    for title, unit, series in (
        ("Loss by epoch", "loss", lines(("training", "loss"), ("validation", "val_loss"))),
        ("Validation accuracy by epoch", "accuracy", lines(("validation", "val_accuracy"))),
    ):
        if series:
            chart = line_chart(series, title.lower(), "epoch", unit, whole=True)
            cards.append((f"{title}: mean ± deviation of the trainings", chart))
    return cards


def _mistakes(found: Pooled, graphs: Named) -> str:
    places = surest(found)
    if not places:
        return "<p>Every test graph was answered rightly.</p>"
    answer = found.probability.argmax(axis=1)
    rows = [
        [
            graphs.ids[found.graph[k]], found.classes[found.y[k]], found.classes[answer[k]],
            f"{found.probability[k].max():.3f}", str(found.fold[k]), str(found.seed[k]),
        ]
        for k in places
    ]  # fmt: skip
    header = ["graph", "class", "answer", "probability of the answer", "fold", "seed"]
    return table(header, rows, "The surest mistakes", "numbers")
