"""The surest mistakes of a run, each with the hierarchy that led to it."""

from __future__ import annotations

import numpy as np

from asapool.data import GraphSet, Split
from asapool.errors import AsapoolError
from asapool.insight import Hierarchy, explain
from asapool.models import checkpoint
from asapool.reports.explorer import explorer
from asapool.reports.page import section, text
from asapool.reports.record import RunRecord
from asapool.training.settings import RunSettings, read_graphs

LARGE = 1000  # nodes from which on occlusion, one run of the model per node, is left out


def surest_mistakes(record: RunRecord, count: int) -> list[int]:
    """Places in the test part of the wrong answers, surest first."""
    wrong = np.flatnonzero((record.probability.argmax(axis=1) != record.y) & (record.y >= 0))
    return sorted(wrong.tolist(), key=lambda k: -record.probability[k].max())[:count]


def explain_mistakes(record: RunRecord, places: list[int], graphs: GraphSet | None = None) -> list[Hierarchy]:
    """Their hierarchies, by the model and the graphs of the run; graphs are read again where they are not given."""
    trained = checkpoint.load(record.folder / "model.safetensors")
    if graphs is None:
        settings = RunSettings.from_file(record.folder / "config.toml")
        graphs = read_graphs(settings.data, settings.split)
    split = Split.load(record.folder / "split.json")
    split.check(graphs)
    found = []
    for i in np.asarray(split.test)[places].tolist():
        large = graphs.ptr[i + 1] - graphs.ptr[i] > LARGE
        found.append(
            explain(
                trained,
                graphs,
                i,
                importance=("attention", "gradient") if large else ("attention", "gradient", "occlusion"),
            )
        )
    return found


def mistakes_section(record: RunRecord, count: int, graphs: GraphSet | None = None) -> str:
    """The part of the page; a source that is gone leaves a sentence, not a hole."""
    title = "The surest mistakes"
    if not len(record.y) or not count:
        return ""
    places = surest_mistakes(record, count)
    if not places:
        return section(title, "<p>There are none: every test graph was answered rightly.</p>")
    try:
        found = explain_mistakes(record, places, graphs)
    except AsapoolError as error:
        rows = "".join(f"<li>{text(record.ids[k])}: p = {record.probability[k].max():.3f}</li>" for k in places)
        return section(title, f"<ul>{rows}</ul><p>They cannot be drawn: {text(error)}</p>")
    lead = "Wrong answers that the model was most certain of, and the clusters and nodes that led to them."
    body = "".join(explorer(h, f"m{k}", "h3") for k, h in enumerate(found))
    return section(title, f'<div class="mistakes">{body}</div>', lead)
