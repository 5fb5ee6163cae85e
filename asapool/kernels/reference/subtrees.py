"""Hashed Weisfeiler-Lehman labels of nodes, and how often each occurs in a graph."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.reference.dropout import FIRST, SECOND, STEP, logical_shift

GRID = 8.0  # features are rounded to eighths before they are hashed, so that rounding errors do not matter
FARTHEST = 2**13  # the largest rounded feature
NODES, EDGES = 1, 2  # salts of the hashes


def subtree_labels(x: Tensor, rowptr: Tensor, col: Tensor, depth: int, edge_attr: Tensor | None = None) -> Tensor:
    """The Weisfeiler-Lehman labels of all nodes for depth 0, 1, …, `depth`.

    c⁰_i = h(x_i), cᵈ_i = h(cᵈ⁻¹_i, Σ_{j→i} h(cᵈ⁻¹_j, e_ij)) with a 64-bit hash h; sums wrap around, so labels depend
    neither on the order of the neighbours nor on the position of a graph in its batch.

    x (N, F); rowptr (N+1,), col (E,) the neighbours j of the edges j → i; edge_attr (E, D), None = all edges are equal;
    returns (depth + 1, N) int64.
    """
    edge = None if edge_attr is None else hash_rows(edge_attr, salt=EDGES)
    labels = [hash_rows(x, salt=NODES)]
    for d in range(1, depth + 1):
        token = labels[-1][col]
        token = mix(token if edge is None else token ^ edge)
        total = torch.cat([token.new_zeros(1), token.cumsum(0)])  # differences of wrapped sums are exact modulo 2⁶⁴
        labels.append(mix(mix(labels[-1] + d) + total[rowptr[1:]] - total[rowptr[:-1]]))
    return torch.stack(labels)


def subtree_counts(
    x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, depth: int, buckets: int, edge_attr: Tensor | None = None
) -> Tensor:
    """z_bk = |{(i, d) : i in graph b, d ≤ depth, cᵈ_i mod buckets = k}|, (B, buckets) in the dtype of x."""
    B = ptr.numel() - 1
    first = torch.repeat_interleave(ptr.diff(), output_size=x.size(0)) * buckets
    flat = x.new_zeros(B * buckets)
    for labels in subtree_labels(x, rowptr, col, depth, edge_attr):
        flat.index_add_(0, first + labels.remainder(buckets), torch.ones_like(labels, dtype=x.dtype))
    return flat.view(B, buckets)


def hash_rows(x: Tensor, salt: int) -> Tensor:
    """One hash per row, int64 (…,) for x (…, F), of the features rounded to eighths and clipped to ±1024.

    Two sums with random integer weights below 2²⁶: all partial sums stay below 2⁵³, so a matrix product in float64 is
    exact, in any order and on any machine.
    """
    whole = (x.detach() * GRID).round().clamp(-FARTHEST, FARTHEST).double()
    sums = (whole @ row_weights(x.size(-1), salt, x.device).double()).to(torch.int64)
    return mix(mix(sums[..., 0] + salt) + sums[..., 1])


def row_weights(F: int, salt: int, device: torch.device | None = None) -> Tensor:
    """The weights of the two sums over a row of F features, (F, 2) int64."""
    return (mix(torch.arange(2 * F, device=device) + 1_000_003 * salt) & (2**26 - 1)).view(F, 2)


def mix(z: Tensor) -> Tensor:
    """The finaliser of SplitMix64: every bit of the input affects every bit of the output."""
    z = z + STEP
    z = (z ^ logical_shift(z, 30)) * FIRST
    z = (z ^ logical_shift(z, 27)) * SECOND
    return z ^ logical_shift(z, 31)
