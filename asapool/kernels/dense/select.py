"""Which clusters survive, and with what features."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.dense.graph import DensePattern, Padding


def select(fitness: Tensor, ptr: Padding, count: Padding) -> tuple[Tensor, Padding]:
    """Keep the fittest nodes of every graph, best first; a tie goes to the lower node number.

    Args:
        fitness: φ, (B, N).
        ptr: The sizes of the graphs.
        count: How many each graph keeps, and K, how many one of the padded size would keep.

    Returns:
        perm (B, K), where a slot beyond the count holds N, and the sizes after pooling.

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
    """Rows of values (B, N, …) at perm (B, K); zeros where a slot is empty."""
    N = values.size(1)
    index = perm.clamp(max=N - 1).reshape(*perm.shape, *([1] * (values.dim() - 2)))
    picked = values.gather(1, index.expand(-1, -1, *values.shape[2:]))
    filled = (perm < N).reshape(index.shape)
    return picked & filled if values.dtype == torch.bool else picked * filled.to(values.dtype)


def gate(x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """X^p = φ ⊙ x of the kept: x (B, N, F), fitness (B, N), perm (B, K); returns (B, K, F)."""
    return rows(perm, fitness)[:, :, None] * rows(perm, x)


def gather(clusters: DensePattern, alpha: Tensor, x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """X^p = φ ⊙ (S x) of the kept: only the clusters that stay are formed, (B, K, F)."""
    return rows(perm, fitness)[:, :, None] * (rows(perm, alpha) @ x)
