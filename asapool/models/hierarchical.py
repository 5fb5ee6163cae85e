"""The paper's hierarchical architecture: convolve, pool, read out, level by level."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError
from asapool.kernels import Graph
from asapool.kernels.ratio import kept_count
from asapool.models.blocks import ConvBlock
from asapool.models.config import ModelConfig
from asapool.nn.asap import ASAPooling
from asapool.nn.baselines import Coarse, DiffPooling, SAGPooling, TopKPooling
from asapool.nn.semantics import semantics_named
from asapool.nn.step import PoolStep


class HierarchicalEncoder(nn.Module):
    """One row per graph: r = Σ_l readout(x^l), where x^l, A^l = pool(ReLU(conv(x^{l-1}, A^{l-1})), A^{l-1}).

    Readout is mean ‖ max. With `jumping` the readouts stand side by side instead of being added. The method "none"
    leaves the pooling out.
    """

    def __init__(self, config: ModelConfig, in_channels: int, typical_nodes: int | None) -> None:
        super().__init__()
        self.jumping, self.backend = config.jumping, config.backend
        self.out_channels = 2 * config.hidden * (config.levels if config.jumping else 1)
        widths = [in_channels] + [config.hidden] * (config.levels - 1)
        clusters = cluster_counts(config, typical_nodes) if config.method == "diffpool" else (0,) * config.levels
        self.convs = nn.ModuleList(ConvBlock(config, width) for width in widths)
        self.pools = nn.ModuleList(
            make_pool(config, width, ratio, K) for width, ratio, K in zip(widths, config.ratios, clusters, strict=True)
        )

    def forward(self, x: Tensor, graph: Graph) -> tuple[Tensor, Tensor | None]:
        """x (N, F) of a packed graph; returns r (B, out) and what is added to the loss (a scalar, None for nothing)."""
        summaries, penalty = [], None
        for step in self.steps(x, graph, last_edges=False):
            summaries.append(kernels.readout(step.x, step.ptr, backend=self.backend))
            if isinstance(step, Coarse) and step.penalty is not None:
                penalty = step.penalty if penalty is None else penalty + step.penalty
        r = torch.cat(summaries, dim=1) if self.jumping else torch.stack(summaries).sum(0)
        return r, penalty

    def steps(self, x: Tensor, graph: Graph, *, last_edges: bool = True) -> Iterator[PoolStep | Coarse]:
        """What every level's pooling did, level by level; while training nobody reads the edges of the last one."""
        last = len(self.convs) - 1
        for level, (conv, pool) in enumerate(zip(self.convs, self.pools, strict=True)):
            z = conv(x, graph)
            edges = level < last or last_edges
            step: PoolStep | Coarse
            if isinstance(pool, DiffPooling):
                step = pool.step(x, graph, edges=edges, z=z)  # both of DiffPool's networks read the input of the level
            elif isinstance(pool, (ASAPooling, TopKPooling, SAGPooling)):
                step = pool.step(z, graph, edges=edges)
            else:
                step = Coarse(z, graph.pattern.ptr, graph)
            yield step
            if step.after is not None:
                x, graph = step.x, step.after


def make_pool(config: ModelConfig, in_channels: int, ratio: float | int, clusters: int) -> nn.Module:
    """The pooling layer of one level; in_channels is the width of what comes into the level."""
    loops = semantics_named(config.semantics).loops
    if config.method == "topk":
        return TopKPooling(config.hidden, ratio, backend=config.backend)
    if config.method == "sagpool":
        return SAGPooling(config.hidden, ratio, loops=loops, backend=config.backend)
    if config.method == "diffpool":
        return DiffPooling(
            in_channels,
            clusters,
            conv=config.conv,
            loops=loops,
            link_weight=config.link_weight,
            entropy_weight=config.entropy_weight,
            backend=config.backend,
        )
    if config.method == "none":
        return nn.Identity()
    return ASAPooling(
        config.hidden,
        ratio,
        dropout=config.attention_dropout,
        hops=config.hops,
        attention=config.attention,
        master=config.master,
        fitness=config.fitness,
        aggregate=config.aggregate,
        soft_edges=config.soft_edges,
        max_neighbours=config.max_neighbours,
        semantics=config.semantics,
        backend=config.backend,
    )


def cluster_counts(config: ModelConfig, typical_nodes: int | None) -> tuple[int, ...]:
    """DiffPool's clusters per level, fixed whatever comes in: K_l = ⌈k_l K_{l-1}⌉, K_0 the size of a typical graph.

    >>> cluster_counts(ModelConfig(method="diffpool"), 39)
    (20, 10, 5)
    """
    if isinstance(typical_nodes, bool) or not isinstance(typical_nodes, int) or typical_nodes < 1:
        raise ConfigError(
            "diffpool has a fixed number of clusters, so build() needs typical_nodes, a whole number such as the mean "
            f"number of nodes of the training graphs, got {typical_nodes!r}"
        )
    counts, K = [], torch.tensor([typical_nodes], device="cpu")  # also where modules are made on "meta"
    for ratio in config.ratios:
        K = kept_count(K, ratio)
        counts.append(int(K))
    return tuple(counts)
