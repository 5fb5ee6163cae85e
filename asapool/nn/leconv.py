"""Local Extrema Convolution (Eq. 8 of the paper): scores that can single out local extrema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import choose
from asapool.kernels import Graph
from asapool.nn.inputs import as_graph, check_channels


class LEConv(nn.Module):
    """Compare each node with its neighbours: φ_i = x_i W1 + b1 + Σ_{j∈N(i)} A_ij (x_i W2 + b2 − x_j W3).

    A drop-in replacement for torch_geometric's LEConv, whose state dicts it loads (there W1 = lin3, W2 = −lin2,
    W3 = −lin1, b2 = the bias of lin1). As there, a given self-loop counts as a neighbour. Bipartite graphs are not
    supported.

    Args:
        in_channels: features per node.
        out_channels: scores per node.
        bias: whether to add b1 and b2.
        backend: see asapool.kernels.

    >>> conv = LEConv(1, 1, bias=False)
    >>> for W in (conv.W1, conv.W2, conv.W3): _ = torch.nn.init.ones_(W)
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> conv(torch.tensor([[1.], [5.], [1.]]), path).view(-1).tolist()
    [-3.0, 13.0, -3.0]
    """

    def __init__(self, in_channels: int, out_channels: int, bias: bool = True, *, backend: str = "auto") -> None:
        super().__init__()
        check_channels("LEConv", in_channels, out_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.W1 = nn.Parameter(torch.empty(in_channels, out_channels))
        self.W2 = nn.Parameter(torch.empty(in_channels, out_channels))
        self.W3 = nn.Parameter(torch.empty(in_channels, out_channels))
        self.b1 = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.b2 = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights uniform in ±1/√in, zero biases."""
        bound = 1 / math.sqrt(self.in_channels)
        for W in (self.W1, self.W2, self.W3):
            nn.init.uniform_(W, -bound, bound)
        for b in (self.b1, self.b2):
            if b is not None:
                nn.init.zeros_(b)

    def forward(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None, *, weighted: bool = True,
        loops: bool = True,
    ) -> Tensor:  # fmt: skip
        """x (N, in) and edges (2, E) with weights (E,), or a packed graph; returns φ (N, out), before any activation.

        With a packed graph, `weighted=False` gives every edge the weight 1 and `loops=False` ignores the diagonal.
        """
        x, graph = as_graph(x, edge_index, edge_weight, self.in_channels, self.backend)
        return self.compare(self.project(x), graph, weighted=weighted, loops=loops)

    def project(self, x: Tensor) -> Tensor:
        """x W1 ‖ x W2 ‖ x W3, (N, 3·out)."""
        return x @ self.stacked()[0]

    def stacked(self) -> tuple[Tensor, Tensor | None]:
        """W1 ‖ W2 ‖ W3, (in, 3·out), and the concatenated biases, (3·out,)."""
        # reshaped, gradients of a single column have the strides of the weights, as DDP wants them
        rows = [W.reshape(1, -1) if W.size(1) == 1 else W.t() for W in (self.W1, self.W2, self.W3)]
        W = torch.cat(rows).t()
        if self.b1 is None or self.b2 is None:
            return W, None
        return W, torch.cat([self.b1, self.b2, torch.zeros_like(self.b1)])

    def compare(self, u: Tensor, graph: Graph, *, weighted: bool = True, loops: bool = True) -> Tensor:
        """φ (N, out) from the projections."""
        b = self.stacked()[1]
        u = u if b is None else u + b
        return kernels.score(graph.pattern, graph.weight if weighted else None, u, loops, backend=self.backend)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        from_pyg(state_dict, prefix)
        from_authors(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.in_channels}, {self.out_channels}{'' if self.b1 is not None else ', bias=False'}"


class BasicLEConv(nn.Module):
    """LEConv with one matrix in all three places: φ_i = x_i W + b + Σ_{j∈N(i)} A_ij (x_i W − x_j W).

    >>> conv = BasicLEConv(1, 1, bias=False)
    >>> _ = torch.nn.init.ones_(conv.W)
    >>> conv(torch.tensor([[1.], [5.]]), torch.tensor([[0, 1], [1, 0]])).view(-1).tolist()
    [-3.0, 9.0]
    """

    def __init__(self, in_channels: int, out_channels: int, bias: bool = True, *, backend: str = "auto") -> None:
        super().__init__()
        check_channels("BasicLEConv", in_channels, out_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.W = nn.Parameter(torch.empty(in_channels, out_channels))
        self.b = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights uniform in ±1/√in, zero bias."""
        bound = 1 / math.sqrt(self.in_channels)
        nn.init.uniform_(self.W, -bound, bound)
        if self.b is not None:
            nn.init.zeros_(self.b)

    def forward(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None, *, weighted: bool = True,
        loops: bool = True,
    ) -> Tensor:  # fmt: skip
        """As LEConv.forward."""
        x, graph = as_graph(x, edge_index, edge_weight, self.in_channels, self.backend)
        return self.compare(self.project(x), graph, weighted=weighted, loops=loops)

    def project(self, x: Tensor) -> Tensor:
        """x W, (N, out)."""
        return x @ self.W

    def compare(self, u: Tensor, graph: Graph, *, weighted: bool = True, loops: bool = True) -> Tensor:
        """φ (N, out) from the projection."""
        weight = graph.weight if weighted else None
        phi = kernels.score(graph.pattern, weight, torch.cat([u, u, u], dim=-1), loops, backend=self.backend)
        return phi if self.b is None else phi + self.b

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.in_channels}, {self.out_channels}{'' if self.b is not None else ', bias=False'}"


def from_pyg(state: dict[str, Any], prefix: str) -> None:
    """Rename torch_geometric's weights and adapt their signs, in place: Σ_j A_ij (lin1 x_j − lin2 x_i) + lin3 x_i."""
    if f"{prefix}lin3.weight" not in state:
        return
    state[f"{prefix}W1"] = state.pop(f"{prefix}lin3.weight").t().clone()
    state[f"{prefix}W2"] = -state.pop(f"{prefix}lin2.weight").t()
    state[f"{prefix}W3"] = -state.pop(f"{prefix}lin1.weight").t()
    _move(state, {f"{prefix}lin3.bias": f"{prefix}b1", f"{prefix}lin1.bias": f"{prefix}b2"})


def from_authors(state: dict[str, Any], prefix: str) -> None:
    """The same for the authors' LEConv: deg_i·lin1(x_i) + Σ_j x_j·weight + lin2(x_i)."""
    if f"{prefix}weight" not in state:
        return
    state[f"{prefix}W1"] = state.pop(f"{prefix}lin2.weight").t().clone()
    state[f"{prefix}W2"] = state.pop(f"{prefix}lin1.weight").t().clone()
    state[f"{prefix}W3"] = -state.pop(f"{prefix}weight")
    _move(state, {f"{prefix}lin2.bias": f"{prefix}b1", f"{prefix}lin1.bias": f"{prefix}b2"})


def _move(state: dict[str, Any], names: Mapping[str, str]) -> None:
    for old, new in names.items():
        if old in state:
            state[new] = state.pop(old)
