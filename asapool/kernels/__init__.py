"""The numerical steps of ASAP as functions of tensors, each implemented in three backends.

`reference` is the formula in torch, for any device and dtype; `fused` is compiled loops for float32 and float64 on the
CPU; `dense` works on padded batches, with static shapes. All give the same numbers up to rounding. The functions here
dispatch: a padded graph goes to `dense`, and `backend="auto"` uses `fused` wherever it applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from asapool.errors import ConfigError
from asapool.kernels import dense
from asapool.kernels.backends import BACKENDS, backend_for, fused_layers, is_padded
from asapool.kernels.dense.graph import DenseGraph, DensePattern, Padding
from asapool.kernels.dropout import draw_seed, dropout, dropout_mask
from asapool.kernels.graph import Graph, Loops, Pattern, list_features
from asapool.kernels.ratio import kept_count

__all__ = [
    "BACKENDS",
    "READOUTS",
    "DenseGraph",
    "DensePattern",
    "Graph",
    "Loops",
    "Padding",
    "Pattern",
    "activate",
    "attend",
    "attend_dynamic",
    "check_readout",
    "cluster_max",
    "coarsen",
    "coarsen_features",
    "draw_seed",
    "dropout",
    "dropout_mask",
    "edges_valid",
    "fused_layers",
    "gate",
    "gather",
    "gcn_weights",
    "graph_from_rows",
    "graph_norm",
    "induce",
    "induce_graph",
    "is_padded",
    "join",
    "kept",
    "list_edges",
    "list_features",
    "normalise",
    "pack",
    "pack_rows",
    "project",
    "propagate",
    "reach",
    "readout",
    "score",
    "select",
    "share",
    "strongest",
    "subtree_counts",
    "subtree_labels",
    "sum_messages",
    "sum_neighbours",
]

READOUTS = ("mean", "max", "sum")


def kept(ptr: Tensor | Padding, ratio: float | int) -> Any:
    """The number of nodes that each graph keeps, ⌈kN⌉: (B,), or the sizes of a padded batch after pooling."""
    return ptr.kept(ratio) if isinstance(ptr, Padding) else kept_count(ptr.diff(), ratio)


def edges_valid(edge_index: Tensor, batch: Tensor | None, N: int, *, backend: str = "auto") -> bool:
    """Whether every edge connects two of the N nodes, which belong to the same graph."""
    return bool(backend_for(backend, edge_index, batch).edges_valid(edge_index, batch, N))


def pack(edge_index: Tensor, ptr: Tensor, N: int, *, backend: str = "auto") -> tuple[Pattern, Tensor]:
    """Sort edges into rows and merge repeated ones; also returns the entry of each edge."""
    pattern, slot = backend_for(backend, edge_index).pack(edge_index, ptr, N)
    return pattern, slot


def pack_rows(rowptr: Tensor, col: Tensor, ptr: Tensor, *, backend: str = "auto") -> tuple[Pattern, Tensor]:
    """The same for edges that are already in sorted rows, as in a data set."""
    pattern, slot = backend_for(backend, col).pack_rows(rowptr, col, ptr)
    return pattern, slot


def graph_from_rows(
    ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None, dtype: torch.dtype, *,
    edge_attr: Tensor | None = None, backend: str = "auto",
) -> Graph:  # fmt: skip
    """The packed graph of a batch from a data set; weight None = all ones; edge_attr (E, D), if any."""
    pattern, slot = pack_rows(rowptr, col, ptr, backend=backend)
    given = torch.ones_like(slot, dtype=dtype) if weight is None else weight
    total = given.new_zeros(pattern.col.numel()).index_add(0, slot, given)
    if edge_attr is not None:
        edge_attr = edge_attr.new_zeros(pattern.col.numel(), edge_attr.size(1), dtype=dtype).index_copy(
            0, slot, edge_attr.to(dtype)
        )
    return Graph(pattern, total, edge_attr)


def reach(pattern: Pattern, hops: int, *, backend: str = "auto") -> Pattern:
    """Clusters of radius `hops`: row i lists every node at most that many hops from i."""
    if hops == 1:
        return pattern
    wider: Pattern = (dense if is_padded(pattern) else backend_for(backend, pattern.col)).reach(pattern, hops)
    return wider


def normalise(pattern: Pattern, hat: Tensor, *, backend: str = "auto") -> Tensor:
    """GCN's weights: n_ij = d_i^-½ Â_ij d_j^-½."""
    n: Tensor = backend_for(backend, hat, on=pattern).normalise(pattern, hat)
    return n


def gcn_weights(graph: Graph, loops: Loops = "add", *, backend: str = "auto") -> Tensor:
    """`normalise` of a graph's Â, computed once per graph."""
    return graph.cached("n", loops, lambda loops: normalise(graph.pattern, graph.hat(loops), backend=backend))


def propagate(
    pattern: Pattern,
    weight: Tensor,
    x: Tensor,
    bias: Tensor | None = None,
    relu: bool = False,
    transpose: bool = False,
    *,
    backend: str = "auto",
) -> Tensor:
    """y_i = Σ_j w_ij x_j, optionally plus bias, then ReLU."""
    y: Tensor = backend_for(backend, weight, x, on=pattern).propagate(pattern, weight, x, bias, relu, transpose)
    return y


def sum_neighbours(
    pattern: Pattern, weight: Tensor, x: Tensor, eps: Tensor | None = None, *, backend: str = "auto"
) -> Tensor:
    """y_i = (1 + ε) x_i + Σ_j A_ij x_j."""
    y: Tensor = backend_for(backend, weight, x, eps, on=pattern).sum_neighbours(pattern, weight, x, eps)
    return y


def sum_messages(
    pattern: Pattern, weight: Tensor, x: Tensor, eps: Tensor | None, edge_attr: Tensor, W: Tensor, *,
    backend: str = "auto",
) -> Tensor:  # fmt: skip
    """y_i = (1 + ε) x_i + Σ_j A_ij max(x_j + W e_ij, 0)."""
    y: Tensor = backend_for(backend, weight, x, eps, edge_attr, W, on=pattern).sum_messages(
        pattern, weight, x, eps, edge_attr, W
    )
    return y


def activate(h: Tensor, bias: Tensor, *, backend: str = "auto") -> Tensor:
    """max(h + bias, 0)."""
    y: Tensor = backend_for(backend, h, bias, on=h).activate(h, bias)
    return y


def cluster_max(clusters: Pattern, x: Tensor, *, backend: str = "auto") -> Tensor:
    """m_i = max_{j∈c(i)} x_j."""
    m: Tensor = backend_for(backend, x, on=clusters).cluster_max(clusters, x)
    return m


def attend(
    clusters: Pattern, query: Tensor | None, token: Tensor, negative_slope: float = 1.0, *, backend: str = "auto"
) -> Tensor:
    """α_ij = softmax_j(LeakyReLU(query_i + token_j))."""
    alpha: Tensor = backend_for(backend, query, token, on=clusters).attend(clusters, query, token, negative_slope)
    return alpha


def attend_dynamic(
    clusters: Pattern, query: Tensor, token: Tensor, w: Tensor, negative_slope: float = 0.2, *, backend: str = "auto"
) -> Tensor:
    """α_ij = softmax_j(wᵀ LeakyReLU(query_i + token_j))."""
    inputs = (query, token, w)
    alpha: Tensor = backend_for(backend, *inputs, on=clusters).attend_dynamic(clusters, *inputs, negative_slope)
    return alpha


def join(
    clusters: Pattern, pattern: Pattern, fitness: Tensor, perm: Tensor, ptr: Tensor, *, backend: str = "auto"
) -> tuple[Pattern, Tensor]:
    """The kept clusters, extended so that every node is in one, and the position of each entry in `clusters`."""
    if is_padded(pattern):
        raise ConfigError(
            'assign="members" is not implemented for padded batches; use assign="clusters" or a packed batch'
        )
    members, source = backend_for(backend, fitness).join(clusters, pattern, fitness, perm, ptr)
    return members, source


def share(members: Pattern, source: Tensor, alpha: Tensor, fitness: Tensor, *, backend: str = "auto") -> Tensor:
    """M_jp = φ_p α_pj / Σ_q φ_q α_qj: the shares of every node in the kept clusters that contain it."""
    M: Tensor = backend_for(backend, alpha, fitness).share(members, source, alpha, fitness)
    return M


def project(x: Tensor, w: Tensor, negative_slope: float = 1.0, *, backend: str = "auto") -> Tensor:
    """token_i = wᵀ LeakyReLU(x_i)."""
    token: Tensor = backend_for(backend, x, w, on=x).project(x, w, negative_slope)
    return token


def score(pattern: Pattern, weight: Tensor | None, u: Tensor, loops: bool = False, *, backend: str = "auto") -> Tensor:
    """φ_i = u1_i + Σ_{j∈N(i)} A_ij (u2_i − u3_j)."""
    phi: Tensor = backend_for(backend, weight, u, on=pattern).score(pattern, weight, u, loops)
    return phi


def select(fitness: Tensor, ptr: Tensor, count: Tensor, *, backend: str = "auto") -> tuple[Tensor, Tensor]:
    """The `count` fittest nodes of each graph, best first; ties go to the lower number."""
    perm, kept_ptr = backend_for(backend, fitness, on=ptr).select(fitness, ptr, count)
    return perm, kept_ptr


def gate(x: Tensor, fitness: Tensor, perm: Tensor, *, backend: str = "auto") -> Tensor:
    """X^p = φ ⊙ x of the kept nodes."""
    kept: Tensor = backend_for(backend, x, fitness, on=x).gate(x, fitness, perm)
    return kept


def gather(
    clusters: Pattern, alpha: Tensor, x: Tensor, fitness: Tensor, perm: Tensor, *, backend: str = "auto"
) -> Tensor:
    """X^p = φ ⊙ (S x) of the kept clusters; the others are not formed."""
    kept: Tensor = backend_for(backend, alpha, x, fitness, on=clusters).gather(clusters, alpha, x, fitness, perm)
    return kept


def coarsen(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, hat: Tensor, perm: Tensor, ptr: Tensor,
    max_neighbours: int | None = None, *, backend: str = "auto",
) -> tuple[Pattern, Tensor]:  # fmt: skip
    """A^p = Ŝᵀ Â Ŝ; with max_neighbours, only the strongest edges of a graph beyond the limit are formed."""
    module = backend_for(backend, alpha, hat, on=pattern)
    pooled, weight = module.coarsen(clusters, alpha, pattern, hat, perm, ptr, max_neighbours)
    return pooled, weight


def coarsen_features(
    clusters: Pattern, alpha: Tensor, pattern: Pattern, weight: Tensor, edge_attr: Tensor, perm: Tensor,
    pooled: Pattern, *, backend: str = "auto",
) -> Tensor:  # fmt: skip
    """e^p_pq = Σ_jl Ŝ_jp A_jl Ŝ_lq e_jl / Σ_jl Ŝ_jp A_jl Ŝ_lq, for the entries of A^p."""
    chosen = backend_for(backend, alpha, weight, edge_attr, on=pattern)
    e: Tensor = chosen.coarsen_features(clusters, alpha, pattern, weight, edge_attr, perm, pooled)
    return e


def induce_graph(graph: Graph, perm: Tensor, ptr: Tensor, *, backend: str = "auto") -> Graph:
    """`induce` of a graph's weights and, if it has them, edge features."""
    if graph.edge_attr is None:
        return type(graph)(*induce(graph.pattern, graph.weight, perm, ptr, backend=backend))
    both = torch.cat([graph.weight.unsqueeze(-1), graph.edge_attr], dim=-1)
    pattern, kept_both = induce(graph.pattern, both, perm, ptr, backend=backend)
    return type(graph)(pattern, kept_both[..., 0].contiguous(), kept_both[..., 1:].contiguous())


def induce(
    pattern: Pattern, weight: Tensor, perm: Tensor, ptr: Tensor, *, backend: str = "auto"
) -> tuple[Pattern, Tensor]:
    """The input's edges between kept nodes."""
    pooled, kept = backend_for(backend, weight, on=pattern).induce(pattern, weight, perm, ptr)
    return pooled, kept


def list_edges(graph: Graph, place: Tensor | None = None, *, backend: str = "auto") -> tuple[Tensor, Tensor]:
    """edge_index (2, E) and weights in torch_geometric's form, with node i numbered place_i."""
    edge_index, weight = backend_for(backend, graph.weight, on=graph).list_edges(graph, place)
    return edge_index, weight


def strongest(graph: Graph, most: int, *, backend: str = "auto") -> Graph:
    """At most the `most` strongest edges of every node."""
    thinned: Graph = backend_for(backend, graph.weight, on=graph).strongest(graph, most)
    return thinned


def readout(
    x: Tensor, ptr: Tensor | Padding, parts: Sequence[str] = ("mean", "max"), *, backend: str = "auto"
) -> Tensor:
    """Mean, maximum or sum over the nodes of each graph, concatenated, (B, len(parts)·F)."""
    r: Tensor = backend_for(backend, x, on=ptr).readout(x, ptr, check_readout(parts))
    return r


def check_readout(parts: Sequence[str]) -> tuple[str, ...]:
    """Validate the names of readouts, and return them as a tuple.

    >>> check_readout(["sum", "max"])
    ('sum', 'max')
    """
    names = (parts,) if isinstance(parts, str) else tuple(parts)
    if not names or len(set(names)) < len(names) or not set(names) <= set(READOUTS):
        raise ConfigError(f"readout must be one or more of {', '.join(READOUTS)}, each once, got {parts!r}")
    return names


def subtree_labels(
    x: Tensor, rowptr: Tensor, col: Tensor, depth: int, edge_attr: Tensor | None = None, *, backend: str = "auto"
) -> Tensor:
    """The Weisfeiler-Lehman labels of all nodes for depth 0 … `depth`, (depth + 1, N) int64.

    >>> labels = subtree_labels(torch.ones(3, 1), torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1]), depth=1)
    >>> [len(one.unique()) for one in labels]  # the ends of a path differ from its middle after one refinement
    [1, 2]
    """
    labels: Tensor = backend_for(backend, x, edge_attr).subtree_labels(x, rowptr, col, depth, edge_attr)
    return labels


def subtree_counts(
    x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, depth: int, buckets: int, edge_attr: Tensor | None = None, *,
    backend: str = "auto",
) -> Tensor:  # fmt: skip
    """How often the labels of `subtree_labels`, modulo `buckets`, occur in each graph, (B, buckets)."""
    module = backend_for(backend, x, edge_attr)
    counts: Tensor = module.subtree_counts(x, ptr, rowptr, col, depth, buckets, edge_attr)
    return counts


def graph_norm(
    x: Tensor, ptr: Tensor, weight: Tensor, bias: Tensor, mean_scale: Tensor, eps: float = 1e-5, *,
    backend: str = "auto",
) -> Tensor:  # fmt: skip
    """y_i = γ (x_i − α μ_b) / √(mean (x_i − α μ_b)² + ε) + β over the nodes of each graph."""
    y: Tensor = backend_for(backend, x, weight, on=ptr).graph_norm(x, ptr, weight, bias, mean_scale, eps)
    return y
