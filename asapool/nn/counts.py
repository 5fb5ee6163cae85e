"""Hashed Weisfeiler-Lehman subtree counts: how often each rooted neighbourhood occurs in a graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError
from asapool.kernels import DenseGraph

DEEPEST = 16
MOST_BUCKETS = 2**20


class WLCounts(nn.Module):
    """Count the rooted neighbourhoods of each graph, hashed into a fixed number of buckets.

    z_bk = |{(i, d) : i in graph b, d ≤ depth, cᵈ_i mod buckets = k}|, with the Weisfeiler-Lehman labels c⁰_i = h(x_i),
    cᵈ_i = h(cᵈ⁻¹_i, Σ_{j→i} h(cᵈ⁻¹_j, e_ij)) and a 64-bit hash h. Nothing is learned, and equal graphs have equal
    counts on every machine.

    Args:
        depth: number of refinements; depth 0 counts node labels.
        buckets: number of counters; different neighbourhoods rarely share one.
        backend: "auto", "reference" or "fused"; see asapool.kernels.

    >>> path = torch.tensor([0, 3]), torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1])
    >>> WLCounts(depth=1, buckets=64)(torch.ones(3, 1), *path).sort(descending=True).values[0, :4].tolist()
    [3.0, 2.0, 1.0, 0.0]
    """

    def __init__(self, depth: int = 3, buckets: int = 2048, *, backend: str = "auto") -> None:
        super().__init__()
        for name, value, least, most in (("depth", depth, 0, DEEPEST), ("buckets", buckets, 1, MOST_BUCKETS)):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ConfigError(f"WLCounts: {name} must be a whole number from {least} to {most}, got {value!r}")
        self.depth, self.buckets, self.backend = depth, buckets, backend

    def forward(self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The fields of a batch: x (N, F), ptr (B+1,), rowptr (N+1,), col (E,), edge_attr (E, D); (B, buckets)."""
        with torch.no_grad():
            return kernels.subtree_counts(
                x, ptr, rowptr, col, self.depth, self.buckets, edge_attr, backend=self.backend
            )

    def padded(self, x: Tensor, graph: DenseGraph) -> Tensor:
        """The same counts (B, buckets) of a padded batch, x (B, N, F)."""
        with torch.no_grad():
            return kernels.dense.subtree_counts(x, graph, self.depth, self.buckets)

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"depth={self.depth}, buckets={self.buckets}"
