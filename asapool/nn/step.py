"""Results of a pooling layer: in torch_geometric's form, and as a step with all intermediate values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from asapool import kernels
from asapool.errors import InputError
from asapool.kernels import Graph
from asapool.nn.attention import Assignment
from asapool.nn.step_networks import input_network, pooled_network

if TYPE_CHECKING:
    import networkx as nx


class Pooled(NamedTuple):
    """A pooled batch: row k of x (K, F) is node k of edge_index (2, E), and was node perm[k] (K,) of the input."""

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    batch: Tensor
    perm: Tensor


class PooledWithFeatures(NamedTuple):
    """The same with the features edge_attr (E, D) of the pooled edges."""

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    batch: Tensor
    perm: Tensor
    edge_attr: Tensor


@dataclass(frozen=True, eq=False)
class PoolStep:
    """One pooling step with all intermediate values.

    before, after: the packed graphs (after is None if its edges were not requested). x_before (N, F): the input.
    assignment: α of every node in every cluster, kept or not. phi (N,): the fitness of all clusters. perm (K,),
    ptr (B+1,): the kept centres, graph by graph, in the order of their nodes or fittest first. x (K, F): their
    features. order (N,): the user's number of each packed node, if the batch was not sorted; else None.

    These fields use packed node numbers. The properties fitness, centres, cluster_x and S and the results of lift and
    to_networkx use the node numbers of the user.

    >>> from asapool.nn import ASAPooling
    >>> ASAPooling(1).explain(torch.ones(4, 1), torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]))
    PoolStep(graphs=1, nodes=4, kept=2, features=1, pooled_edges=4)
    """

    before: Graph
    x_before: Tensor
    assignment: Assignment
    aggregate: str
    phi: Tensor
    perm: Tensor
    ptr: Tensor
    x: Tensor
    after: Graph | None
    order: Tensor | None = None
    backend: str = "auto"
    members: Assignment | None = None

    def __repr__(self) -> str:
        """The sizes; self-loops and both directions of an edge count as pooled edges."""
        if kernels.is_padded(self.before):
            return f"PoolStep(padded, x_before={tuple(self.x_before.shape)}, x={tuple(self.x.shape)})"
        sizes = {"graphs": self.ptr.numel() - 1, "nodes": self.phi.numel(), "kept": self.perm.numel()}
        sizes["features"] = self.x.size(-1)
        if self.after is not None:
            sizes["pooled_edges"] = int((self.after.weight != 0).sum())
        return f"PoolStep({', '.join(f'{name}={size}' for name, size in sizes.items())})"

    @property
    def centres(self) -> Tensor:
        """Kept centres (K,) by the node numbers of the user."""
        return self.perm if self.order is None else self.order[self.perm]

    @property
    def fitness(self) -> Tensor:
        """φ (N,) of all clusters, kept or not, by the node numbers of the user."""
        return self._in_input_order(self.phi)

    @property
    def cluster_x(self) -> Tensor:
        """Features x^c (N, F) of all clusters, kept or not, by the node numbers of the user."""
        if self.aggregate == "none":
            return self._in_input_order(self.x_before)
        return self._in_input_order(kernels.propagate(*self.assignment, self.x_before, backend=self.backend))

    @property
    def S(self) -> Tensor:  # noqa: N802  the paper's letter
        """The assignment Ŝ (N, K) of nodes to kept clusters, sparse, by the node numbers of the user.

        Its columns sum to 1; with assign="members" its rows do.
        """
        clusters, alpha = self.assignment if self.members is None else self.members
        place = self._place()[clusters.row]
        kept = place >= 0
        node = clusters.col[kept] if self.order is None else self.order[clusters.col[kept]]
        size = (clusters.diag.numel(), self.perm.numel())
        return torch.sparse_coo_tensor(torch.stack([node, place[kept]]), alpha[kept], size, check_invariants=False)

    @property
    def adjacency(self) -> Tensor:
        """The pooled adjacency A^p (K, K), sparse."""
        graph = self._after()
        K = self.perm.numel()
        where = torch.stack([graph.pattern.row, graph.pattern.col])
        return torch.sparse_coo_tensor(where, graph.weight, (K, K), check_invariants=False)

    def lift(self, h: Tensor) -> Tensor:
        """Map features of the kept clusters back to the nodes of the input: y_l = Σ_p Ŝ_lp h_p.

        h (K, C); returns (N, C), zero for nodes that belong to no kept cluster.
        """
        K = self.perm.numel()
        if h.dim() != 2 or h.size(0) != K:
            raise InputError(f"lift takes one row per kept cluster, shape ({K}, channels), got {tuple(h.shape)}")
        clusters, alpha = self.assignment if self.members is None else self.members
        spread = h.new_zeros(clusters.diag.numel(), h.size(1)).index_copy(0, self.perm, h)
        return self._in_input_order(kernels.propagate(clusters, alpha, spread, transpose=True, backend=self.backend))

    def pooled(self) -> Pooled:
        """The result in torch_geometric's form: the clusters of each graph by decreasing fitness."""
        graph = self._after()
        best, place = self._ranking()
        edge_index, edge_weight = kernels.list_edges(graph, place, backend=self.backend)
        return Pooled(self.x.index_select(0, best), edge_index, edge_weight, graph.pattern.batch, self.centres[best])

    def pooled_with_features(self) -> PooledWithFeatures:
        """The same with the features of the pooled edges."""
        edge_attr = kernels.list_features(self._after())
        if edge_attr is None:
            raise InputError("this step was computed without edge features; call the layer with edge_attr=")
        return PooledWithFeatures(*self.pooled(), edge_attr)

    def to_networkx(self, graph: int = 0, *, pooled: bool = False) -> nx.Graph[int] | nx.DiGraph[int]:
        """A graph of the batch before or after pooling, to draw it with networkx or to save it.

        A graph with edges in only one direction, or with two different weights, becomes a DiGraph. Edges have their
        weight.

        Args:
            graph: its number in the batch.
            pooled: False = the input, whose nodes have their fitness, whether they were kept as centres, and clusters,
                {kept cluster: membership}. True = the kept clusters k, the rows of `x`, with their medoid (the centre),
                fitness and members, {node: membership}.

        Returns:
            The graph, with the node numbers of the batch.
        """
        count = self.ptr.numel() - 1
        if not 0 <= graph < count:
            raise InputError(f"graph must be 0 to {count - 1}, the graphs of this batch, got {graph}")
        return pooled_network(self, self._after(), graph) if pooled else input_network(self, graph)

    def fittest_first(self) -> PoolStep:
        """The same step with the kept clusters of each graph numbered by decreasing fitness."""
        best, place = self._ranking()
        after = self.after
        if after is not None:
            old = after.pattern
            edges = torch.stack([place[old.col], place[old.row]])
            pattern, slot = kernels.pack(edges, old.ptr, best.numel(), backend=self.backend)
            weight = torch.zeros_like(after.weight).index_copy(0, slot, after.weight)
            e = after.edge_attr
            after = Graph(pattern, weight, None if e is None else torch.zeros_like(e).index_copy(0, slot, e))
        return replace(self, perm=self.perm[best], x=self.x[best], after=after)

    def _ranking(self) -> tuple[Tensor, Tensor]:
        """The kept clusters from fittest to least fit, graph by graph, and the rank of each."""
        phi, count = self.phi.detach()[self.perm], self.ptr.diff()
        if torch.compiler.is_compiling():  # there the length of `select` would be another unknown than that of perm
            best = torch.argsort(phi, descending=True, stable=True)
            batch = torch.repeat_interleave(count, output_size=best.numel())
            best = best[torch.argsort(batch[best], stable=True)]
        else:
            best, _ = kernels.select(phi, self.ptr, count, backend=self.backend)
        return best, torch.empty_like(best).index_copy(0, best, torch.arange(best.numel(), device=best.device))

    def _in_input_order(self, y: Tensor) -> Tensor:
        """Reorder the rows from packed node numbers to those of the user."""
        return y if self.order is None else torch.empty_like(y).index_copy(0, self.order, y)

    def _after(self) -> Graph:
        if self.after is None:
            raise InputError("this step was computed without pooled edges; call step(..., edges=True)")
        return self.after

    def _place(self) -> Tensor:
        place = self.perm.new_full((self.assignment.clusters.diag.numel(),), -1)
        place[self.perm] = torch.arange(self.perm.numel(), device=self.perm.device)
        return place
