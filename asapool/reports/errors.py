"""The hierarchies behind the worst errors of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asapool.data import GraphSet, Split
from asapool.errors import AsapoolError
from asapool.insight import Hierarchy, explain
from asapool.insight.importance import KINDS
from asapool.models import checkpoint
from asapool.reports.explorer import explorer_view
from asapool.reports.run_record import FinishedRun
from asapool.training.settings import RunSettings, read_graphs
from asapool.training.task_scores import WrongAnswer
from asapool.training.tasks import task_of

LARGE = 1000  # nodes from which on occlusion, one run of the model per node, is left out


def explain_errors(
    record: FinishedRun, errors: Sequence[WrongAnswer], graphs: GraphSet | None = None
) -> list[Hierarchy]:
    """Their hierarchies, by the model and the graphs of the run; graphs are read again where they are not given."""
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
        kinds = [kind for kind in KINDS if not (large and kind == "occlusion")]
        explained.append(explain(trained, graphs, i, target=error.output, importance=kinds))
    return explained


def errors_view(record: FinishedRun, count: int, graphs: GraphSet | None = None) -> dict[str, Any] | None:
    """What the page shows of the errors; where the graphs cannot be read, the reason and a list."""
    if not len(record.y) or not count:
        return None
    task = task_of(record.target)
    errors = task.errors(record.y, record.probability, record.target, count)
    places = [error.place for error in errors]
    view: dict[str, Any] = {"title": task.errors_title, "lead": "", "explained": [], "reason": "", "lines": []}
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
