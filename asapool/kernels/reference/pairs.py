"""A^p = Ŝᵀ Â Ŝ of one graph at chosen pairs of kept clusters: values and gradients, without forming the rest.

The entry of a pair (p, q) is a sum over walks p ∋ j → l ∈ q: A^p_pq = Σ_jl α_pj Â_jl α_ql. For each member j, either
the edges of j are followed and l is looked up in q, or the members of q are visited and the edge is looked up,
whichever are fewer: no pair visits all neighbours of a hub.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from asapool.kernels.reference.pattern import index_of

BUDGET = 2**20  # walks in memory at a time


class OneGraph(NamedTuple):
    """Ŝ and Â of one graph, nodes and kept clusters numbered from 0.

    s_ptr (K+1,), s_node, s_at: members of the kept clusters, ascending, and the positions of their α in the batch;
    a_ptr (n+1,), a_col: the rows of Â, whose values begin at a_first in the batch.
    """

    s_ptr: Tensor
    s_node: Tensor
    s_at: Tensor
    a_ptr: Tensor
    a_col: Tensor
    a_first: int

    @classmethod
    def cut(
        cls, clusters: tuple[Tensor, Tensor], edges: tuple[Tensor, Tensor], perm: Tensor, lo: int, hi: int
    ) -> OneGraph:
        """The graph with nodes lo … hi − 1; clusters and edges: rowptr and col; perm: its kept clusters."""
        (c_rowptr, c_col), (rowptr, col) = clusters, edges
        counts = c_rowptr[perm + 1] - c_rowptr[perm]
        _, at = expand(c_rowptr[perm], counts)
        first, last = int(rowptr[lo]), int(rowptr[hi])
        return cls(index_of(counts), c_col[at] - lo, at, rowptr[lo : hi + 1] - first, col[first:last] - lo, first)

    @property
    def nodes(self) -> int:
        """Number of nodes, n."""
        return self.a_ptr.numel() - 1

    @property
    def a_at(self) -> slice:
        """The positions of the values of Â in the batch."""
        return slice(self.a_first, self.a_first + self.a_col.numel())

    @property
    def s_row(self) -> Tensor:
        """Kept cluster of every membership."""
        return torch.repeat_interleave(self.s_ptr.diff(), output_size=self.s_node.numel())

    @property
    def a_row(self) -> Tensor:
        """Row of every entry of Â."""
        return torch.repeat_interleave(self.a_ptr.diff(), output_size=self.a_col.numel())


def expand(starts: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The index of the range for each number, and the numbers start … start + count − 1 of all ranges.

    >>> [t.tolist() for t in expand(torch.tensor([5, 0]), torch.tensor([2, 3]))]
    [[0, 0, 1, 1, 1], [5, 6, 0, 1, 2]]
    """
    owner = torch.repeat_interleave(counts)
    shift = starts - (counts.cumsum(0) - counts)
    return owner, torch.arange(owner.numel(), device=owner.device) + shift[owner]


def portions(cost: Tensor, budget: int = BUDGET) -> Iterator[slice]:
    """Cut a list into slices that cost at most the budget, or have one element.

    >>> list(portions(torch.tensor([3, 3, 9, 1]), 6))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    total, start = cost.cumsum(0), 0
    while start < cost.numel():
        spent = int(total[start - 1]) if start else 0
        stop = max(start + 1, int(torch.searchsorted(total, spent + budget, right=True)))
        yield slice(start, stop)
        start = stop


def find(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The position of each wanted number in the sorted keys, and whether it is present."""
    if keys.numel() == 0:
        return torch.zeros_like(wanted), torch.zeros_like(wanted, dtype=torch.bool)
    at = torch.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    return at, keys[at] == wanted


def _walks(graph: OneGraph, p: Tensor, q: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """All walks of the pairs, a portion at a time: the pair, and the entries of Ŝ, Â and Ŝ along the walk."""
    n, size, degree = graph.nodes, graph.s_ptr.diff(), graph.a_ptr.diff()
    members, edges = graph.s_row * n + graph.s_node, graph.a_row * n + graph.a_col
    reach = torch.zeros_like(size).index_add(0, graph.s_row, degree[graph.s_node])
    for part in portions(torch.minimum(reach[p], size[p] * size[q])):
        p_, q_ = p[part], q[part]
        pair, k = expand(graph.s_ptr[p_], size[p_])
        j = graph.s_node[k]
        along = degree[j] <= size[q_[pair]]
        x, e = expand(graph.a_ptr[j[along]], degree[j[along]])
        at, met = find(members, q_[pair[along][x]] * n + graph.a_col[e])
        yield part.start + pair[along][x][met], k[along][x][met], e[met], at[met]
        pair, k, j = pair[~along], k[~along], j[~along]
        x, m = expand(graph.s_ptr[q_[pair]], size[q_[pair]])
        at, met = find(edges, j[x] * n + graph.s_node[m])
        yield part.start + pair[x][met], k[x][met], at[met], m[met]


def pair_weights(graph: OneGraph, alpha: Tensor, hat: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """A^p_pq of every pair, summed in float64; alpha and hat are those of the batch."""
    s, a = alpha[graph.s_at].double(), hat[graph.a_at].double()
    weight = s.new_zeros(p.numel())
    for pair, k, e, m in _walks(graph, p, q):
        weight.index_add_(0, pair, s[k] * a[e] * s[m])
    return weight.to(alpha.dtype)


def add_pair_gradients(
    graph: OneGraph, alpha: Tensor, hat: Tensor, p: Tensor, q: Tensor, gradient: Tensor, dalpha: Tensor, dhat: Tensor
) -> None:
    """Add the gradients of the memberships and edges of this graph to dalpha and dhat, which are those of the batch."""
    s, a, g = alpha[graph.s_at].double(), hat[graph.a_at].double(), gradient.double()
    ds, da = torch.zeros_like(s), torch.zeros_like(a)
    for pair, k, e, m in _walks(graph, p, q):
        ds.index_add_(0, k, g[pair] * a[e] * s[m])
        ds.index_add_(0, m, g[pair] * a[e] * s[k])
        da.index_add_(0, e, g[pair] * s[k] * s[m])
    dalpha.index_add_(0, graph.s_at, ds.to(dalpha.dtype))
    dhat[graph.a_at] += da.to(dhat.dtype)
