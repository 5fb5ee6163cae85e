"""Graph isomorphism networks: GIN, and GINE with edge features, weighted as pooled graphs are."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, InputError, choose
from asapool.kernels import Graph
from asapool.nn.inputs import as_graph
from asapool.nn.norms import NodeNorm


class _Network(nn.Module):
    """What GIN and GINE share: ε and the two-layer network h."""

    def __init__(
        self, in_channels: int, out_channels: int, *, train_eps: bool, batch_norm: bool, relu: bool, backend: str
    ) -> None:
        super().__init__()
        if in_channels < 1 or out_channels < 1:
            raise ConfigError(
                f"{type(self).__name__} needs at least one channel on each side, got {in_channels} and {out_channels}"
            )
        self.in_channels, self.out_channels, self.relu = in_channels, out_channels, relu
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.eps = nn.Parameter(torch.zeros(())) if train_eps else None
        self.first = nn.Linear(in_channels, out_channels)
        self.norm = NodeNorm(out_channels) if batch_norm else None
        self.second = nn.Linear(out_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw all weights anew; ε = 0."""
        self.first.reset_parameters()
        self.second.reset_parameters()
        if self.norm is not None:
            self.norm.reset_parameters()
        if self.eps is not None:
            nn.init.zeros_(self.eps)

    def transform(self, y: Tensor, graph: Graph) -> Tensor:
        """h(y), (N, out)."""
        y = self.first(y)
        y = self.second((y if self.norm is None else self.norm(y, graph.pattern.ptr)).relu())
        return y.relu() if self.relu else y

    def extra_repr(self) -> str:
        """What print shows."""
        eps = ", train_eps=True" if self.eps is not None else ""
        return f"{self.in_channels}, {self.out_channels}, relu={self.relu}{eps}"


class GIN(_Network):
    """Sum the neighbourhood, then a small network: x'_i = h((1 + ε) x_i + Σ_j A_ij x_j).

    h = linear, ReLU, linear, with batch normalisation before the ReLU if wanted. "How Powerful are Graph Neural
    Networks?" (ICLR 2019) has both, `GIN(..., train_eps=True, batch_norm=True)`; the default is its GIN-0 without
    normalisation.

    Args:
        in_channels: width of x.
        out_channels: width of the result, and of the hidden layer of h.
        relu: put one more ReLU behind.
        train_eps: learn ε, from 0; otherwise ε = 0.
        batch_norm: normalise over all nodes of the batch, before the ReLU of h.
        backend: see asapool.kernels.

    >>> layer = GIN(1, 1)
    >>> for part in (layer.first, layer.second): _ = torch.nn.init.ones_(part.weight), torch.nn.init.zeros_(part.bias)
    >>> layer(torch.tensor([[1.], [5.], [2.]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).view(-1).tolist()
    [6.0, 8.0, 7.0]
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, relu: bool = False, train_eps: bool = False,
        batch_norm: bool = False, backend: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, train_eps=train_eps, batch_norm=batch_norm, relu=relu, backend=backend
        )

    def forward(self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None) -> Tensor:
        """x (N, in) and edges (2, E) with weights (E,), or a packed graph; returns (N, out)."""
        x, graph = as_graph(x, edge_index, edge_weight, self.in_channels, self.backend)
        y = kernels.sum_neighbours(graph.pattern, graph.weight, x, self.eps, backend=self.backend)
        return self.transform(y, graph)


class GINE(_Network):
    """GIN with edge features in every message: x'_i = h((1 + ε) x_i + Σ_j A_ij ReLU(x_j + W e_ij)).

    "Strategies for Pre-training Graph Neural Networks" (ICLR 2020), with edge weights A_ij, so that it works on pooled
    graphs too; h as in GIN. torch_geometric's GINEConv(edge_dim=D) gives the same numbers where A_ij = 1 and the bias
    of its `lin` is 0.

    Args:
        in_channels: width of x.
        out_channels: width of the result, and of the hidden layer of h.
        edge_channels: D, the width of the edge features.
        relu: put one more ReLU behind.
        train_eps: learn ε, from 0; otherwise ε = 0.
        batch_norm: normalise over all nodes of the batch, before the ReLU of h.
        backend: see asapool.kernels.

    >>> layer = GINE(1, 1, edge_channels=1)
    >>> for part in (layer.first, layer.second): _ = torch.nn.init.ones_(part.weight), torch.nn.init.zeros_(part.bias)
    >>> _ = torch.nn.init.ones_(layer.edge.weight)
    >>> edges, bonds = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[2.], [-9.]])
    >>> layer(torch.tensor([[1.], [5.]]), edges, edge_attr=bonds).view(-1).tolist()  # 1 + max(5 − 9, 0), 5 + (1 + 2)
    [1.0, 8.0]
    """

    def __init__(
        self, in_channels: int, out_channels: int, edge_channels: int, *, relu: bool = False, train_eps: bool = False,
        batch_norm: bool = False, backend: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, train_eps=train_eps, batch_norm=batch_norm, relu=relu, backend=backend
        )
        if edge_channels < 1:
            raise ConfigError(f"GINE needs at least one edge feature, got {edge_channels}; use GIN for graphs without")
        self.edge_channels = edge_channels
        self.edge = nn.Linear(edge_channels, in_channels, bias=False)

    def reset_parameters(self) -> None:
        """Draw all weights anew; ε = 0."""
        super().reset_parameters()
        self.edge.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None, *,
        edge_attr: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """x (N, in), edges (2, E) with weights (E,) and features (E, D), or a packed graph that has them: (N, out)."""
        x, graph = as_graph(x, edge_index, edge_weight, self.in_channels, self.backend, edge_attr)
        e = graph.edge_attr
        if e is None or e.size(-1) != self.edge_channels:
            given = "none" if e is None else f"{e.size(-1)}"
            raise InputError(f"GINE was made for {self.edge_channels} edge features, the graph has {given}")
        W = self.edge.weight
        y = kernels.sum_messages(graph.pattern, graph.weight, x, self.eps, e, W, backend=self.backend)
        return self.transform(y, graph)

    def extra_repr(self) -> str:
        """What print shows."""
        return f"{super().extra_repr()}, edge_channels={self.edge_channels}"
