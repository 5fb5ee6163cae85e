"""One fold of a cross-validation: train, choose the epoch on the validation part, score on the test part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet, Split
from asapool.models import ModelConfig, build
from asapool.models.batches import edge_channels
from asapool.training.config import TrainConfig
from asapool.training.fitting import Fit, OnEpoch, fit, typical_nodes
from asapool.training.predictions import predict
from asapool.training.tasks import task_of


@dataclass(frozen=True, kw_only=True)
class FoldResult:
    """The result of one fold."""

    fit: Fit
    validation: dict[str, Any]  # Scores as plain data
    test: dict[str, Any]
    probability: npt.NDArray[np.floating[Any]]  # (G, C) of the test graphs, in the order of the split


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
    size = typical_nodes(graphs, split.train)
    network = build(
        model, graphs.num_features, graphs.target.outputs, seed=seed, typical_nodes=size,
        edge_channels=edge_channels(graphs),
    )  # fmt: skip
    fitted = fit(network, graphs, split, config, on_epoch=on_epoch)
    probability = predict(network, graphs, split.test)
    task, target = task_of(graphs.target), graphs.target
    return FoldResult(
        fit=fitted,
        validation=task.score(graphs.y[split.val], predict(network, graphs, split.val), target),
        test=task.score(graphs.y[split.test], probability, target) | task.trivial_scores(graphs.y, split, target),
        probability=probability,
    )
