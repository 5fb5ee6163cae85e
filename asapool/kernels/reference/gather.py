"""Features of the kept clusters."""

from __future__ import annotations

from torch import Tensor

from asapool.kernels.graph import Pattern
from asapool.kernels.reference.propagate import propagate


def gate(x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """Features of the kept clusters, scaled by their fitness: X^p = φ ⊙ x of the kept.

    x (N, F); fitness (N,); perm (K,); returns (K, F).
    """
    return fitness[perm, None] * x[perm]


def gather(clusters: Pattern, alpha: Tensor, x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """Form the kept clusters and scale them by their fitness: x^p_k = φ_i Σ_j α_ij x_j with i = perm[k].

    alpha (E,) over the clusters; x (N, F); fitness (N,); perm (K,); returns (K, F).
    """
    return gate(propagate(clusters, alpha, x), fitness, perm)
