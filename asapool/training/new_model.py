"""The model that a training begins with: fresh weights for the sizes of the data, or those of another model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from asapool.data import GraphSet
from asapool.data.recipe import MAKES_X
from asapool.errors import ConfigError
from asapool.models import GraphModel, ModelConfig, build, checkpoint
from asapool.models.batches import edge_channels, graph_channels
from asapool.models.transfer import Taken, take_weights
from asapool.training.config import TrainConfig


def new_model(config: ModelConfig, graphs: GraphSet, train: npt.ArrayLike, settings: TrainConfig) -> GraphModel:
    """Make the model for some graphs.

    Args:
        config: what kind of model.
        graphs: the whole set, whose features and target decide the sizes.
        train: numbers of the training graphs.
        settings: of the training: the seed, and the model to start from.

    Returns:
        The model before its training.
    """
    model = build(
        config, graphs.num_features, graphs.target.outputs, seed=settings.seed,
        typical_nodes=typical_nodes(graphs, train), edge_channels=edge_channels(graphs),
        graph_channels=graph_channels(graphs),
    )  # fmt: skip
    if settings.init_from is not None:
        model.origin = start_from(model, graphs, settings.init_from).sentence(settings.init_from)
    return model


def start_from(model: GraphModel, graphs: GraphSet, path: str) -> Taken:
    """Copy the weights of a model file into a new model.

    Args:
        model: the new model, which is changed.
        graphs: what it will be trained on.
        path: a model file or run folder.

    Returns:
        What was taken.
    """
    source = checkpoint.load(path)
    ours, theirs = dict(graphs.recipe), dict(source.recipe)
    for key in MAKES_X if ours and theirs else ():
        if ours.get(key) != theirs.get(key):
            raise ConfigError(
                f"{path}: was trained on node features made with another {key}, so its weights mean something else for "
                f"{graphs.name}. Start from a model of graphs with the same features"
            )
    return take_weights(model, source.model, path)


def typical_nodes(graphs: GraphSet, train: npt.ArrayLike) -> int:
    """Mean number of nodes of the training graphs: what diffpool's number of clusters follows from."""
    sizes = np.diff(graphs.ptr)[np.asarray(train, dtype=np.int64)]
    return max(1, round(float(sizes.mean()))) if len(sizes) else 1
