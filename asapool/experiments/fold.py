"""One fold of a cross-validation: train, choose the epoch on the validation part, score on the test part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet, Split
from asapool.models import GraphModel, ModelConfig, checkpoint
from asapool.training.config import TrainConfig
from asapool.training.fitting import Fit, OnEpoch, fit
from asapool.training.new_model import new_model
from asapool.training.predictions import predict
from asapool.training.tasks import task_of
from asapool.training.trust import trust_of

if TYPE_CHECKING:
    from asapool.experiments.run import Run


@dataclass(frozen=True, kw_only=True)
class FoldResult:
    """The result of one fold."""

    fit: Fit
    validation: dict[str, Any] | None  # scores as plain data; None where the part is empty
    test: dict[str, Any] | None
    probability: npt.NDArray[np.floating[Any]]  # (G, C) of the test graphs, in the order of the split
    model: GraphModel  # with the weights of the best epoch


def fold_seed(seed: int, fold: int) -> int:
    """The seed of one training, so that the folds of a seed start from different weights.

    >>> fold_seed(8971, 0) != fold_seed(8971, 1)
    True
    """
    return int(np.random.SeedSequence([seed, fold]).generate_state(1)[0])


def train_fold(
    graphs: GraphSet, split: Split, model: ModelConfig, train: TrainConfig, seed: int, on_epoch: OnEpoch | None = None
) -> FoldResult:
    """Train a new model with this seed and score it; nothing but the arguments decides the numbers."""
    # one thread, however many trainings run side by side: the result must not depend on the number of jobs
    config = replace(train, seed=seed, threads=1)
    network = new_model(model, graphs, split.train, config)
    fitted = fit(network, graphs, split, config, on_epoch=on_epoch)
    probability = predict(network, graphs, split.test)
    val, test = graphs.y[split.val], graphs.y[split.test]
    task, target = task_of(graphs.target), graphs.target
    return FoldResult(
        fit=fitted,
        validation=task.score(val, predict(network, graphs, split.val), target) if len(val) else None,
        test=task.score(test, probability, target) | task.trivial_scores(graphs.y, split, target)
        if len(test)
        else None,
        probability=probability,
        model=network,
    )


def model_file(graphs: GraphSet, split: Split, run: Run, result: FoldResult) -> bytes:
    """The content of a model file, with what it takes to say how sure the answers are."""
    summary = {
        "train": run.train.to_dict() | {"seed": fold_seed(run.seed, run.fold)}, "best_epoch": result.fit.best_epoch,
        "epochs": len(result.fit.history), "validation": result.validation, "test": result.test, "name": graphs.name,
    }  # fmt: skip
    extra = {"trust": trust_of(result.model, graphs, split)}
    return checkpoint.to_bytes(
        result.model, recipe=graphs.recipe, summary=summary, fingerprint=graphs.fingerprint, extra=extra
    )
