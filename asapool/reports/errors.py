"""The most confident errors of a model, and the hierarchies behind those of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from asapool.data import GraphSet, Split
from asapool.errors import AsapoolError
from asapool.insight import Hierarchy, explain
from asapool.insight.importance import KINDS
from asapool.insight.levels import Floats, Ints
from asapool.models import checkpoint
from asapool.reports.explorer import explorer_view
from asapool.reports.run_record import FinishedRun
from asapool.training.settings import RunSettings, read_graphs

LARGE = 1000  # nodes from which on occlusion, one run of the model per node, is left out


def most_confident_errors(y: Ints, probability: Floats, count: int) -> list[int]:
    """Places of the wrong predictions, highest probability first; graphs without a label (y = −1) do not count.

    >>> most_confident_errors(np.array([0, 0, 1, -1]), np.array([[0.4, 0.6], [0.9, 0.1], [0.8, 0.2], [0.0, 1.0]]), 9)
    [2, 0]
    """
    wrong = np.flatnonzero((probability.argmax(axis=1) != y) & (y >= 0))
    order = np.argsort(-probability[wrong].max(axis=1), kind="stable") if len(wrong) else wrong
    places: list[int] = wrong[order][:count].tolist()
    return places


def explain_errors(record: FinishedRun, places: list[int], graphs: GraphSet | None = None) -> list[Hierarchy]:
    """Their hierarchies, by the model and the graphs of the run; graphs are read again where they are not given."""
    trained = checkpoint.load(record.folder / "model.safetensors")
    if graphs is None:
        settings = RunSettings.from_file(record.folder / "config.toml")
        graphs = read_graphs(settings.data, settings.split)
    split = Split.load(record.folder / "split.json")
    split.check(graphs)
    explained = []
    for i in np.asarray(split.test)[places].tolist():
        large = graphs.ptr[i + 1] - graphs.ptr[i] > LARGE
        kinds = [kind for kind in KINDS if not (large and kind == "occlusion")]
        explained.append(explain(trained, graphs, i, importance=kinds))
    return explained


def errors_view(record: FinishedRun, count: int, graphs: GraphSet | None = None) -> dict[str, Any] | None:
    """What the page shows of the errors; where the graphs cannot be read, the reason and a list."""
    if not len(record.y) or not count:
        return None
    places = most_confident_errors(record.y, record.probability, count)
    view: dict[str, Any] = {"lead": "", "explained": [], "reason": "", "lines": []}
    if not places:
        return view
    try:
        explained = explain_errors(record, places, graphs)
    except AsapoolError as error:
        lines = [f"{record.ids[k]}: p = {record.probability[k].max():.3f}" for k in places]
        return view | {"reason": str(error), "lines": lines}
    lead = "The wrong predictions with the highest probability, and the nodes and clusters behind them."
    return view | {"lead": lead, "explained": [explorer_view(h, f"m{k}", "h3") for k, h in enumerate(explained)]}
