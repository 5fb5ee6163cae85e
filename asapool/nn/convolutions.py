"""Convolutions by name: GCN, GIN, and GraphSAGE, which is here, weighted as pooled graphs are."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, choose
from asapool.kernels import Graph, Loops
from asapool.nn.gcn import GCN
from asapool.nn.gin import GIN
from asapool.nn.inputs import as_graph


class SAGE(nn.Module):
    """Put a node beside the mean of its neighbours: x'_i = W x_i + b + V Σ_j A_ij x_j / Σ_j A_ij.

    GraphSAGE's mean aggregator (NeurIPS 2017), weighted; a node without neighbours has W x_i + b.

    >>> import torch
    >>> layer = SAGE(1, 1)
    >>> _ = torch.nn.init.ones_(layer.W.weight), torch.nn.init.ones_(layer.V.weight), torch.nn.init.zeros_(layer.W.bias)
    >>> layer(torch.tensor([[1.], [5.], [2.]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).view(-1).tolist()
    [6.0, 6.5, 7.0]
    """

    def __init__(self, in_channels: int, out_channels: int, *, relu: bool = False, backend: str = "auto") -> None:
        super().__init__()
        if in_channels < 1 or out_channels < 1:
            raise ConfigError(f"SAGE needs at least one channel on each side, got {in_channels} and {out_channels}")
        self.in_channels, self.out_channels, self.relu = in_channels, out_channels, relu
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.W = nn.Linear(in_channels, out_channels)
        self.V = nn.Linear(in_channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.W.reset_parameters()
        self.V.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None) -> Tensor:
        """x (N, in) and edges (2, E) with weights (E,), or a packed graph; returns (N, out)."""
        x, graph = as_graph(x, edge_index, edge_weight, self.in_channels, self.backend)
        pattern, share = graph.pattern, graph.pattern.shares(graph.weight)
        if self.in_channels < self.out_channels:  # the narrower side travels along the edges
            around = self.V(kernels.propagate(pattern, share, x, backend=self.backend))
        else:
            around = kernels.propagate(pattern, share, self.V(x), backend=self.backend)
        y: Tensor = self.W(x) + around
        return y.relu() if self.relu else y

    def extra_repr(self) -> str:
        """What print shows."""
        return f"{self.in_channels}, {self.out_channels}, relu={self.relu}"


# every convolution by its name; each takes (in_channels, out_channels, relu=, backend=), GCN also loops=
CONVOLUTIONS: dict[str, Callable[..., nn.Module]] = {"gcn": GCN, "gin": GIN, "sage": SAGE}


def convolution(
    name: str, in_channels: int, out_channels: int, *, relu: bool = False, loops: Loops = "add", backend: str = "auto"
) -> nn.Module:
    """The convolution of that name; `loops` is GCN's alone.

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
