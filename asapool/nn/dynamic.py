"""Attention inside a cluster whose query does not cancel in the softmax."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from asapool import kernels
from asapool.kernels import Pattern
from asapool.nn.attention import Master2Token


class DynamicAttention(Master2Token):
    """The cluster is the query, and it matters: α_ij = softmax_j(wᵀσ(W m_i + b + U x_j)), m_i = max_{j∈c(i)} x_j.

    Master2Token adds up a part of the query and a part of the member, and the softmax over the members cancels the
    first. Here σ = LeakyReLU works on the sum of both, as in "How Attentive are Graph Attention Networks?" (GATv2, ICLR
    2022), so that the cluster decides which of its members count.

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
        if hasattr(self, "U"):  # not yet while the parent is made
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
        """What print shows."""
        return f"{self.channels}, master={self.master!r}, dropout={self.dropout}"
