"""The hierarchical pooling methods that the paper compares with, on packed graphs: TopK, SAGPool and DiffPool."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import InputError, choose
from asapool.kernels import Graph, Loops, Pattern
from asapool.kernels.ratio import check_ratio
from asapool.nn.convolutions import GCN, convolution
from asapool.nn.inputs import check_belongs, check_count, pack_batch
from asapool.nn.size_groups import SizeGroups
from asapool.nn.step import Pooled, PooledWithFeatures


class DiffPooled(NamedTuple):
    """A batch pooled to clusters that are no nodes of the input, with the assignment S (N, K) in place of perm.

    K is the number of clusters of every graph: columns refer to those of the node's own graph. penalty is to be added
    to the loss.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    batch: Tensor
    S: Tensor
    penalty: Tensor


@dataclass(frozen=True, eq=False)
class Coarse:
    """A pooled batch as a packed graph, with the fields that a model needs, named as in PoolStep.

    x (K, F); ptr (B+1,) of the pooled nodes; after: their graph, None if it was not requested.
    Methods that select: perm (K,) the kept nodes, best first, graph by graph, and score (N,) of all nodes.
    Methods that assign: S (N, K), the assignment of nodes to the clusters of their graph, and penalty, its loss term.
    """

    x: Tensor
    ptr: Tensor
    after: Graph | None
    perm: Tensor | None = None
    score: Tensor | None = None
    S: Tensor | None = None
    penalty: Tensor | None = None


class ScoringLayer(Protocol):
    """A layer that gives every node a score, (N,), before any activation."""

    backend: str
    in_channels: int
    ratio: float | int

    def scores(self, x: Tensor, graph: Graph) -> Tensor: ...


def keep_highest(layer: ScoringLayer, x: Tensor, graph: Graph, edges: bool) -> Coarse:
    """Keep the ⌈kN⌉ nodes with the highest score, scaled by it, and the edges between them: x'_i = tanh(s_i) x_i.

    Nodes are ranked by s and not by tanh(s), which rounds to 1 for every large s, so that node numbers would decide.
    """
    check_belongs(x, graph.pattern)
    s = layer.scores(x, graph)
    score = s.tanh()
    pattern, backend = graph.pattern, layer.backend
    perm, ptr = kernels.select(s, pattern.ptr, kernels.kept(pattern.ptr, layer.ratio), backend=backend)
    after = kernels.induce_graph(graph, perm, ptr, backend=backend) if edges else None
    return Coarse(kernels.gate(x, score, perm, backend=backend), ptr, after, perm=perm, score=score)


def pool_edges(
    layer: ScoringLayer, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None,
    edge_attr: Tensor | None = None,
) -> Pooled | PooledWithFeatures:  # fmt: skip
    """The same for a batch in torch_geometric's form; with edge_attr, the result also has the edge features."""
    packed = pack_batch(x, edge_index, edge_weight, batch, layer.in_channels, layer.backend, edge_attr)
    step = keep_highest(layer, packed.x, packed.graph, edges=True)
    assert step.after is not None  # for the type checker: edges were requested, and a selection has perm
    assert step.perm is not None
    centres = step.perm if packed.order is None else packed.order[step.perm]
    edges = kernels.list_edges(step.after, backend=layer.backend)
    pooled = Pooled(step.x, *edges, step.after.pattern.batch, centres)
    features = kernels.list_features(step.after)
    return pooled if features is None else PooledWithFeatures(*pooled, features)


class _Selection(nn.Module):
    """Keep the nodes with the highest `scores`, a method that subclasses implement."""

    def __init__(self, in_channels: int, ratio: float | int, backend: str) -> None:
        super().__init__()
        self.in_channels, self.ratio = check_count("in_channels", in_channels), check_ratio(ratio)
        self.backend = choose("backend", backend, kernels.BACKENDS)

    def scores(self, x: Tensor, graph: Graph) -> Tensor:
        """s (N,)."""
        raise NotImplementedError

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None, *,
        edge_attr: Tensor | None = None,
    ) -> Pooled | PooledWithFeatures:  # fmt: skip
        """x (N, F), edge_index (2, E), edge_weight (E,), batch (N,), as in torch_geometric; returns the pooled batch.

        With edge_attr (E, D) the result has a sixth field, the features of the remaining edges.
        """
        return pool_edges(self, x, edge_index, edge_weight, batch, edge_attr)

    def step(self, x: Tensor, graph: Graph, *, edges: bool = True) -> Coarse:
        """Pool a packed graph; edges=False leaves the pooled graph out."""
        return keep_highest(self, x, graph, edges)

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.in_channels}, ratio={self.ratio}"


class TopKPooling(_Selection):
    """Keep the nodes with the highest projection: s_i = x_i·p / ‖p‖, x'_i = tanh(s_i) x_i, edges between kept nodes.

    "Graph U-Nets" (ICML 2019) and "Towards Sparse Hierarchical Graph Classifiers" (2018). The numbers are those of
    torch_geometric's TopKPooling, whose state dicts it loads; ⌈kN⌉ is exact here and ties go to the lower node number.

    >>> pool = TopKPooling(1, ratio=0.5)
    >>> _ = torch.nn.init.constant_(pool.p, 7.)  # only the direction of p matters
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> pooled = pool(torch.tensor([[0.], [2.], [1.]]), path)
    >>> pooled.perm.tolist(), pooled.edge_index.tolist()
    ([1, 2], [[1, 0], [0, 1]])
    """

    def __init__(self, in_channels: int, ratio: float | int = 0.5, *, backend: str = "auto") -> None:
        super().__init__(in_channels, ratio, backend)
        self.p = nn.Parameter(torch.empty(self.in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """p uniform in ±1/√F."""
        bound = 1 / math.sqrt(self.in_channels)
        nn.init.uniform_(self.p, -bound, bound)

    def scores(self, x: Tensor, graph: Graph) -> Tensor:
        """s (N,); the graph is not used."""
        s: Tensor = x @ self.p / self.p.norm()
        return s

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        if f"{prefix}select.weight" in state_dict:
            state_dict[f"{prefix}p"] = state_dict.pop(f"{prefix}select.weight").view(-1)
        super()._load_from_state_dict(state_dict, prefix, *args)


class SAGPooling(_Selection):
    """Keep the nodes with the highest score of a graph convolution: s = GCN(x) to one channel, x'_i = tanh(s_i) x_i.

    "Self-Attention Graph Pooling" (ICML 2019). torch_geometric's SAGPooling(GNN=GCNConv) gives the same numbers if the
    weight of its `select` happens to be positive; that weight is random and gets no gradient, and if it is negative the
    *lowest* scores are kept. It is not part of the method, and is ignored when a state dict is loaded.

    >>> import torch
    >>> pool = SAGPooling(1, ratio=0.3)
    >>> _ = torch.nn.init.ones_(pool.gnn.lin.weight)
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> pool(torch.tensor([[1.], [0.], [1.]]), path).perm.tolist()  # the middle one, because of its neighbours
    [1]
    """

    def __init__(
        self, in_channels: int, ratio: float | int = 0.5, *, loops: Loops = "add", backend: str = "auto"
    ) -> None:
        super().__init__(in_channels, ratio, backend)
        self.gnn = GCN(in_channels, 1, loops=loops, backend=backend)

    def reset_parameters(self) -> None:
        """Reinitialise all weights."""
        self.gnn.reset_parameters()

    def scores(self, x: Tensor, graph: Graph) -> Tensor:
        """s (N,)."""
        s: Tensor = self.gnn(x, graph)
        return s.squeeze(-1)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        state_dict.pop(f"{prefix}select.weight", None)
        super()._load_from_state_dict(state_dict, prefix, *args)


TINY = 1e-15  # inside the logarithm of the entropy, as in torch_geometric


class DiffPooling(nn.Module):
    """Assign all nodes of a graph softly to K clusters: S = softmax(GNN(x, A)), X' = SᵀZ, A' = SᵀAS.

    "Hierarchical Graph Representation Learning with Differentiable Pooling" (NeurIPS 2018). K is the same for every
    graph, regardless of its size. The penalty is the weighted sum of the means over graphs of ‖A − SSᵀ‖_F / n² (link
    prediction) and of the mean entropy of the rows of S: for one graph these are the numbers of torch_geometric's
    dense_diff_pool, and for a batch they do not depend on padding. No n×n matrix is formed:
    ‖A − SSᵀ‖² = ‖A‖² − 2⟨AS, S⟩ + ‖SᵀS‖².

    >>> pool = DiffPooling(1, clusters=2)
    >>> pooled = pool(torch.ones(3, 1), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> pooled.x.shape, pooled.S.shape, round(pooled.edge_weight.sum().item(), 5)  # the 4 entries of A, redistributed
    (torch.Size([2, 1]), torch.Size([3, 2]), 4.0)
    """

    def __init__(
        self, in_channels: int, clusters: int, *, conv: str = "gcn", loops: Loops = "add", link_weight: float = 1.0,
        entropy_weight: float = 1.0, backend: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_channels, self.clusters = in_channels, check_count("clusters", clusters)
        self.link_weight, self.entropy_weight = link_weight, entropy_weight
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.gnn = convolution(conv, in_channels, clusters, loops=loops, backend=backend)

    def forward(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> DiffPooled | Coarse:
        """x (N, F), edge_index (2, E), edge_weight (E,), batch (N,), as in torch_geometric; returns the pooled batch.

        A packed graph in place of edge_index returns what step does.
        """
        if isinstance(edge_index, Graph):
            return self.step(x, edge_index)
        packed = pack_batch(x, edge_index, edge_weight, batch, self.in_channels, self.backend)
        step = self.step(packed.x, packed.graph)
        assert step.after is not None  # for the type checker: edges were requested, and an assignment has S and penalty
        assert step.S is not None
        assert step.penalty is not None
        S = step.S if packed.order is None else torch.empty_like(step.S).index_copy(0, packed.order, step.S)
        edges = kernels.list_edges(step.after, backend=self.backend)
        return DiffPooled(step.x, *edges, step.after.pattern.batch, S, step.penalty)

    def step(self, x: Tensor, graph: Graph, *, edges: bool = True, z: Tensor | None = None) -> Coarse:
        """Pool a packed graph; edges=False leaves the pooled graph out.

        x (N, F): the input of the assignment; z (N, C): the features that are pooled, x if not given.
        A graph without nodes has no clusters.
        """
        if isinstance(graph, Tensor):
            raise InputError(
                "DiffPooling.step takes a packed asapool.nn.Graph, got a tensor; with edge_index call the layer itself"
            )
        pattern = graph.pattern
        S = self.gnn(x, graph).softmax(dim=1)  # (N, K)
        AS = kernels.propagate(pattern, graph.weight, S, backend=self.backend)
        size = pattern.ptr.diff()
        nonempty = size > 0
        blocks = SizeGroups(pattern)
        X = blocks.product(S, x if z is None else z)  # (B, K, C)
        ptr = torch.cat([size.new_zeros(1), (nonempty * self.clusters).cumsum(0)])
        after = None
        if edges:
            A = blocks.product(S, AS)  # (B, K, K)
            after = Graph(complete(ptr, self.clusters, self.backend), A[nonempty].flatten())
        penalty = self.link_weight * self._link(S, AS, blocks, graph) + self.entropy_weight * self._entropy(S, pattern)
        return Coarse(X[nonempty].flatten(0, 1), ptr, after, S=S, penalty=penalty)

    def _link(self, S: Tensor, AS: Tensor, blocks: SizeGroups, graph: Graph) -> Tensor:
        """Mean over the graphs of ‖A − SSᵀ‖_F / n²."""
        pattern = graph.pattern
        n = pattern.ptr.diff()
        gram = blocks.product(S, S).square().sum((1, 2))  # ‖SᵀS‖² = ‖SSᵀ‖²
        per_graph = S.new_zeros(n.numel()).index_add(0, pattern.batch, -2 * (S * AS).sum(1))
        square = gram + per_graph.index_add(0, pattern.batch[pattern.row], graph.weight.square().to(per_graph.dtype))
        # the square root has no finite gradient at 0: the clamp makes it 0 there
        return (square.clamp(min=1e-12).sqrt() * (n > 0) / n.clamp(min=1).square()).sum() / (n > 0).sum().clamp(min=1)

    def _entropy(self, S: Tensor, pattern: Pattern) -> Tensor:
        """Mean over the graphs of the mean over the nodes of −Σ_k S_ik log S_ik."""
        n = pattern.ptr.diff()
        total = S.new_zeros(n.numel()).index_add(0, pattern.batch, -(S * (S + TINY).log()).sum(1))
        return (total / n.clamp(min=1)).sum() / (n > 0).sum().clamp(min=1)

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.in_channels}, clusters={self.clusters}"


def complete(ptr: Tensor, K: int, backend: str = "auto") -> Pattern:
    """The pattern of complete graphs of K nodes, with self-loops; ptr (B+1,) rises in steps of K or 0.

    >>> complete(torch.tensor([0, 2, 2, 4]), 2).col.tolist()
    [0, 1, 0, 1, 2, 3, 2, 3]
    """
    N = int(ptr[-1])
    node = torch.arange(N, device=ptr.device)
    col = (node - node % K)[:, None] + torch.arange(K, device=ptr.device)
    pattern, _ = kernels.pack_rows(torch.arange(N + 1, device=ptr.device) * K, col.flatten(), ptr, backend=backend)
    return pattern
