"""DiffPool: every node belongs a little to every one of a fixed number of clusters."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, choose
from asapool.kernels import Graph, Loops, Pattern
from asapool.nn.baselines.coarse import Coarse
from asapool.nn.convolutions import convolution

TINY = 1e-15  # inside the logarithm of the entropy, as in torch_geometric


class DiffPooling(nn.Module):
    """Pour all nodes of a graph into K clusters: S = softmax(GNN(x, A)), X' = SᵀZ, A' = SᵀAS.

    "Hierarchical Graph Representation Learning with Differentiable Pooling" (NeurIPS 2018). K is the same for every
    graph, however large. The penalty is the mean over the graphs of ‖A − SSᵀ‖_F / n² (link prediction) and of the mean
    entropy of the rows of S, weighted: for one graph these are the numbers of torch_geometric's dense_diff_pool, and
    for a batch they do not depend on padding. No n×n matrix is made: ‖A − SSᵀ‖² = ‖A‖² − 2⟨AS, S⟩ + ‖SᵀS‖².

    >>> pool = DiffPooling(1, clusters=2)
    >>> pattern, _ = kernels.pack(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.tensor([0, 3]), 3)
    >>> step = pool.step(torch.ones(3, 1), Graph(pattern, (pattern.row != pattern.col).float()))
    >>> step.x.shape, round(step.after.weight.sum().item(), 5)  # all 4 entries of A are still there
    (torch.Size([2, 1]), 4.0)
    """

    def __init__(
        self, in_channels: int, clusters: int, *, conv: str = "gcn", loops: Loops = "add", link_weight: float = 1.0,
        entropy_weight: float = 1.0, backend: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__()
        if clusters < 1:
            raise ConfigError(f"DiffPooling needs at least one cluster, got {clusters}")
        self.in_channels, self.clusters = in_channels, clusters
        self.link_weight, self.entropy_weight = link_weight, entropy_weight
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.gnn = convolution(conv, in_channels, clusters, loops=loops, backend=backend)

    def forward(self, x: Tensor, graph: Graph) -> Coarse:
        """As step."""
        return self.step(x, graph)

    def step(self, x: Tensor, graph: Graph, *, edges: bool = True, z: Tensor | None = None) -> Coarse:
        """Pool a packed graph; edges=False leaves the pooled graph out.

        x (N, F): what the assignment is made of; z (N, C): what is poured into the clusters, x itself if not given.
        A graph without nodes has no clusters.
        """
        pattern = graph.pattern
        S = self.gnn(x, graph).softmax(dim=1)  # (N, K)
        AS = kernels.propagate(pattern, graph.weight, S, backend=self.backend)
        size = pattern.ptr.diff()
        there = size > 0
        S_b = _padded(S, pattern).mT  # (B, K, n)
        X = S_b @ _padded(x if z is None else z, pattern)  # (B, K, C)
        ptr = torch.cat([size.new_zeros(1), (there * self.clusters).cumsum(0)])
        after = None
        if edges:
            A = S_b @ _padded(AS, pattern)  # (B, K, K)
            after = Graph(complete(ptr, self.clusters, self.backend), A[there].flatten())
        penalty = self.link_weight * self._link(S, AS, S_b, graph) + self.entropy_weight * self._entropy(S, pattern)
        return Coarse(X[there].flatten(0, 1), ptr, after, S=S, penalty=penalty)

    def _link(self, S: Tensor, AS: Tensor, S_b: Tensor, graph: Graph) -> Tensor:
        """Mean over the graphs of ‖A − SSᵀ‖_F / n²."""
        pattern = graph.pattern
        n = pattern.ptr.diff()
        gram = (S_b @ S_b.mT).square().sum((1, 2))  # ‖SᵀS‖² = ‖SSᵀ‖²
        own = S.new_zeros(n.numel()).index_add(0, pattern.batch, -2 * (S * AS).sum(1))
        square = gram + own.index_add(0, pattern.batch[pattern.row], graph.weight.square().to(own.dtype))
        # a distance of zero has no direction: the clamp gives it the gradient 0 instead of 0/0
        return (square.clamp(min=1e-12).sqrt() * (n > 0) / n.clamp(min=1).square()).sum() / (n > 0).sum().clamp(min=1)

    def _entropy(self, S: Tensor, pattern: Pattern) -> Tensor:
        """Mean over the graphs of the mean over the nodes of −Σ_k S_ik log S_ik."""
        n = pattern.ptr.diff()
        total = S.new_zeros(n.numel()).index_add(0, pattern.batch, -(S * (S + TINY).log()).sum(1))
        return (total / n.clamp(min=1)).sum() / (n > 0).sum().clamp(min=1)

    def extra_repr(self) -> str:
        """What print shows."""
        return f"{self.in_channels}, clusters={self.clusters}"


def _padded(x: Tensor, pattern: Pattern) -> Tensor:
    """The rows of each graph in a block of its own, (B, n, F) with n the most nodes of a graph; zeros behind."""
    B, ptr = pattern.ptr.numel() - 1, pattern.ptr
    n = int(ptr.diff().max()) if B else 0
    batch = pattern.batch
    place = batch * n + torch.arange(x.size(0), device=x.device) - ptr[batch]
    return x.new_zeros(B * n, x.size(1)).index_copy(0, place, x).view(B, n, x.size(1))


def complete(ptr: Tensor, K: int, backend: str = "auto") -> Pattern:
    """The structure of graphs in which all of the K nodes are joined with all; ptr (B+1,) in steps of K or 0.

    >>> complete(torch.tensor([0, 2, 2, 4]), 2).col.tolist()
    [0, 1, 0, 1, 2, 3, 2, 3]
    """
    N = int(ptr[-1])
    node = torch.arange(N, device=ptr.device)
    col = (node - node % K)[:, None] + torch.arange(K, device=ptr.device)
    pattern, _ = kernels.pack_rows(torch.arange(N + 1, device=ptr.device) * K, col.flatten(), ptr, backend=backend)
    return pattern
