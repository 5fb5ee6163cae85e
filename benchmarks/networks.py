"""The three-level ASAP network of the paper, as users of torch_geometric and of torch-geometric-pool write it, and its
bare matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import ASAPooling, GCNConv, global_max_pool, global_mean_pool

from asapool.data import Batch
from asapool.nn import ASAPooling as OurPooling
from asapool.nn.step import Pooled


@dataclass(frozen=True)
class Setting:
    """The authors' settings for a data set."""

    batch: int
    hidden: int
    dropout: float  # of the attention
    lr: float


SETTINGS = {
    "PROTEINS": Setting(128, 64, 0.1, 0.01),
    "NCI1": Setting(128, 128, 0.0, 0.01),
    "DD": Setting(64, 16, 0.3, 0.01),
}


class PyGNetwork(nn.Module):
    """torch_geometric's layers, GNN=GCNConv; edge weights are passed on, which it returns only for weighted input."""

    def __init__(self, in_channels: int, setting: Setting) -> None:
        super().__init__()
        H = setting.hidden
        self.convs = nn.ModuleList(GCNConv(in_channels if level == 0 else H, H) for level in range(3))
        self.pools = nn.ModuleList(ASAPooling(H, 0.5, GNN=GCNConv, dropout=setting.dropout) for _ in range(3))
        self.lin1, self.lin2 = nn.Linear(2 * H, H), nn.Linear(H, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, graphs: int) -> Tensor:
        weight, summary = None, torch.zeros(())
        for conv, pool in zip(self.convs, self.pools, strict=True):
            x = conv(x, edge_index, weight).relu()
            x, edge_index, weight, batch, _ = pool(x, edge_index, weight, batch)
            summary = summary + torch.cat([global_mean_pool(x, batch, graphs), global_max_pool(x, batch, graphs)], 1)
        return self.lin2(F.dropout(self.lin1(summary).relu(), 0.5, self.training))


class DropInNetwork(PyGNetwork):
    """torch_geometric's network with our pooling in place of theirs: convolutions and readouts stay."""

    def __init__(self, in_channels: int, setting: Setting) -> None:
        super().__init__(in_channels, setting)
        self.pools = nn.ModuleList(
            OurPooling(setting.hidden, 0.5, GNN=GCNConv, dropout=setting.dropout) for _ in range(3)
        )


class RepeatedPooling(nn.Module):
    """Keeps the nodes and edges of an earlier pooling: what a pooling that takes no time would leave to do."""

    def __init__(self, pooled: Pooled) -> None:
        super().__init__()
        self.pooled = pooled

    def forward(self, x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
        _, edge_index, weight, batch, perm = self.pooled
        return x[perm], edge_index, weight.detach().requires_grad_(), batch, perm  # a gradient, as ours has


class TGPNetwork(nn.Module):
    """The same in torch-geometric-pool's layers; a pooling's answer is passed on by name, as its documentation does."""

    def __init__(self, in_channels: int, setting: Setting) -> None:
        from tgp.poolers import get_pooler

        super().__init__()
        H = setting.hidden
        self.convs = nn.ModuleList(GCNConv(in_channels if level == 0 else H, H) for level in range(3))
        self.pools = nn.ModuleList(
            get_pooler("asap", in_channels=H, ratio=0.5, GNN=GCNConv, dropout=setting.dropout) for _ in range(3)
        )
        self.lin1, self.lin2 = nn.Linear(2 * H, H), nn.Linear(H, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, graphs: int) -> Tensor:
        weight, summary = None, torch.zeros(())
        for conv, pool in zip(self.convs, self.pools, strict=True):
            x = conv(x, edge_index, weight).relu()
            out = pool(x=x, adj=edge_index, edge_weight=weight, batch=batch)
            x, edge_index, weight, batch = out.x, out.edge_index, out.edge_weight, out.batch
            summary = summary + torch.cat([global_mean_pool(x, batch, graphs), global_max_pool(x, batch, graphs)], 1)
        return self.lin2(F.dropout(self.lin1(summary).relu(), 0.5, self.training))


def training_step(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """Forward, backward, Adam.

    The rate is zero, which spares Adam nothing: a network that learns keeps other nodes, with more or fewer edges
    between them, and then the sides would no longer do the same work, nor the same in every round.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0, weight_decay=5e-4, fused=True)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss().backward()
        optimiser.step()

    return step


def floor(batch: Batch, sizes: list[int], setting: Setting, query: bool) -> Callable[[], None]:
    """Just the dense matrix products of one training step: y = x W, ∂W = xᵀ g and, where x is not the input, ∂x = g Wᵀ.

    sizes: nodes at each level and after the last. query: whether the attention multiplies the master queries by W.
    """
    H, x = setting.hidden, batch.x
    products: list[tuple[Tensor, Tensor, Tensor, bool]] = []

    def add(rows: int, width: int, out: int, first: bool = False) -> None:
        left = x if first else torch.randn(rows, width)
        products.append((left, torch.randn(width, out), torch.randn(rows, out), not first))

    for level, N in enumerate(sizes[:-1]):
        add(N, x.size(1) if level == 0 else H, H, level == 0)  # the convolution
        add(N, H, H)  # the GCN inside the pooling
        add(N, H, 3)  # the fitness
        if query:
            add(N, H, H)
    B = batch.ptr.numel() - 1
    add(B, 2 * H, H)
    add(B, H, 2)

    def run() -> None:
        for left, W, g, onwards in products:
            torch.mm(left, W)
            torch.mm(left.t(), g)
            if onwards:
                torch.mm(g, W.t())

    return run
