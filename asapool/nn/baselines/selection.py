"""TopK pooling and SAGPool: keep the nodes with the highest learned score, with or without a look at the neighbours."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, choose
from asapool.kernels import Graph, Loops
from asapool.kernels.ratio import check_ratio
from asapool.nn.baselines.coarse import Coarse, keep_highest, pool_edges
from asapool.nn.gcn import GCN
from asapool.nn.step import Pooled, PooledWithFeatures


class _Selection(nn.Module):
    """Keep the nodes with the highest `scores`; subclasses write that method."""

    def __init__(self, in_channels: int, ratio: float | int, backend: str) -> None:
        super().__init__()
        self.in_channels, self.ratio = in_channels, check_ratio(ratio)
        self.backend = choose("backend", backend, kernels.BACKENDS)

    def scores(self, x: Tensor, graph: Graph) -> Tensor:
        """s (N,)."""
        raise NotImplementedError

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None, *,
        edge_attr: Tensor | None = None,
    ) -> Pooled | PooledWithFeatures:  # fmt: skip
        """x (N, F), edge_index (2, E), edge_weight (E,), batch (N,), as in torch_geometric; returns what is left.

        With edge_attr (E, D) the result has a sixth field, the features of the edges that are left.
        """
        return pool_edges(self, x, edge_index, edge_weight, batch, edge_attr)

    def step(self, x: Tensor, graph: Graph, *, edges: bool = True) -> Coarse:
        """Pool a packed graph; edges=False leaves the pooled graph out."""
        return keep_highest(self, x, graph, edges)

    def extra_repr(self) -> str:
        """What print shows."""
        return f"{self.in_channels}, ratio={self.ratio}"


class TopKPooling(_Selection):
    """Keep the nodes with the highest projection: s_i = x_i·p / ‖p‖, x'_i = tanh(s_i) x_i, edges between kept nodes.

    "Graph U-Nets" (ICML 2019) and "Towards Sparse Hierarchical Graph Classifiers" (2018). The numbers are those of
    torch_geometric's TopKPooling, whose state dict fits; ⌈kN⌉ is exact here and ties go to the lower node number.

    >>> pool = TopKPooling(1, ratio=0.5)
    >>> _ = torch.nn.init.constant_(pool.p, 7.)  # only the direction of p counts
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> pooled = pool(torch.tensor([[0.], [2.], [1.]]), path)
    >>> pooled.perm.tolist(), pooled.edge_index.tolist()
    ([1, 2], [[1, 0], [0, 1]])
    """

    def __init__(self, in_channels: int, ratio: float | int = 0.5, *, backend: str = "auto") -> None:
        if in_channels < 1:
            raise ConfigError(f"TopKPooling needs at least one channel, got {in_channels}")
        super().__init__(in_channels, ratio, backend)
        self.p = nn.Parameter(torch.empty(in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """p uniform in ±1/√F."""
        bound = 1 / math.sqrt(self.in_channels)
        nn.init.uniform_(self.p, -bound, bound)

    def scores(self, x: Tensor, graph: Graph) -> Tensor:
        """s (N,); the graph has no say."""
        s: Tensor = x @ self.p / self.p.norm()
        return s

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        if f"{prefix}select.weight" in state_dict:
            state_dict[f"{prefix}p"] = state_dict.pop(f"{prefix}select.weight").view(-1)
        super()._load_from_state_dict(state_dict, prefix, *args)


class SAGPooling(_Selection):
    """Keep the nodes with the highest score of a graph convolution: s = GCN(x) to one channel, x'_i = tanh(s_i) x_i.

    "Self-Attention Graph Pooling" (ICML 2019). torch_geometric's SAGPooling(GNN=GCNConv) gives the same numbers when
    the weight of its `select` happens to be positive; that weight is random and gets no gradient, and where it is
    negative the *lowest* scores are kept. It is not part of the method, and a state dict is loaded without it.

    >>> import torch
    >>> pool = SAGPooling(1, ratio=0.3)
    >>> _ = torch.nn.init.ones_(pool.gnn.lin.weight)
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> pool(torch.tensor([[1.], [0.], [1.]]), path).perm.tolist()  # the middle one, for its neighbours
    [1]
    """

    def __init__(
        self, in_channels: int, ratio: float | int = 0.5, *, loops: Loops = "add", backend: str = "auto"
    ) -> None:
        super().__init__(in_channels, ratio, backend)
        self.gnn = GCN(in_channels, 1, loops=loops, backend=backend)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.gnn.reset_parameters()

    def scores(self, x: Tensor, graph: Graph) -> Tensor:
        """s (N,)."""
        s: Tensor = self.gnn(x, graph)
        return s.squeeze(-1)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        state_dict.pop(f"{prefix}select.weight", None)
        super()._load_from_state_dict(state_dict, prefix, *args)
