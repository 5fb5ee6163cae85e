"""The networks `asap+` and `none+`: normalised GIN blocks, readouts at every level, and subtree counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from asapool.errors import ConfigError, InputError
from asapool.kernels import DenseGraph, Graph
from asapool.models.classifier import GraphModel
from asapool.models.config import LevelShape, ModelConfig, ModelShape
from asapool.models.encoders import HashedDropout, split_graph_attr
from asapool.models.pools import asap
from asapool.nn.convolutions import GIN, GINE, convolution
from asapool.nn.counts import WLCounts
from asapool.nn.hooks import apply_linear
from asapool.nn.norms import NodeNorm, normalisation
from asapool.nn.readout import Readout
from asapool.nn.semantics import semantics_named
from asapool.nn.step import PoolStep


class PlusBlock(nn.Module):
    """x' = x + dropout(ReLU(norm(conv(x, graph)))); without `residual`, or if the width changes, x is not added.

    The convolution "gin" is GINE if the graphs have edge features.
    """

    def __init__(self, config: ModelConfig, in_channels: int, edge_channels: int) -> None:
        super().__init__()
        inner = config.norm == "batch"
        self.conv: nn.Module
        if config.conv == "gin" and edge_channels:
            self.conv = GINE(
                in_channels, config.hidden, edge_channels, train_eps=True, batch_norm=inner, backend=config.kernels
            )
        elif config.conv == "gin":
            self.conv = GIN(in_channels, config.hidden, train_eps=True, batch_norm=inner, backend=config.kernels)
        else:
            loops = semantics_named(config.semantics).loops
            self.conv = convolution(config.conv, in_channels, config.hidden, loops=loops, backend=config.kernels)
        self.norm = normalisation(config.norm, config.hidden, backend=config.kernels)
        self.dropout = HashedDropout(config.conv_dropout, config.kernels)
        self.residual, self.backend = config.residual and in_channels == config.hidden, config.kernels

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """x (N, in) of a packed graph; returns (N, hidden)."""
        y, ptr, residual = self.conv(x, graph), graph.pattern.ptr, x if self.residual else None
        if isinstance(self.norm, NodeNorm):
            p = self.dropout.p if self.training else 0.0
            return self.norm.activated(y, ptr, p=p, residual=residual, backend=self.backend)
        y = cast(Tensor, self.dropout(self.norm(y, ptr).relu()))
        return y if residual is None else residual + y


class PlusEncoder(nn.Module):
    """One row per graph: r = readout(x) ‖ readout(x⁰) ‖ … ‖ readout(x^L).

    x⁰ = blocks(x, A), x^l, A^l = pool(x^{l-1}, A^{l-1}) and then x^l = blocks(x^l, A^l). Without `level0` the readouts
    of x and x⁰ are left out; the method "none+" leaves the pooling out. Sums are transformed to sign(s) log(1 + |s|).
    """

    def __init__(
        self, config: ModelConfig, shape: ModelShape, make_pool: Callable[[LevelShape], nn.Module] | None
    ) -> None:
        super().__init__()
        edges, width = shape.edge_channels if config.edge_features else 0, config.hidden
        self.level0 = config.level0
        self.before = nn.ModuleList(
            PlusBlock(config, width if k else shape.in_channels, edges) for k in range(config.first_convs)
        )
        levels = [
            LevelShape(index=k, in_channels=width, typical_nodes=shape.typical_nodes) for k in range(config.levels)
        ]
        self.pools = nn.ModuleList([] if make_pool is None else [make_pool(level) for level in levels])
        self.after = nn.ModuleList(
            nn.ModuleList(PlusBlock(config, width, edges) for _ in range(config.level_convs)) for _ in levels
        )
        self.readout = Readout(config.readouts, backend=config.kernels)
        self.sums = config.readouts.index("sum") if "sum" in config.readouts else None
        channels = [shape.in_channels, width] * config.level0 + [width] * config.levels
        self.out_channels = len(config.readouts) * sum(channels)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """x (N, F) of a packed graph; returns r (B, out)."""
        read = [(x, graph), *self.levels(x, graph)]
        return torch.cat([self._read(*level) for level in (read if self.level0 else read[2:])], dim=1)

    def _read(self, x: Tensor, graph: Graph) -> Tensor:
        r: Tensor = self.readout(x, ptr=graph.pattern.ptr)
        if self.sums is None:
            return r
        parts = list(torch.split(r, x.size(-1), dim=1))
        s = parts[self.sums]
        parts[self.sums] = s.sign() * s.abs().log1p()  # graph sizes, and so sums, vary by orders of magnitude
        return torch.cat(parts, dim=1)

    def levels(self, x: Tensor, graph: Graph, steps: list[PoolStep] | None = None) -> Iterator[tuple[Tensor, Graph]]:
        """x^l and its graph, level by level from 0; the results of pooling are appended to `steps`."""
        for block in self.before:
            x = block(x, graph)
        yield x, graph
        for level, blocks in enumerate(self.after):
            if len(self.pools):
                pool: Any = self.pools[level]
                step: PoolStep = pool.step(x, graph)
                assert step.after is not None
                if steps is not None:
                    steps.append(step)
                x, graph = step.x, step.after
            for block in cast(nn.ModuleList, blocks):
                x = block(x, graph)
            yield x, graph

    def steps(self, x: Tensor, graph: Graph) -> Iterator[PoolStep]:
        """The result of every level's pooling, finest first."""
        steps: list[PoolStep] = []
        for _ in self.levels(x, graph, steps):
            pass
        yield from steps


class PlusModel(GraphModel):
    """logits = W₂ dropout(ReLU(W₁ dropout(v))), v = norm(r) ‖ c ‖ d, with c = ReLU(norm(V dropout(log(1 + counts)))).

    With `readout_bound` b, norm(r) is clipped to [−b, b]. Without it, a feature that no training graph has would be
    divided by the root of the ε of the batch norm, and one such atom could decide the answer.

    The counts "wl" are computed from the graph; those of "ecfp" come with the batch as graph_attr (B, count_buckets),
    followed by the descriptors d.

    Args:
        config: the settings.
        shape: the sizes of input and output.
        make_pool: returns the pooling layer of a level; None = the network does not pool.
    """

    head_layers = ("lin1", "lin2", "readout_dropout", "dropout")

    def __init__(
        self, config: ModelConfig, shape: ModelShape, make_pool: Callable[[LevelShape], nn.Module] | None = None
    ) -> None:
        super().__init__(config, shape)
        with_edges = config.edge_features and shape.edge_channels > 0
        with_graphs = config.counts == "ecfp" or shape.graph_channels > 0
        self.reads = ("edge_attr",) * with_edges + ("graph_attr",) * with_graphs
        self.encoder = PlusEncoder(config, shape, make_pool)
        width, hidden = self.encoder.out_channels, config.hidden
        self.norm = NodeNorm(width)
        self.wl = None
        if config.counts == "wl":
            self.wl = WLCounts(config.count_depth, config.count_buckets, backend=config.kernels)
        self.count_lin = None if config.counts == "none" else nn.Linear(config.count_buckets, hidden)
        self.count_dropout = HashedDropout(config.count_dropout, config.kernels)
        self.count_norm = None if config.counts == "none" else NodeNorm(hidden)
        counted = 0 if config.counts == "none" else hidden
        self.lin1 = nn.Linear(width + counted + shape.graph_channels, 2 * hidden)
        self.readout_dropout = HashedDropout(config.readout_dropout, config.kernels)
        self.dropout = HashedDropout(config.dropout, config.kernels)
        self.lin2 = nn.Linear(2 * hidden, shape.num_classes)

    def forward(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, *,
        edge_attr: Tensor | None = None, graph_attr: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """The logits (B, C)."""
        logits = self.grouped(x, ptr, rowptr, col, weight, edge_attr=self._edges(edge_attr), graph_attr=graph_attr)
        if logits is not None:
            return logits
        return self.packed(x, ptr, rowptr, col, weight, edge_attr=edge_attr, graph_attr=graph_attr)

    def packed(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> Tensor:
        """The logits (B, C) of a packed batch, computed packed."""
        return self.logits_from(self.embed(x, ptr, rowptr, col, weight, **more))

    def padded(self, x: Tensor, graph: DenseGraph, *, graph_attr: Tensor | None = None) -> Tensor:
        """The logits (B, C) of a padded batch, x (B, N, F)."""
        r = self._normalised(self.encoder(x, graph))
        return self.logits_from(self._with_extras(r, graph_attr, None if self.wl is None else self.wl.padded(x, graph)))

    def embed(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, **more: Any
    ) -> Tensor:
        """The vector of every graph, v = norm(r) ‖ c ‖ d (B, W)."""
        edge_attr = self._edges(more.get("edge_attr"))
        r = self._normalised(self.encoder(x, self.pack(x, ptr, rowptr, col, weight, edge_attr)))
        counts = None if self.wl is None else self.wl(x, ptr, rowptr, col, edge_attr)
        return self._with_extras(r, more.get("graph_attr"), counts)

    def _normalised(self, r: Tensor) -> Tensor:
        """norm(r), within the bound if there is one."""
        y = self.norm.activated(r, relu=False, backend=self.config.kernels)
        bound = self.config.readout_bound
        return y.clamp(-bound, bound) if bound else y

    def _with_extras(self, r: Tensor, graph_attr: Tensor | None, counts: Tensor | None) -> Tensor:
        """The readouts, followed by the counts (WL or ECFP) and the descriptors that the model reads."""
        parts, d = [r], r
        if "graph_attr" in self.reads:
            buckets = self.config.count_buckets if self.config.counts == "ecfp" else 0
            given, d = split_graph_attr(graph_attr, r.size(0), buckets, self.shape.graph_channels)
            counts = given.to(r.dtype) if buckets else counts
        if self.count_lin is not None and self.count_norm is not None and counts is not None:
            c = apply_linear(self.count_lin, self.count_dropout(counts.log1p()), self.config.kernels)
            parts.append(self.count_norm.activated(c, backend=self.config.kernels))
        if self.descriptors is not None:
            parts.append(self.descriptors(d).to(r.dtype))
        return torch.cat(parts, dim=1)

    def logits_from(self, vectors: Tensor) -> Tensor:
        """The logits (B, C) of the vectors that `embed` returns."""
        h = apply_linear(self.lin1, self.readout_dropout(vectors), self.config.kernels).relu()
        logits: Tensor = self.lin2(self.dropout(h))
        return logits

    def hierarchy(
        self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None, *,
        edge_attr: Tensor | None = None, graph_attr: Tensor | None = None,
    ) -> list[PoolStep]:  # fmt: skip
        """Every level's pooling, finest first: the clusters, which were kept, and the pooled graph."""
        if not self.encoder.pools:
            raise ConfigError(
                f"the method {self.config.method!r} does not pool, so it has no hierarchy of clusters. Use 'asap+'"
            )
        return list(self.encoder.steps(x, self.pack(x, ptr, rowptr, col, weight, self._edges(edge_attr))))

    def _edges(self, edge_attr: Tensor | None) -> Tensor | None:
        """The edge features if the model was built for them, else None."""
        if "edge_attr" not in self.reads:
            return None
        if edge_attr is None or edge_attr.dim() != 2 or edge_attr.size(1) != self.shape.edge_channels:
            given = "none" if edge_attr is None else str(tuple(edge_attr.shape))
            raise InputError(
                f"edge_attr must have the shape (edges, {self.shape.edge_channels}) that the model was built for, "
                f"got {given}"
            )
        return edge_attr


def asap_plus(config: ModelConfig, shape: ModelShape) -> PlusModel:
    """The network with ASAP."""
    return PlusModel(config, shape, partial(asap, config))


def none_plus(config: ModelConfig, shape: ModelShape) -> PlusModel:
    """The network without pooling."""
    return PlusModel(config, shape)
