"""Theorem 1, exactly: which functions of differences between neighbours one LEConv and one GCN can represent.

Before the activation, f, LEConv and GCN all have the form M X W with a matrix M (N, N) made from the graph:

    f        M = diag(α_i + Σ_j β_ij) − β
    LEConv   M = w1·I + w2·D − w3·A       (W1 = w1·W, W2 = w2·W, W3 = w3·W; D = diag(Σ_j A_ij))
    GCN      M = c·D̂^-½ (A + I) D̂^-½

Two such maps agree for all features X exactly when their matrices agree, so "can represent" is a linear system.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from asapool import kernels
from asapool.errors import InputError
from asapool.kernels import Graph


class Fit(NamedTuple):
    """The member of a family closest to M: its coefficients, the largest error of an entry, the share R² explained."""

    coefficients: Tensor
    error: float
    r2: float


def difference_matrix(alpha: Tensor, beta: Tensor) -> Tensor:
    """The matrix of f_i = α_i x_i W + Σ_j β_ij (x_i W − x_j W), (N, N).

    alpha (N,); beta (N, N), zero where i and j are no neighbours.

    >>> difference_matrix(torch.ones(2), torch.tensor([[0., 1.], [1., 0.]])).tolist()
    [[2.0, -1.0], [-1.0, 2.0]]
    """
    return torch.diag(alpha + beta.sum(dim=1)) - beta


def leconv_family(A: Tensor) -> list[Tensor]:
    """What LEConv can mix: I, D = diag(Σ_j A_ij) and −A."""
    return [torch.eye(A.size(0), dtype=A.dtype), torch.diag(A.sum(dim=1)), -A]


def gcn_family(A: Tensor) -> list[Tensor]:
    """What GCN can mix: the single matrix D̂^-½ (A + I) D̂^-½, no entry of which is negative."""
    hat = A + torch.eye(A.size(0), dtype=A.dtype)
    scale = hat.sum(dim=1).rsqrt()
    return [scale[:, None] * hat * scale[None, :]]


def nearest(M: Tensor, family: list[Tensor]) -> Fit:
    """The mixture Σ_k c_k F_k closest to M in the sum of squares, and how close it comes.

    R² = 1 − ‖M − Σ c_k F_k‖² / ‖M‖² is the share of the variance explained when the features are white noise.

    >>> A = torch.tensor([[0., 1.], [1., 0.]])
    >>> nearest(difference_matrix(torch.ones(2), A), leconv_family(A)).error < 1e-6
    True
    """
    basis = torch.stack([F.flatten() for F in family], dim=1)
    c = torch.linalg.lstsq(basis, M.flatten()[:, None], driver="gelsd").solution.view(-1)
    rest = M.flatten() - basis @ c
    return Fit(c, float(rest.abs().max()), float(1 - rest.square().sum() / M.square().sum()))


def leconv_weights(alpha: Tensor, beta: Tensor, A: Tensor, W: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights W1, W2, W3 with which LEConv equals f, when there are such weights.

    They exist exactly when β_ij = c·A_ij and α_i = a + b·Σ_j A_ij for three numbers a, b, c; then
    W1 = aW, W2 = (b + c)W, W3 = cW. The appendix shows the case a = c = 1, b = 0.

    >>> A = torch.tensor([[0., 1., 0.], [1., 0., 1.], [0., 1., 0.]], dtype=torch.float64)
    >>> [round(float(w), 6) for w in leconv_weights(torch.ones(3).double(), 2 * A, A, torch.ones(1, 1).double())]
    [1.0, 2.0, 2.0]
    """
    fit = nearest(difference_matrix(alpha, beta), leconv_family(A))
    if fit.error > 1e-9:
        raise InputError(
            f"LEConv cannot represent this f (closest entry error {fit.error:.3g}): "
            "it needs β_ij = c·A_ij and α_i = a + b·Σ_j A_ij. Choose such α and β."
        )
    w1, w2, w3 = fit.coefficients
    return w1 * W, w2 * W, w3 * W


def leconv(graph: Graph, x: Tensor, W1: Tensor, W2: Tensor, W3: Tensor, backend: str = "reference") -> Tensor:
    """LEConv before its activation, by the package's kernel: x W1 + Σ_j A_ij (x_i W2 − x_j W3), (N, 1)."""
    u = x @ torch.cat([W1, W2, W3], dim=1)
    return kernels.score(graph.pattern, graph.weight, u, loops=False, backend=backend)


def gcn(graph: Graph, x: Tensor, W: Tensor, backend: str = "reference") -> Tensor:
    """GCN before its activation, by the package's kernels: Σ_j d_i^-½ Â_ij d_j^-½ x_j W, (N, 1)."""
    norm = kernels.normalise(graph.pattern, graph.hat("add"), backend=backend)
    return kernels.propagate(graph.pattern, norm, x @ W, backend=backend)


def gcn_must_fail(alpha: Tensor, beta: Tensor) -> bool:
    """Whether signs alone rule GCN out: some node counts itself and one of its neighbours with opposite signs.

    (α_i + Σ_j β_ij)·β_ij > 0 for some edge; all entries of GCN's matrix on that row have one sign.

    >>> gcn_must_fail(torch.ones(2), torch.tensor([[0., 1.], [1., 0.]]))
    True
    >>> gcn_must_fail(torch.ones(2), torch.tensor([[0., -.5], [-.5, 0.]]))         # f is the mean of the two
    False
    """
    own = alpha + beta.sum(dim=1)
    return bool((own[:, None] * beta > 0).any())
