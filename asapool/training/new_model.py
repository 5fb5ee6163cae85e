"""The model that a training begins with: fresh weights for the sizes of the data, or those of another model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import no_grad

from asapool.data import GraphSet
from asapool.data.reading import MAKES_X
from asapool.errors import ConfigError
from asapool.models import GraphModel, ModelConfig, build, checkpoint
from asapool.models.batches import edge_channels, graph_channels
from asapool.training.config import TrainConfig


class Taken(NamedTuple):
    """What was taken from another model.

    Args:
        encoder: weights of the encoder, how many tensors.
        head: names of the weights of the head that were taken.
        left: names of those that start anew, because they have another shape.
    """

    encoder: int
    head: tuple[str, ...]
    left: tuple[str, ...]

    def sentence(self, source: str) -> str:
        """What happened, for a user."""
        if not self.left:
            return f"all weights start from those of {source}"
        kept = f"{', '.join(self.head)} as well; " if self.head else ""
        return f"the encoder starts from that of {source} ({self.encoder} tensors); {kept}{', '.join(self.left)} anew"


def take_weights(model: GraphModel, source: GraphModel, where: str = "the other model") -> Taken:
    """Copy weights into a new model.

    Args:
        model: the new one, which is changed.
        source: a trained one with the same encoder; its head may differ.
        where: the source, for messages.

    Returns:
        What was taken.
    """
    if not model.head_layers or model.config.method != source.config.method:
        raise ConfigError(
            f"{where}: holds a model of the method {source.config.method!r}, and the weights of "
            f"{model.config.method!r} cannot start from it. Leave --method out, or choose another model"
        )
    ours, theirs = model.state_dict(), source.state_dict()
    head: list[str] = []
    left: list[str] = []
    encoder = 0
    with no_grad():
        for name, value in ours.items():
            if name.startswith("descriptors."):
                continue  # the scale of descriptors is that of the new training graphs
            fits = name in theirs and theirs[name].shape == value.shape
            if fits:
                value.copy_(theirs[name])
            elif not model.is_head(name):
                shape = tuple(theirs[name].shape) if name in theirs else "none"
                raise ConfigError(
                    f"{where}: {name} has the shape {shape}, and this model needs {tuple(value.shape)}. Its settings "
                    "and the features of the graphs must be those of the model to start from"
                )
            if model.is_head(name):
                (head if fits else left).append(name)
            else:
                encoder += 1
    return Taken(encoder, tuple(head), tuple(left))


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
