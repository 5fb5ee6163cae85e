"""Builds the pooling layer of one level from a config, for each method of the package."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asapool.errors import ConfigError
from asapool.kernels import Graph
from asapool.kernels.ratio import kept_count
from asapool.models.config import LevelShape, ModelConfig
from asapool.models.methods import WIDEST
from asapool.nn.asap import ASAPooling
from asapool.nn.baselines import Coarse, DiffPooling, SAGPooling, TopKPooling
from asapool.nn.readout import GlobalAttentionPool, Set2SetPool, SortPool
from asapool.nn.semantics import semantics_named


def asap(config: ModelConfig, level: LevelShape) -> ASAPooling:
    """ASAP, with all its settings."""
    return ASAPooling(
        config.hidden,
        config.ratios[level.index],
        dropout=config.attention_dropout,
        hops=config.hops,
        attention=config.attention,
        assign=config.assign,
        master=config.master,
        fitness=config.fitness,
        aggregate=config.aggregate,
        soft_edges=config.soft_edges,
        max_neighbours=config.max_neighbours,
        semantics=config.semantics,
        backend=config.kernels,
    )


def topk(config: ModelConfig, level: LevelShape) -> TopKPooling:
    """TopK."""
    return TopKPooling(config.hidden, config.ratios[level.index], backend=config.kernels)


def sagpool(config: ModelConfig, level: LevelShape) -> SAGPooling:
    """SAGPool."""
    loops = semantics_named(config.semantics).loops
    return SAGPooling(config.hidden, config.ratios[level.index], loops=loops, backend=config.kernels)


def diffpool(config: ModelConfig, level: LevelShape) -> DiffPooling:
    """DiffPool, whose assignment is computed from the input of the level."""
    return DiffPooling(
        level.in_channels,
        cluster_counts(config, level.typical_nodes)[level.index],
        conv=config.conv,
        loops=semantics_named(config.semantics).loops,
        link_weight=config.link_weight,
        entropy_weight=config.entropy_weight,
        backend=config.kernels,
    )


class NoPooling(nn.Module):
    """Keep all nodes and edges."""

    def step(self, x: Tensor, graph: Graph, *, edges: bool = True) -> Coarse:
        """The same graph."""
        return Coarse(x, graph.pattern.ptr, graph)


def none(config: ModelConfig, level: LevelShape) -> NoPooling:
    """No pooling."""
    return NoPooling()


def set2set(config: ModelConfig, level: LevelShape) -> Set2SetPool:
    """Set2Set."""
    return Set2SetPool(config.hidden, config.set2set_steps)


def global_attention(config: ModelConfig, level: LevelShape) -> GlobalAttentionPool:
    """Global attention."""
    return GlobalAttentionPool(config.hidden, config.attention_transform)


def sortpool(config: ModelConfig, level: LevelShape) -> SortPool:
    """SortPool, which keeps as many nodes as fit into 256 numbers."""
    return SortPool(config.hidden, WIDEST // config.hidden, backend=config.kernels)


def cluster_counts(config: ModelConfig, typical_nodes: int | None) -> tuple[int, ...]:
    """DiffPool's number of clusters per level: K_l = ⌈k_l K_{l-1}⌉, where K_0 is the size of a typical graph.

    >>> cluster_counts(ModelConfig(method="diffpool"), 39)
    (20, 10, 5)
    """
    if isinstance(typical_nodes, bool) or not isinstance(typical_nodes, int) or typical_nodes < 1:
        raise ConfigError(
            "diffpool has a fixed number of clusters, so build() needs typical_nodes, a whole number such as the mean "
            f"number of nodes of the training graphs, got {typical_nodes!r}"
        )
    counts, K = [], torch.tensor([typical_nodes], device="cpu")  # even if modules are created on "meta"
    for ratio in config.ratios:
        K = kept_count(K, ratio)
        counts.append(int(K))
    return tuple(counts)
