"""Graph convolution (Eq. 1 of the paper)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

from asapool import kernels
from asapool.errors import ConfigError, choose
from asapool.kernels import Graph, Loops
from asapool.nn.inputs import as_graph


class GCN(nn.Module):
    """Average each node with its neighbours after a linear map: X' = σ(D̂^-½ Â D̂^-½ X W + b), D̂_ii = Σ_j Â_ij.

    A state dict of torch_geometric's GCNConv fits, also of versions before 1.7, which kept `weight` as (in, out).

    Args:
        in_channels: features per node.
        out_channels: features per node of the result.
        bias: whether to add b.
        relu: whether σ is max(·, 0); otherwise it is the identity.
        loops: "add" is the paper's Â = A + I; "fill" adds 1 only where the diagonal is empty, as GCNConv does.
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
        if in_channels < 1 or out_channels < 1:
            raise ConfigError(f"GCN needs at least one channel on each side, got {in_channels} and {out_channels}")
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

        With a packed graph, `weighted=False` lets every entry of it count 1.
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
        # the narrower side travels along the edges
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
        """What print shows."""
        return f"{self.in_channels}, {self.out_channels}, loops={self.loops!r}, relu={self.relu}"


HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(module: nn.Module | None) -> bool:
    """Whether a module, or all modules, have hooks, so that it must be called as a module."""
    return module is not None and any(
        getattr(module, name) or getattr(global_hooks, f"_global{name}") for name in HOOKS
    )


def is_plain(module: nn.Module | None) -> bool:
    """Whether a linear map is a plain nn.Linear without hooks, so that its weights may be used directly."""
    return module is None or (type(module) is nn.Linear and not has_hooks(module))
