"""Training: from labelled graphs to a model, its scores, and predictions.

    TrainConfig, fit   train a model        predict, score                  predictions and their scores
    start, resume      a run in a folder

Names are imported on first use, so that modules without torch (the settings) do not load it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asapool.training.config import TrainConfig
    from asapool.training.fitting import Fit, fit
    from asapool.training.metrics import Scores, score
    from asapool.training.predictions import predict
    from asapool.training.run import resume, start
    from asapool.training.settings import RunSettings, resolve, resolve_reading
    from asapool.training.state import Epoch

_HOME = {
    "Epoch": "state",
    "Fit": "fitting",
    "RunSettings": "settings",
    "Scores": "metrics",
    "TrainConfig": "config",
    "fit": "fitting",
    "predict": "predictions",
    "resolve": "settings",
    "resolve_reading": "settings",
    "resume": "run",
    "score": "metrics",
    "start": "run",
}
__all__ = [
    "Epoch",
    "Fit",
    "RunSettings",
    "Scores",
    "TrainConfig",
    "fit",
    "predict",
    "resolve",
    "resolve_reading",
    "resume",
    "score",
    "start",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"asapool.training.{_HOME[name]}"), name)
    raise AttributeError(f"module 'asapool.training' has no attribute {name!r}")
