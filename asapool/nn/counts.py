"""Hashed Weisfeiler-Lehman subtree counts: how often each rooted neighbourhood occurs in a graph."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from asapool.errors import ConfigError
from asapool.kernels import DenseGraph

GRID = 8.0  # features are rounded to eighths before they are hashed, so that rounding errors do not matter
DEEPEST = 16


def wl_labels(x: Tensor, rowptr: Tensor, col: Tensor, depth: int, edge_attr: Tensor | None = None) -> Iterator[Tensor]:
    """The Weisfeiler-Lehman labels of all nodes, (N,) int64, for depth 0, 1, …, `depth`.

    c⁰_i = h(x_i), cᵈ_i = h(cᵈ⁻¹_i, Σ_{j→i} h(cᵈ⁻¹_j, e_ij)) with a 64-bit hash h; sums wrap around, so labels depend
    neither on the order of the neighbours nor on the position of a graph in its batch.

    Args:
        x: node features (N, F).
        rowptr: first edge of each node, (N+1,).
        col: neighbours j of the edges j → i, (E,).
        depth: number of refinements.
        edge_attr: edge features (E, D); None = all edges are equal.

    Yields:
        The labels after each refinement.

    >>> path = torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1])
    >>> [len(labels.unique()) for labels in wl_labels(torch.ones(3, 1), *path, depth=1)]
    [1, 2]
    """
    edge = None if edge_attr is None else _hash_rows(edge_attr, salt=2)
    labels = _hash_rows(x, salt=1)
    yield labels
    for d in range(1, depth + 1):
        token = labels[col]
        token = _mix(token if edge is None else token ^ edge)
        total = torch.cat([token.new_zeros(1), token.cumsum(0)])  # differences of wrapped sums are exact modulo 2⁶⁴
        neighbours = total[rowptr[1:]] - total[rowptr[:-1]]
        labels = _mix(_mix(labels + d) + neighbours)
        yield labels


class WLCounts(nn.Module):
    """Count the rooted neighbourhoods of each graph, hashed into a fixed number of buckets.

    z_bk = |{(i, d) : i in graph b, d ≤ depth, cᵈ_i mod buckets = k}|, with the labels c of `wl_labels`. Nothing is
    learned, and equal graphs have equal counts on every machine.

    Args:
        depth: number of refinements; depth 0 counts node labels.
        buckets: number of counters; different neighbourhoods rarely share one.

    >>> path = torch.tensor([0, 3]), torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1])
    >>> WLCounts(depth=1, buckets=64)(torch.ones(3, 1), *path).sort(descending=True).values[0, :4].tolist()
    [3.0, 2.0, 1.0, 0.0]
    """

    def __init__(self, depth: int = 3, buckets: int = 2048) -> None:
        super().__init__()
        for name, value, least, most in (("depth", depth, 0, DEEPEST), ("buckets", buckets, 1, 2**20)):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ConfigError(f"WLCounts: {name} must be a whole number from {least} to {most}, got {value!r}")
        self.depth, self.buckets = depth, buckets

    def forward(self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The fields of a batch: x (N, F), ptr (B+1,), rowptr (N+1,), col (E,), edge_attr (E, D); (B, buckets)."""
        B = ptr.numel() - 1
        with torch.no_grad():
            first = torch.repeat_interleave(ptr.diff(), output_size=x.size(0)) * self.buckets
            flat = x.new_zeros(B * self.buckets)
            for labels in wl_labels(x, rowptr, col, self.depth, edge_attr):
                flat.index_add_(0, first + labels.remainder(self.buckets), torch.ones_like(labels, dtype=x.dtype))
        return flat.view(B, self.buckets)

    def padded(self, x: Tensor, graph: DenseGraph) -> Tensor:
        """The same counts (B, buckets) of a padded batch, x (B, N, F)."""
        pattern = graph.pattern
        mask = pattern.ptr.mask
        edges = pattern.entries & ~(pattern.eye & (graph.weight == 0))  # the diagonal is an edge only with a weight
        with torch.no_grad():
            edge = None if graph.edge_attr is None else _hash_rows(graph.edge_attr, salt=2)
            labels = _hash_rows(x, salt=1)
            counts = x.new_zeros(x.size(0), self.buckets)
            for d in range(self.depth + 1):
                if d:
                    token = labels[:, None, :] + torch.zeros_like(edges, dtype=torch.int64)
                    token = _mix(token if edge is None else token ^ edge)
                    labels = _mix(_mix(labels + d) + _wrapped_sum(torch.where(edges, token, 0)))
                counts = counts.scatter_add(1, labels.remainder(self.buckets), mask.to(x.dtype))
        return counts

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"depth={self.depth}, buckets={self.buckets}"


def _hash_rows(x: Tensor, salt: int) -> Tensor:
    """One hash per row, int64 (…,) for x (…, F), of the features rounded to eighths and clipped to ±1024.

    Two sums with random integer weights below 2²⁶: all partial sums stay below 2⁵³, so a matrix product in float64 is
    exact, in any order and on any machine.
    """
    F = x.size(-1)
    weights = _mix(torch.arange(2 * F, device=x.device) + 1_000_003 * salt) & (2**26 - 1)
    whole = (x.detach() * GRID).round().clamp(-(2**13), 2**13).double()
    sums = (whole @ weights.view(F, 2).double()).to(torch.int64)
    return _mix(_mix(sums[..., 0] + salt) + sums[..., 1])


def _mix(z: Tensor) -> Tensor:
    """The finaliser of SplitMix64: every bit of the input affects every bit of the output."""
    z = z + -7046029254386353131
    z = (z ^ _shift(z, 30)) * -4658895280553007687
    z = (z ^ _shift(z, 27)) * -7723592293110705685
    return z ^ _shift(z, 31)


def _wrapped_sum(z: Tensor) -> Tensor:
    """Σ z over the last dimension, modulo 2⁶⁴; in halves, because onnxruntime saturates sums that overflow."""
    return (z & (2**32 - 1)).sum(-1) + _shift(z, 32).sum(-1) * 2**32


def _shift(z: Tensor, bits: int) -> Tensor:
    """Logical right shift of int64: z >> bits, filled with zeros instead of the sign."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)
