"""The model at the start of training: new weights for the sizes of the data, or those of another model."""

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
from asapool.models.checkpoint import LoadedModel
from asapool.models.ensemble import EnsembleModel
from asapool.training.config import TrainConfig


class Taken(NamedTuple):
    """The weights that were copied from another model.

    Args:
        encoder: number of weight tensors of the encoder.
        head: names of the weights of the head that were copied.
        left: names of those that are newly initialised, because their shapes differ.
    """

    encoder: int
    head: tuple[str, ...]
    left: tuple[str, ...]

    def sentence(self, source: str) -> str:
        """A description for the user."""
        if not self.left:
            return f"all weights were copied from {source}"
        head = f" and {', '.join(self.head)}" if self.head else ""
        new = ", ".join(self.left)
        return f"copied the encoder ({self.encoder} tensors){head} from {source}; newly initialised: {new}"


def take_weights(model: GraphModel, source: GraphModel, where: str = "the other model") -> Taken:
    """Copy weights into a new model.

    Args:
        model: the new model, which is changed.
        source: a trained model with the same encoder; its head may differ.
        where: the source, for messages.

    Returns:
        What was copied.
    """
    if not model.head_layers or model.config.method != source.config.method:
        raise ConfigError(
            f"{where}: contains a model of the method {source.config.method!r}, and {model.config.method!r} "
            "cannot start from its weights. Leave out --method, or choose another model"
        )
    new, trained = model.state_dict(), source.state_dict()
    head: list[str] = []
    left: list[str] = []
    encoder = 0
    with no_grad():
        for name, value in new.items():
            if name.startswith("descriptors."):
                continue  # descriptors are standardised on the new training graphs
            fits = name in trained and trained[name].shape == value.shape
            if fits:
                value.copy_(trained[name])
            elif not model.is_head(name):
                shape = tuple(trained[name].shape) if name in trained else "none"
                raise ConfigError(
                    f"{where}: {name} has the shape {shape}, but this model needs {tuple(value.shape)}. Use the model "
                    "settings and node features of the model to start from"
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
        settings: of training: the seed, and the model to start from.

    Returns:
        The untrained model.
    """
    model = build(
        config, graphs.num_features, graphs.target.outputs, seed=settings.seed,
        typical_nodes=typical_nodes(graphs, train), edge_channels=edge_channels(graphs),
        graph_channels=graph_channels(graphs),
    )  # fmt: skip
    if settings.init_from is not None:
        model.origin = start_from(model, graphs, settings.init_from).sentence(settings.init_from)
    return model


def load_start(path: str) -> LoadedModel:
    """The model to start from; an ensemble is refused."""
    source = checkpoint.load(path)
    if isinstance(source.model, EnsembleModel):
        raise ConfigError(
            f"{path}: contains an ensemble of {len(source.model.models)} models, but training starts from one model. "
            "Use the model of a member, in members/models of its folder"
        )
    return source


def start_from(model: GraphModel, graphs: GraphSet, path: str) -> Taken:
    """Copy the weights of a model file into a new model.

    Args:
        model: the new model, which is changed.
        graphs: what it will be trained on.
        path: a model file or run folder.

    Returns:
        What was copied.
    """
    source = load_start(path)
    new, trained = dict(graphs.recipe), dict(source.recipe)
    for key in MAKES_X if new and trained else ():
        if new.get(key) != trained.get(key):
            raise ConfigError(
                f"{path}: was trained on node features made with another {key}, so its weights do not fit "
                f"{graphs.name}. Start from a model of graphs with the same features"
            )
    return take_weights(model, source.model, path)


def typical_nodes(graphs: GraphSet, train: npt.ArrayLike) -> int:
    """Mean number of nodes of the training graphs, from which diffpool derives its number of clusters."""
    sizes = np.diff(graphs.ptr)[np.asarray(train, dtype=np.int64)]
    return max(1, round(float(sizes.mean()))) if len(sizes) else 1
