"""The sizes that a model is built for, which the data decide and not the settings."""

from __future__ import annotations

from dataclasses import dataclass

from asapool.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """The sizes of a model's input and output.

    Args:
        in_channels: F, features of a node.
        num_classes: C, outputs of the model.
        typical_nodes: nodes of a typical graph, for methods with a fixed number of clusters.
        edge_channels: D, features of an edge; 0 = none.
        graph_channels: descriptors of a graph that the head reads; 0 = none.
    """

    in_channels: int
    num_classes: int
    typical_nodes: int | None = None
    edge_channels: int = 0
    graph_channels: int = 0

    def __post_init__(self) -> None:
        for name in ("in_channels", "num_classes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, got {value!r}")
        for name in ("edge_channels", "graph_channels"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigError(f"{name} must be a whole number of at least 0, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class LevelShape:
    """The sizes that one pooling layer is built for.

    Args:
        index: number of the level, from 0; its ratio is config.ratios[index].
        in_channels: features that come into the level; behind its convolution they are config.hidden.
        typical_nodes: nodes of a typical graph of the data set.
    """

    index: int = 0
    in_channels: int
    typical_nodes: int | None = None
