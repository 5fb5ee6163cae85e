"""Selection of the kept clusters, their features and edges, as batched matrix products."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.graph import DenseGraph, DensePattern, Padding


def select(fitness: Tensor, ptr: Padding, count: Padding) -> tuple[Tensor, Padding]:
    """Keep the fittest nodes of every graph, best first; a tie goes to the lower node number.

    Args:
        fitness: φ, (B, N).
        ptr: the sizes of the graphs.
        count: how many nodes each graph keeps, and K, how many a graph of the padded size would keep.

    Returns:
        perm (B, K), where an unused slot is N, and the sizes after pooling.

    >>> sizes = Padding(torch.tensor([2]), 3)
    >>> perm, kept = select(torch.tensor([[0.2, 0.9, 0.0]]), sizes, sizes.kept(0.5))
    >>> perm.tolist(), kept.sizes.tolist()
    ([[1, 3]], [1])
    """
    lowest = torch.finfo(fitness.dtype).min
    known = fitness.detach().nan_to_num(nan=lowest, posinf=None, neginf=lowest)
    known = torch.where(ptr.mask, known, lowest)  # real nodes have the lower numbers, so they win a tie with padding
    order = known.sort(dim=1, descending=True, stable=True).indices[:, : count.nodes]
    return torch.where(count.mask, order, ptr.nodes), count


def rows(perm: Tensor, values: Tensor) -> Tensor:
    """Rows of values (B, N, …) at perm (B, K); zeros for unused slots."""
    N = values.size(1)
    index = perm.clamp(max=N - 1).reshape(*perm.shape, *([1] * (values.dim() - 2)))
    picked = values.gather(1, index.expand(-1, -1, *values.shape[2:]))
    filled = (perm < N).reshape(index.shape)
    return picked & filled if values.dtype == torch.bool else picked * filled.to(values.dtype)


def gate(x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """X^p = φ ⊙ x of the kept nodes: x (B, N, F), fitness (B, N), perm (B, K); returns (B, K, F)."""
    return rows(perm, fitness)[:, :, None] * rows(perm, x)


def gather(clusters: DensePattern, alpha: Tensor, x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """X^p = φ ⊙ (S x) of the kept clusters, (B, K, F); the others are not formed."""
    return rows(perm, fitness)[:, :, None] * (rows(perm, alpha) @ x)


def coarsen(
    clusters: DensePattern, alpha: Tensor, pattern: DensePattern, hat: Tensor, perm: Tensor, ptr: Padding,
    max_neighbours: int | None = None,
) -> tuple[DensePattern, Tensor]:  # fmt: skip
    """Connect kept clusters that share a node or an edge: A^p = Ŝᵀ Â Ŝ with Ŝ_lp = α_{perm[p], l}.

    alpha, hat (B, N, N); perm (B, K); returns the structure and the weights (B, K, K). max_neighbours has no effect
    here, since a padded batch always has K × K weights.
    """
    S_t = rows(perm, alpha)  # (B, K, N)
    member = rows(perm, clusters.entries).to(torch.float32)
    joined = member @ pattern.entries.to(torch.float32) @ member.transpose(1, 2) > 0
    return DensePattern(ptr, joined), S_t @ hat @ S_t.transpose(1, 2)


def coarsen_features(
    clusters: DensePattern, alpha: Tensor, pattern: DensePattern, weight: Tensor, edge_attr: Tensor, perm: Tensor,
    pooled: DensePattern,
) -> Tensor:  # fmt: skip
    """Average the features of the edges between two clusters; see reference.coarsen_features.

    alpha, weight (B, N, N); edge_attr (B, N, N, D); perm (B, K); returns (B, K, K, D).
    """
    S_t = rows(perm, alpha)
    S = S_t.transpose(1, 2)
    weights = S_t @ weight @ S
    joined = weights > torch.finfo(weights.dtype).tiny
    sums = torch.stack([S_t @ (weight * e) @ S for e in edge_attr.unbind(-1)], dim=-1)
    return torch.where(joined[..., None], sums / torch.where(joined, weights, 1)[..., None], 0)


def induce(pattern: DensePattern, weight: Tensor, perm: Tensor, ptr: Padding) -> tuple[DensePattern, Tensor]:
    """Keep only the edges of the input graph between kept nodes (and every diagonal entry)."""

    def between(values: Tensor) -> Tensor:
        return rows(perm, rows(perm, values).transpose(1, 2)).transpose(1, 2)

    return DensePattern(ptr, between(pattern.entries)), between(weight)


def strongest(graph: DenseGraph, most: int) -> DenseGraph:
    """Keep at most the `most` strongest edges of every node, besides the diagonal.

    If A of a graph is symmetric (up to rounding), an edge is kept only if it is among the strongest of both its ends,
    so that A stays symmetric. Ties go to the lower neighbour number.
    """
    pattern, weight = graph.pattern, graph.weight
    entries, strength = pattern.entries, weight.detach()
    back = strength.transpose(1, 2)
    same = (entries == entries.transpose(1, 2)) & torch.isclose(strength, back, rtol=1e-3, atol=1e-6)
    mutual = same.flatten(1).all(1)[:, None, None]
    strength = torch.where(mutual, strength + back, strength)
    lowest = torch.finfo(strength.dtype).min
    off = entries & ~pattern.eye
    order = torch.where(off, strength, lowest).sort(dim=2, descending=True, stable=True).indices
    place = torch.arange(order.size(2), device=order.device).expand_as(order)
    rank = torch.empty_like(order).scatter(2, order, place)
    stays = (off & (rank < most)) | pattern.eye
    stays = torch.where(mutual, stays & stays.transpose(1, 2), stays)
    edge_attr = None if graph.edge_attr is None else torch.where(stays[..., None], graph.edge_attr, 0.0)
    return DenseGraph(DensePattern(pattern.ptr, stays), torch.where(stays, weight, 0.0), edge_attr)
