"""Convolutions by name: GCN (Eq. 1 of the paper), GIN, GINE and GraphSAGE, all with edge weights for pooled graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, InputError, choose
from asapool.kernels import Graph, Loops
from asapool.nn.hooks import apply_linear, is_plain
from asapool.nn.inputs import as_graph, check_channels
from asapool.nn.norms import NodeNorm


class GCN(nn.Module):
    """Average each node with its neighbours after a linear map: X' = σ(D̂^-½ Â D̂^-½ X W + b), D̂_ii = Σ_j Â_ij.

    It loads state dicts of torch_geometric's GCNConv, also of versions before 1.7, which stored `weight` as (in, out).

    Args:
        in_channels: features per node.
        out_channels: features per node of the result.
        bias: whether to add b.
        relu: whether σ is max(·, 0); otherwise it is the identity.
        loops: "add" is the paper's Â = A + I; "fill" adds 1 only if the diagonal entry is missing, as in GCNConv.
        backend: see asapool.kernels.

    >>> layer = GCN(2, 3)
    >>> layer(torch.ones(2, 2), torch.tensor([[0, 1], [1, 0]])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, bias: bool = True, relu: bool = False, loops: Loops = "add",
        backend: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__()
        check_channels("GCN", in_channels, out_channels)
        self.in_channels, self.out_channels, self.relu = in_channels, out_channels, relu
        self.loops: Loops = "add" if choose("loops", loops, ("add", "fill")) == "add" else "fill"
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot weights, zero bias."""
        nn.init.xavier_uniform_(self.lin.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None, *, weighted: bool = True
    ) -> Tensor:
        """x (N, in) and edges (2, E) with weights (E,), or a packed graph; returns (N, out).

        With a packed graph, `weighted=False` gives every entry the weight 1.
        """
        x, graph = as_graph(x, edge_index, edge_weight, self.in_channels, self.backend)
        if not weighted:
            return self.compare(self.project(x), graph, weighted=False)
        fused = kernels.fused_layers(self.backend, x, graph.weight, self.lin.weight)
        if fused is not None and is_plain(self.lin):
            n = kernels.gcn_weights(graph, self.loops, backend=self.backend)
            y: Tensor = fused.convolve(graph.pattern, n, x, self.lin.weight, self.bias, self.relu)
            return y
        if self.in_channels >= self.out_channels:
            return self.compare(self.project(x), graph)
        # propagate the narrower of input and output
        n = kernels.gcn_weights(graph, self.loops, backend=self.backend)
        h = self.project(kernels.propagate(graph.pattern, n, x, backend=self.backend))
        if self.relu and self.bias is not None:
            return kernels.activate(h, self.bias, backend=self.backend)
        h = h if self.bias is None else h + self.bias
        return h.relu() if self.relu else h

    def project(self, x: Tensor) -> Tensor:
        """x W, (N, out)."""
        out: Tensor = self.lin(x)
        return out

    def compare(self, u: Tensor, graph: Graph, *, weighted: bool = True) -> Tensor:
        """X' (N, out) from the projection."""
        if weighted:
            n = kernels.gcn_weights(graph, self.loops, backend=self.backend)
        else:
            n = kernels.normalise(graph.pattern, graph.pattern.ones(graph.weight.dtype), backend=self.backend)
        return kernels.propagate(graph.pattern, n, u, self.bias, self.relu, backend=self.backend)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        if f"{prefix}weight" in state_dict and f"{prefix}lin.weight" not in state_dict:
            state_dict[f"{prefix}lin.weight"] = state_dict.pop(f"{prefix}weight").t().clone()
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.in_channels}, {self.out_channels}, loops={self.loops!r}, relu={self.relu}"


class _Network(nn.Module):
    """Base class of GIN and GINE: ε and the two-layer network h."""

    def __init__(
        self, in_channels: int, out_channels: int, *, train_eps: bool, batch_norm: bool, relu: bool, backend: str
    ) -> None:
        super().__init__()
        check_channels(type(self).__name__, in_channels, out_channels)
        self.in_channels, self.out_channels, self.relu = in_channels, out_channels, relu
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.eps = nn.Parameter(torch.zeros(())) if train_eps else None
        self.first = nn.Linear(in_channels, out_channels)
        self.norm = NodeNorm(out_channels) if batch_norm else None
        self.second = nn.Linear(out_channels, out_channels)

    def reset_parameters(self) -> None:
        """Reinitialise all weights; ε = 0."""
        self.first.reset_parameters()
        self.second.reset_parameters()
        if self.norm is not None:
            self.norm.reset_parameters()
        if self.eps is not None:
            nn.init.zeros_(self.eps)

    def transform(self, y: Tensor, graph: Graph) -> Tensor:
        """h(y), (N, out)."""
        y = apply_linear(self.first, y, self.backend)
        y = y.relu() if self.norm is None else self.norm.activated(y, graph.pattern.ptr, backend=self.backend)
        y = apply_linear(self.second, y, self.backend)
        return y.relu() if self.relu else y

    def extra_repr(self) -> str:
        """The settings that print shows."""
        eps = ", train_eps=True" if self.eps is not None else ""
        return f"{self.in_channels}, {self.out_channels}, relu={self.relu}{eps}"


class GIN(_Network):
    """Sum the neighbourhood, then apply a small network: x'_i = h((1 + ε) x_i + Σ_j A_ij x_j).

    h = linear, ReLU, linear, optionally with batch normalisation before the ReLU. "How Powerful are Graph Neural
    Networks?" (ICLR 2019) has a learned ε and normalisation, `GIN(..., train_eps=True, batch_norm=True)`; the default
    is its GIN-0 without normalisation.

    Args:
        in_channels: width of x.
        out_channels: width of the result, and of the hidden layer of h.
        relu: apply a final ReLU.
        train_eps: learn ε, starting from 0; otherwise ε = 0.
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
    graphs too; h as in GIN. torch_geometric's GINEConv(edge_dim=D) gives the same numbers if A_ij = 1 and the bias of
    its `lin` is 0.

    Args:
        in_channels: width of x.
        out_channels: width of the result, and of the hidden layer of h.
        edge_channels: D, the width of the edge features.
        relu: apply a final ReLU.
        train_eps: learn ε, starting from 0; otherwise ε = 0.
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
        """Reinitialise all weights; ε = 0."""
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
            raise InputError(f"GINE was built for {self.edge_channels} edge features, the graph has {given}")
        W = self.edge.weight
        y = kernels.sum_messages(graph.pattern, graph.weight, x, self.eps, e, W, backend=self.backend)
        return self.transform(y, graph)

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{super().extra_repr()}, edge_channels={self.edge_channels}"


class SAGE(nn.Module):
    """Combine each node with the mean of its neighbours: x'_i = W x_i + b + V Σ_j A_ij x_j / Σ_j A_ij.

    GraphSAGE's mean aggregator (NeurIPS 2017), weighted; a node without neighbours has W x_i + b.

    >>> import torch
    >>> layer = SAGE(1, 1)
    >>> _ = torch.nn.init.ones_(layer.W.weight), torch.nn.init.ones_(layer.V.weight), torch.nn.init.zeros_(layer.W.bias)
    >>> layer(torch.tensor([[1.], [5.], [2.]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).view(-1).tolist()
    [6.0, 6.5, 7.0]
    """

    def __init__(self, in_channels: int, out_channels: int, *, relu: bool = False, backend: str = "auto") -> None:
        super().__init__()
        check_channels("SAGE", in_channels, out_channels)
        self.in_channels, self.out_channels, self.relu = in_channels, out_channels, relu
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.W = nn.Linear(in_channels, out_channels)
        self.V = nn.Linear(in_channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        """Reinitialise all weights."""
        self.W.reset_parameters()
        self.V.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None) -> Tensor:
        """x (N, in) and edges (2, E) with weights (E,), or a packed graph; returns (N, out)."""
        x, graph = as_graph(x, edge_index, edge_weight, self.in_channels, self.backend)
        pattern, share = graph.pattern, graph.pattern.shares(graph.weight)
        if self.in_channels < self.out_channels:  # propagate the narrower of input and output
            neighbours = self.V(kernels.propagate(pattern, share, x, backend=self.backend))
        else:
            neighbours = kernels.propagate(pattern, share, self.V(x), backend=self.backend)
        y: Tensor = self.W(x) + neighbours
        return y.relu() if self.relu else y

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.in_channels}, {self.out_channels}, relu={self.relu}"


# every convolution by its name; each takes (in_channels, out_channels, relu=, backend=), GCN also loops=
CONVOLUTIONS: dict[str, Callable[..., nn.Module]] = {"gcn": GCN, "gin": GIN, "sage": SAGE}


def convolution(
    name: str, in_channels: int, out_channels: int, *, relu: bool = False, loops: Loops = "add", backend: str = "auto"
) -> nn.Module:
    """The convolution of that name; `loops` applies only to GCN.

    >>> convolution("sage", 3, 8, relu=True)
    SAGE(
      3, 8, relu=True
      (W): Linear(in_features=3, out_features=8, bias=True)
      (V): Linear(in_features=3, out_features=8, bias=False)
    )
    """
    make = CONVOLUTIONS[choose("conv", name, tuple(CONVOLUTIONS))]
    options = {"loops": loops} if make is GCN else {}
    return make(in_channels, out_channels, relu=relu, backend=backend, **options)
