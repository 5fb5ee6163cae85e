"""Self-attention inside a cluster: Master2Token, Token2Token, Source2Token.

All three share one form, α_ij = softmax_j(score of member j in cluster i), and differ in the query:

    Master2Token   wᵀσ(W m_i ‖ x_j)      m_i = max (or mean) of the cluster
    Token2Token    wᵀσ(W x_i ‖ W x_j)    the medoid alone
    Source2Token   w₂ᵀσ(W x_j)           no query

σ = LeakyReLU is elementwise, so wᵀσ(a ‖ b) = w₁ᵀσ(a) + w₂ᵀσ(b): two numbers per node, never an E×2F tensor.
With σ *inside* (the paper's equation) the query term is the same for every member of a cluster, so the softmax cancels
it: as printed, the query has no influence, and it is not computed. With σ *outside* (the code of the authors and of
torch_geometric), σ(w₁ᵀ W m_i + w₂ᵀ x_j), it has one, and w₁ᵀW m_i = (Wᵀw₁)ᵀ m_i needs no matrix product.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.errors import ConfigError, choose
from asapool.kernels import DensePattern, Graph, Pattern
from asapool.nn.hooks import is_plain
from asapool.nn.inputs import as_graph, check_belongs, check_count, check_dropout


class Assignment(NamedTuple):
    """Memberships of nodes in clusters: alpha[e] is α_ij for the e-th entry (i, j) of `clusters`."""

    clusters: Pattern
    alpha: Tensor

    def to_sparse(self) -> Tensor:
        """S (N, N) as a sparse tensor with S_ji = α_ij: column i is the cluster of i, and sums to 1."""
        N = self.clusters.diag.numel()
        where = torch.stack([self.clusters.col, self.clusters.row])
        return torch.sparse_coo_tensor(where, self.alpha, (N, N), check_invariants=False)


class ClusterAttention(nn.Module):
    """Base class of the attentions: the weights W and w = w₁ ‖ w₂, and the softmax from scores to memberships."""

    def __init__(
        self, channels: int, *, sigma: str = "inside", negative_slope: float = 0.2, dropout: float = 0.0,
        backend: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__()
        self.channels, self.dropout = check_count("channels", channels), check_dropout(dropout)
        self.negative_slope = negative_slope
        self.sigma = choose("sigma", sigma, ("inside", "outside"))
        self.backend = choose("backend", backend, kernels.BACKENDS)
        self.W = nn.Linear(channels, channels)
        self.w = nn.Parameter(torch.empty(2 * channels))
        self.c = nn.Parameter(torch.zeros(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot W, w uniform in ±1/√(2F), zero biases."""
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.zeros_(self.W.bias)
        bound = 1 / math.sqrt(2 * self.channels)
        nn.init.uniform_(self.w, -bound, bound)
        nn.init.zeros_(self.c)

    def scores(self, x: Tensor, clusters: Pattern) -> tuple[Tensor | None, Tensor]:
        """Query term (N,), None if it cancels, and token term (N,) of the score."""
        raise ConfigError("ClusterAttention is only a base class; use Master2Token, Token2Token or Source2Token")

    def forward(
        self, x: Tensor, edge_index: Tensor | Graph | Pattern, edge_weight: Tensor | None = None, hops: int = 1
    ) -> Assignment:
        """x (N, F) with edges (2, E), a packed graph, or the pattern of the clusters; returns the memberships."""
        if not isinstance(edge_index, (Pattern, DensePattern)):
            x, graph = as_graph(x, edge_index, edge_weight, self.channels, self.backend)
            edge_index = kernels.reach(graph.pattern, check_count("hops", hops), backend=self.backend)
        check_belongs(x, edge_index)
        alpha = self.memberships(x, edge_index)
        mask = self.mask(alpha.numel(), alpha)
        return Assignment(edge_index, alpha if mask is None else alpha * mask.view_as(alpha))

    def memberships(self, x: Tensor, clusters: Pattern) -> Tensor:
        """α before dropout, (E,)."""
        query, token = self.scores(x, clusters)
        slope = 1.0 if self.sigma == "inside" else self.negative_slope
        return kernels.attend(clusters, query, token, slope, backend=self.backend)

    def mask(self, entries: int, like: Tensor) -> Tensor | None:
        """Dropout factor of every membership, 0 or 1/(1 − p); None without dropout."""
        if self.dropout == 0 or not self.training:
            return None
        return kernels.dropout_mask(entries, self.dropout, like, backend=self.backend)

    def _token(self, h: Tensor) -> Tensor:
        """w₂ᵀσ(h_j), or w₂ᵀh_j + c if σ is outside."""
        w2 = self.w[self.channels :]
        if self.sigma == "inside":
            return kernels.project(h, w2, self.negative_slope, backend=self.backend)
        return kernels.project(h, w2, backend=self.backend) + self.c

    def folded(self) -> tuple[Tensor, Tensor]:
        """Wᵀw₁ and w₁ᵀb: with these, w₁ᵀ(W m + b) is a dot product."""
        w1 = self.w[: self.channels]
        return w1 @ self.W.weight, w1 @ self.W.bias

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.channels}, sigma={self.sigma!r}, dropout={self.dropout}"


class Master2Token(ClusterAttention):
    """The cluster is the query: α_ij = softmax_j(wᵀσ(W m_i ‖ x_j)), m_i = max_{j∈c(i)} x_j.

    >>> layer = Master2Token(2)
    >>> S = layer(torch.randn(3, 2), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).to_sparse()
    >>> torch.allclose(S.to_dense().sum(0), torch.ones(3))
    True
    """

    def __init__(
        self, channels: int, *, master: str = "max", sigma: str = "inside", negative_slope: float = 0.2,
        dropout: float = 0.0, backend: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(channels, sigma=sigma, negative_slope=negative_slope, dropout=dropout, backend=backend)
        self.master = choose("master", master, ("max", "mean"))

    def query(self, x: Tensor, clusters: Pattern) -> Tensor:
        """The master query m (N, F) of every cluster."""
        if self.master == "max":
            return kernels.cluster_max(clusters, x, backend=self.backend)
        return kernels.propagate(clusters, clusters.shares(clusters.ones(x.dtype)), x, backend=self.backend)

    def scores(self, x: Tensor, clusters: Pattern) -> tuple[Tensor | None, Tensor]:
        """As in the formula."""
        if self.sigma == "inside":
            return None, self._token(x)
        m = self.query(x, clusters)
        if not is_plain(self.W):
            return self.W(m) @ self.w[: self.channels], self._token(x)
        v, b = self.folded()
        return kernels.project(m, v, backend=self.backend) + b, self._token(x)


class Token2Token(ClusterAttention):
    """The medoid is the query: α_ij = softmax_j(wᵀσ(W x_i ‖ W x_j))."""

    def scores(self, x: Tensor, clusters: Pattern) -> tuple[Tensor | None, Tensor]:
        """As in the formula."""
        h = self.W(x)
        if self.sigma == "inside":
            return None, self._token(h)
        return h @ self.w[: self.channels], self._token(h)


class Source2Token(ClusterAttention):
    """No query: α_ij = softmax_j(w₂ᵀσ(W x_j)), the same score of a node in every cluster."""

    def scores(self, x: Tensor, clusters: Pattern) -> tuple[Tensor | None, Tensor]:
        """As in the formula."""
        token = self._token(self.W(x))
        return (None if self.sigma == "inside" else torch.zeros_like(token)), token


class DynamicAttention(Master2Token):
    """The cluster is the query, and it matters: α_ij = softmax_j(wᵀσ(W m_i + b + U x_j)), m_i = max_{j∈c(i)} x_j.

    The score of Master2Token is the sum of a query term and a member term, and the softmax over the members cancels the
    first. Here σ = LeakyReLU is applied to the sum of both, as in "How Attentive are Graph Attention Networks?" (GATv2,
    ICLR 2022), so that the weights of the members depend on the cluster.

    Args:
        channels: F, the width of x.
        master: "max" or "mean" of the cluster as m_i.
        negative_slope: of σ.
        dropout: on α, while training.
        backend: see asapool.kernels.

    >>> layer = DynamicAttention(2)
    >>> S = layer(torch.randn(3, 2), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).to_sparse()
    >>> torch.allclose(S.to_dense().sum(0), torch.ones(3))
    True
    """

    def __init__(
        self, channels: int, *, master: str = "max", negative_slope: float = 0.2, dropout: float = 0.0,
        backend: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(channels, master=master, negative_slope=negative_slope, dropout=dropout, backend=backend)
        del self.c  # a constant would cancel
        self.w = nn.Parameter(torch.empty(channels))
        self.U = nn.Linear(channels, channels, bias=False)
        self._reset()

    def reset_parameters(self) -> None:
        """Glorot W and U, w uniform in ±1/√F, zero bias."""
        if hasattr(self, "U"):  # it does not exist yet when the parent's __init__ calls this
            self._reset()

    def _reset(self) -> None:
        nn.init.xavier_uniform_(self.W.weight)
        nn.init.xavier_uniform_(self.U.weight)
        nn.init.zeros_(self.W.bias)
        bound = 1 / math.sqrt(self.channels)
        nn.init.uniform_(self.w, -bound, bound)

    def memberships(self, x: Tensor, clusters: Pattern) -> Tensor:
        """α before dropout, (E,)."""
        query, token = self.W(self.query(x, clusters)), self.U(x)
        return kernels.attend_dynamic(clusters, query, token, self.w, self.negative_slope, backend=self.backend)

    def extra_repr(self) -> str:
        """The settings that print shows."""
        return f"{self.channels}, master={self.master!r}, dropout={self.dropout}"
