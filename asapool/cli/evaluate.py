"""`asapool evaluate`: a model and labelled graphs in, its scores out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapool.cli import _options as o
from asapool.cli._notes import tell_missing, tell_skipped
from asapool.cli._output import note, show, working
from asapool.cli.train import number, score_rows

if TYPE_CHECKING:
    from asapool.data import Skipped


def evaluate(
    model: o.Model,
    source: Annotated[str, typer.Argument(help=o.SOURCE)],
    data_root: o.DataRoot = None,
    smiles: o.Smiles = None,
    target: o.Target = None,
    id_column: o.IdColumn = None,
    encoding: o.Encoding = None,
    skip_invalid: o.Skip = False,
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
        options: dict[str, Any] = {
            "data_root": data_root,
            "smiles": smiles,
            "target": target,
            "id_column": id_column,
            "encoding": encoding,
            "missing": missing,
        }
        found = p.predict_source(trained, source, labels=True, skip_invalid=skip_invalid, skipped=skipped, **options)
        for graphs, probability in found:
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
