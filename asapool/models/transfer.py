"""Start from the weights of another model: its encoder always, its head where the shapes fit."""

from __future__ import annotations

from typing import NamedTuple

from torch import no_grad

from asapool.errors import ConfigError
from asapool.models.classifier import GraphModel


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
    own, theirs = model.state_dict(), source.state_dict()
    head: list[str] = []
    left: list[str] = []
    encoder = 0
    with no_grad():
        for name, value in own.items():
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
