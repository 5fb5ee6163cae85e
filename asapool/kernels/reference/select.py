"""Selection of the kept clusters, and their features."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.custom_op import register
from asapool.kernels.graph import Pattern
from asapool.kernels.reference.pattern import index_of
from asapool.kernels.reference.propagate import propagate


def select(fitness: Tensor, ptr: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Keep the fittest nodes of every graph, best first; a tie goes to the lower node number.

    fitness (N,); ptr (B+1,); count (B,) how many each graph keeps.
    Returns perm (K,), the kept nodes graph by graph, and their pointer (B+1,).

    >>> select(torch.tensor([.2, .9, .9, .1]), torch.tensor([0, 3, 4]), torch.tensor([2, 1]))
    (tensor([1, 2, 3]), tensor([0, 2, 3]))
    """
    perm, kept_ptr = _select_op(fitness.detach(), ptr, count)
    return perm, kept_ptr


def _select(fitness: Tensor, ptr: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    least = float("-inf")  # NaN comes last
    fitness = fitness.nan_to_num(nan=least, posinf=float("inf"), neginf=least)
    order = torch.argsort(fitness, descending=True, stable=True)
    batch = torch.repeat_interleave(ptr.diff(), output_size=fitness.numel())
    order = order[torch.argsort(batch[order], stable=True)]
    batch = batch[order]  # now sorted: the rank of a node in its graph is its distance from the graph's start
    rank = torch.arange(order.numel(), device=order.device) - ptr[batch]
    return order[rank < count[batch]], index_of(count)


_select_op = register(
    "reference_select",
    _select,
    lambda fitness, ptr, count: (ptr.new_empty(torch.library.get_ctx().new_dynamic_size()), torch.empty_like(ptr)),
    inputs="Tensor fitness, Tensor ptr, Tensor count",
    outputs="(Tensor, Tensor)",
    device=None,
)


def gate(x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """Features of the kept nodes, scaled by their fitness: X^p = φ ⊙ x.

    x (N, F); fitness (N,); perm (K,); returns (K, F).
    """
    return fitness[perm, None] * x[perm]


def gather(clusters: Pattern, alpha: Tensor, x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """Form the kept clusters and scale them by their fitness: x^p_k = φ_i Σ_j α_ij x_j with i = perm[k].

    alpha (E,) over the clusters; x (N, F); fitness (N,); perm (K,); returns (K, F).
    """
    return gate(propagate(clusters, alpha, x), fitness, perm)
