"""`asapool evaluate`: a model and labelled graphs in, its scores out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asapool.cli import _options as o
from asapool.cli._notes import tell_missing, tell_skipped
from asapool.cli._output import note, show, working
from asapool.cli.train import number, score_rows

if TYPE_CHECKING:
    from asapool.data import Skipped


def evaluate(
    model: o.Model,
    source: o.Source,
    data: o.LabelledOptions,
    json: o.Json = False,
) -> None:
    """Score a model on labelled graphs: accuracy, balanced accuracy, ROC-AUC, PR-AUC, calibration error, confusion."""
    from asapool.models import checkpoint
    from asapool.training import predictions as p

    trained = checkpoint.load(o.model_file(model))
    skipped: list[Skipped] = []
    missing: dict[str, int] = {}
    prints: list[str] = []

    def watched() -> p.Pairs:
        options = data.options()
        for graphs, probability in p.predict_source(
            trained, source, labels=True, skipped=skipped, missing=missing, **options
        ):
            prints.append(graphs.fingerprint)
            yield graphs, probability

    try:
        with working(f"Predicting {source}"):
            scores = p.evaluate(watched(), trained.classes, source)
    finally:
        tell_skipped(skipped)
        tell_missing(missing)
    if prints == [trained.fingerprint]:
        note("These are the graphs the model was trained on: the score says little about new ones.")
    shown = {"graphs": scores.graphs, **score_rows(scores.to_dict()), "majority class": number(scores.majority)}
    shown = {name.replace("test accuracy", "accuracy"): cell for name, cell in shown.items()}
    show(scores, shown, json)
