"""The pooling operators for given kept nodes, as the theory needs them.

Each operator is a function (x, w) ↦ (X^p, A^p) of the node features x (N, F) and one weight w per undirected edge (E,),
composed of the package's kernels, with random weights drawn once, and differentiable in both arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from asapool import kernels
from asapool.errors import choose
from asapool.kernels import Graph, Pattern
from asapool.theory.graphs import Neighbours, neighbours

Operator = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
Attention = Literal["paper", "authors"]


def undirected_edges(graph: Any) -> Tensor:
    """Every edge once, (2, E), the lower node first.

    >>> undirected_edges([[1], [0, 2], [1]]).tolist()
    [[0, 1], [1, 2]]
    """
    pairs = [(i, j) for i, around in enumerate(neighbours(graph)) for j in around if i < j]
    return torch.tensor(pairs, dtype=torch.long).view(-1, 2).t()


def packed(graph: Any, weight: Tensor | None = None) -> Graph:
    """One graph in the packed form of the kernels, with a weight (E,) per undirected edge or ones.

    >>> packed([[1], [0]]).weight.tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    nb: Neighbours = neighbours(graph)
    edges = undirected_edges(nb)
    both = torch.cat([edges, edges.flip(0)], dim=1)
    pattern, slot = kernels.pack(both, torch.tensor([0, len(nb)]), len(nb), backend="reference")
    w = torch.ones(edges.size(1)) if weight is None else weight
    return Graph(pattern, w.new_zeros(pattern.col.numel()).index_add(0, slot, torch.cat([w, w])))


def dense(pattern: Pattern, weight: Tensor) -> Tensor:
    """The dense matrix, (N, N)."""
    N = pattern.diag.numel()
    return weight.new_zeros(N, N).index_put((pattern.row, pattern.col), weight)


def asap(
    graph: Any, kept: Tensor | int, channels: int, generator: torch.Generator, h: int = 1,
    attention: Attention = "paper", frozen: bool = False,
) -> Operator:  # fmt: skip
    """ASAP: x' = GCN(x), m = max over c_h(i), α = softmax, x^c = Σ α x, φ = LEConv(x^c), X^p = φ ⊙ x^c, A^p = Ŝᵀ(A+I)Ŝ.

    kept: the centres (K,), or how many of the fittest to keep, best first.
    `frozen` treats α and φ as constants, so that only the assignment S matters.
    """
    choose("attention", attention, ("paper", "authors"))
    Wg, W = (_draw(generator, channels, channels) for _ in range(2))
    w1, w2 = (_draw(generator, channels) for _ in range(2))
    W123 = _draw(generator, channels, 3)

    def operate(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        g = packed(graph, w)
        clusters = kernels.reach(g.pattern, h, backend="reference")
        hidden = kernels.propagate(
            g.pattern, kernels.normalise(g.pattern, g.hat("add"), backend="reference"), x @ Wg, backend="reference"
        )
        master = kernels.cluster_max(clusters, hidden, backend="reference") @ W
        sigma = torch.nn.functional.leaky_relu
        if attention == "paper":
            query, token, slope = sigma(master, 0.2) @ w1, sigma(hidden, 0.2) @ w2, 1.0
        else:
            query, token, slope = master @ w1, hidden @ w2, 0.2
        alpha = kernels.attend(clusters, query, token, slope, backend="reference")
        alpha = alpha.detach() if frozen else alpha
        xc = kernels.propagate(clusters, alpha, x, backend="reference")
        phi = kernels.score(g.pattern, g.weight, xc @ W123, loops=False, backend="reference").view(-1).sigmoid()
        phi = phi.detach() if frozen else phi
        perm = kept if isinstance(kept, Tensor) else _fittest(phi, kept)
        ptr = torch.tensor([0, perm.numel()])
        pooled = kernels.coarsen(clusters, alpha, g.pattern, g.hat("add"), perm, ptr, backend="reference")
        return kernels.gate(xc, phi, perm, backend="reference"), dense(*pooled)

    return operate


def topk(graph: Any, perm: Tensor, channels: int, generator: torch.Generator) -> Operator:
    """TopK: φ = tanh(x·p / ‖p‖), X^p = φ ⊙ x and the input's edges between the kept nodes."""
    p = _draw(generator, channels)
    return _dropping(graph, perm, lambda g, x: (x @ p / p.norm()).tanh())


def sagpool(graph: Any, perm: Tensor, channels: int, generator: torch.Generator) -> Operator:
    """SAGPool: φ = tanh(GCN(x)), X^p = φ ⊙ x and the input's edges between the kept nodes."""
    p = _draw(generator, channels, 1)

    def fitness(g: Graph, x: Tensor) -> Tensor:
        norm = kernels.normalise(g.pattern, g.hat("add"), backend="reference")
        return kernels.propagate(g.pattern, norm, x @ p, backend="reference").view(-1).tanh()

    return _dropping(graph, perm, fitness)


def diffpool(graph: Any, clusters: int, channels: int, generator: torch.Generator) -> Operator:
    """DiffPool: Z = GCN(x), S = softmax(GCN(x)) over all clusters, X^p = SᵀZ, A^p = SᵀAS; S is dense."""
    Wz, Ws = _draw(generator, channels, channels), _draw(generator, channels, clusters)

    def operate(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        g = packed(graph, w)
        norm = dense(g.pattern, kernels.normalise(g.pattern, g.hat("add"), backend="reference"))
        S = (norm @ x @ Ws).softmax(dim=1)
        return S.t() @ (norm @ x @ Wz), S.t() @ dense(g.pattern, g.weight) @ S

    return operate


def _dropping(graph: Any, perm: Tensor, fitness: Callable[[Graph, Tensor], Tensor]) -> Operator:
    def operate(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        g = packed(graph, w)
        ptr = torch.tensor([0, perm.numel()])
        pooled = kernels.induce(g.pattern, g.weight, perm, ptr, backend="reference")
        return kernels.gate(x, fitness(g, x), perm, backend="reference"), dense(*pooled)

    return operate


def _fittest(phi: Tensor, K: int) -> Tensor:
    return kernels.select(phi, torch.tensor([0, phi.numel()]), torch.tensor([K]), backend="reference")[0]


def _draw(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)
