"""`asapool evaluate`: the scores of a model on labelled graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asapool.cli import _options as o
from asapool.cli._notes import ReadingNotes
from asapool.cli._output import note, show, working
from asapool.cli._scores import score_rows

if TYPE_CHECKING:
    from collections.abc import Iterator


def evaluate(
    model: o.Model,
    source: o.Source,
    data: o.LabelledOptions,
    json: o.Json = False,
) -> None:
    """Score a model on labelled graphs.

    Classes: accuracies, ROC AUC, PR AUC, calibration error and confusion matrix. Measured values: RMSE, MAE, R² and
    correlations. Yes/no tasks: the scores of each and their means.
    """
    from asapool.models import checkpoint
    from asapool.training import predictions as p

    trained = checkpoint.load(o.model_file(model))
    notes = ReadingNotes()
    prints: list[str] = []

    def watched() -> Iterator[p.Pair]:
        options = data.options()
        for graphs, probability in p.predict_source(trained, source, labels=True, on_reading=notes.add, **options):
            prints.append(graphs.fingerprint)
            yield graphs, probability

    try:
        with working(f"Predicting {source}"):
            scores = p.evaluate(watched(), trained.target, source)
    finally:
        notes.show()
    if prints == [trained.fingerprint]:
        note("the model was trained on these graphs, so the scores say little about new ones")
    for text in scores["warnings"]:
        note(f"Warning: {text}.")
    shown = {"graphs": scores["graphs"], **score_rows(scores, trained.target, scores["trivial"]["scores"])}
    show(scores, shown, json)
