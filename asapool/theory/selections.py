"""Pools every selection of kept nodes with the real operators: which results have an edge, which are connected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import torch
from torch import Tensor

from asapool import kernels
from asapool.errors import InputError, choose
from asapool.kernels import Graph, Pattern
from asapool.theory.bounds import (
    Family,
    Method,
    edge_reach,
    largest_disconnected,
    optimum_nodes,
    path_optimum,
    tree_optimum,
)
from asapool.theory.exhaustive import all_trees
from asapool.theory.graphs import Neighbours, neighbours, path_graph
from asapool.theory.operators import undirected_edges

PowerOf = Literal["edges", "graph"]


def pool_selections(
    graph: Any, selections: Sequence[Sequence[int]], method: Method, h: int = 1, power: int = 1,
    power_of: PowerOf = "edges", backend: str = "reference",
) -> tuple[Pattern, Tensor]:  # fmt: skip
    """Pool one copy of the graph per selection, all copies in one batch; returns A^p as structure and weights.

    TopK and SAGPool: A^p = Â^p restricted to the kept nodes, p = power·h.
    ASAP: A^p = Ŝᵀ Â^power Ŝ, clusters c_h of the graph (power_of="edges") or of its power-th power (power_of="graph").

    >>> pattern, weight = pool_selections([[1], [0, 2], [1]], [(0, 2), (0, 1)], "topk")
    >>> list(zip(pattern.row.tolist(), pattern.col.tolist(), weight.tolist()))
    [(0, 0, 0.0), (1, 1, 0.0), (2, 2, 0.0), (2, 3, 1.0), (3, 2, 1.0), (3, 3, 0.0)]
    """
    choose("power_of", power_of, ("edges", "graph"))
    nb: Neighbours = neighbours(graph)
    N, M = len(nb), len(selections)
    if not all(selections):
        raise InputError("a selection is empty, expected at least one kept node in each. Leave empty selections out.")
    edges = undirected_edges(nb)
    shift = N * torch.arange(M)
    copies = (edges[:, None, :] + shift[None, :, None]).reshape(2, -1)
    both = torch.cat([copies, copies.flip(0)], dim=1)
    pattern, _ = kernels.pack(both, N * torch.arange(M + 1), N * M, backend=backend)
    perm = torch.tensor([int(i) + N * m for m, kept in enumerate(selections) for i in kept])
    ptr = torch.tensor([0, *map(len, selections)]).cumsum(0)
    span = edge_reach(method, h)
    if method != "asap":
        wide = kernels.reach(pattern, power * span, backend=backend)
        return kernels.induce(wide, _ones_off_diagonal(wide), perm, ptr, backend=backend)
    wide = kernels.reach(pattern, power, backend=backend)
    clusters = kernels.reach(pattern, h if power_of == "edges" else h * power, backend=backend)
    alpha = kernels.attend(clusters, None, torch.zeros(N * M), backend=backend)  # any positive α will do
    hat = Graph(wide, _ones_off_diagonal(wide)).hat("add")
    return kernels.coarsen(clusters, alpha, wide, hat, perm, ptr, backend=backend)


def shapes(pooled: Pattern, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Undirected edges (without self-loops) and connected components of every pooled graph of a batch, (B,) each.

    >>> edges, pieces = shapes(*pool_selections([[1], [0, 2], [1]], [(0, 2), (0, 1)], "topk"))
    >>> edges.tolist(), pieces.tolist()
    ([0, 1], [2, 1])
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    row, col, batch = pooled.row, pooled.col, pooled.batch
    present = (row != col) & (weight != 0)
    B, K = pooled.ptr.numel() - 1, pooled.diag.numel()
    edges = torch.bincount(batch[row[present]], minlength=B) // 2
    matrix = csr_array(
        (torch.ones(int(present.sum())).numpy(), (row[present].numpy(), col[present].numpy())), shape=(K, K)
    )
    count, label = connected_components(matrix, directed=False)
    graph_of = torch.zeros(count, dtype=torch.long)
    graph_of[torch.from_numpy(label).long()] = batch
    return edges, torch.bincount(graph_of, minlength=B)


def joined(graph: Any, method: Method, h: int = 1, power: int = 1, power_of: PowerOf = "edges") -> Tensor:
    """Which pairs of nodes are connected in the pooled graph if both are kept, (N, N).

    >>> joined([[1], [0, 2], [1]], "topk").int().tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """
    N = len(neighbours(graph))
    pooled, weight = pool_selections(graph, [range(N)], method, h, power, power_of)
    pairs = torch.zeros(N, N, dtype=torch.bool)
    pairs[pooled.row, pooled.col] = weight != 0
    return pairs & ~torch.eye(N, dtype=torch.bool)


@dataclass(frozen=True, kw_only=True)
class SelectionRow:
    """Results over all selections on all trees, or on the path, of N nodes for one method."""

    N: int
    family: Family
    method: Method
    h: int
    selections: int  # number of selections pooled
    edgeless: int  # size of the largest selection without edges
    formula: int  # the largest n*_{RF+1} in the family
    disconnected: int  # size of the largest selection whose pooled graph is disconnected
    disconnected_formula: int  # N − RF, or 0
    mismatches: int  # graphs whose largest edgeless selection does not have their own n*_{RF+1} nodes


def try_all_selections(
    max_nodes: int, method: Method, h: int = 1, family: Family = "tree", backend: str = "reference"
) -> list[SelectionRow]:
    """Pool every selection on every tree (or path) of up to max_nodes nodes and compare it with the formulas.

    >>> [(row.N, row.edgeless, row.formula) for row in try_all_selections(5, "asap")]
    [(1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (5, 2, 2)]
    """
    choose("family", family, ("tree", "path"))
    rows = []
    apart = edge_reach(method, h) + 1
    for N in range(1, max_nodes + 1):
        chosen = [kept for K in range(1, N + 1) for kept in combinations(range(N), K)]
        size = torch.tensor([len(kept) for kept in chosen])
        edgeless = disconnected = mismatches = count = 0
        for graph in all_trees(N) if family == "tree" else (path_graph(N),):
            edges, pieces = shapes(*pool_selections(graph, chosen, method, h, backend=backend))
            largest = int(size[edges == 0].max())
            mismatches += largest != optimum_nodes(graph, apart)
            edgeless = max(edgeless, largest)
            disconnected = max(disconnected, int((size * (pieces > 1)).max()))
            count += len(chosen)
        row = SelectionRow(
            N=N, family=family, method=method, h=h, selections=count, edgeless=edgeless,
            formula=tree_optimum(N, apart) if family == "tree" else path_optimum(N, apart),
            disconnected=disconnected, disconnected_formula=largest_disconnected(N, method, h), mismatches=mismatches,
        )  # fmt: skip
        rows.append(row)
    return rows


def _ones_off_diagonal(pattern: Pattern) -> Tensor:
    return (pattern.row != pattern.col).to(torch.float32)
