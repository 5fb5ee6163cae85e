"""Theorem 1, exactly and by training: which scoring layers can detect nodes that stand out from their neighbours.

Before the activation, f, LEConv and GCN all have the form M X W with a matrix M (N, N) that depends on the graph:

    f        M = diag(α_i + Σ_j β_ij) − β
    LEConv   M = w1·I + w2·D − w3·A       (W1 = w1·W, W2 = w2·W, W3 = w3·W; D = diag(Σ_j A_ij))
    GCN      M = c·D̂^-½ (A + I) D̂^-½

Two such maps agree for all features X exactly if their matrices agree, so "can represent" is a linear system.

On an r-regular graph GCN's score of a node is w·(mean of x over the node and its neighbours). Let the features be
Gaussian and independent between nodes. Then that mean is uncorrelated with, hence independent of, all differences
x_i − x_j within the same neighbourhood: cov(mean, x_i − x_j) = (1 − 1)/(r + 1) = 0. For any weights, bias and
activation, GCN's score of a node carries no information about a label that depends only on such differences:

    accuracy ≤ max(P(y = 1), P(y = 0)) · ROC AUC = ½
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from asapool import kernels
from asapool.errors import InputError, choose
from asapool.kernels import Graph
from asapool.theory.graphs import Neighbours, positive
from asapool.theory.operators import packed


class Projection(NamedTuple):
    """The member of a family closest to M: its coefficients, the largest error of an entry, and R²."""

    coefficients: Tensor
    error: float
    r2: float


def difference_matrix(alpha: Tensor, beta: Tensor) -> Tensor:
    """The matrix of f_i = α_i x_i W + Σ_j β_ij (x_i W − x_j W), (N, N).

    alpha (N,); beta (N, N), zero if i and j are not neighbours.

    >>> difference_matrix(torch.ones(2), torch.tensor([[0., 1.], [1., 0.]])).tolist()
    [[2.0, -1.0], [-1.0, 2.0]]
    """
    return torch.diag(alpha + beta.sum(dim=1)) - beta


def leconv_family(A: Tensor) -> list[Tensor]:
    """The matrices that LEConv can combine: I, D = diag(Σ_j A_ij) and −A."""
    return [torch.eye(A.size(0), dtype=A.dtype), torch.diag(A.sum(dim=1)), -A]


def gcn_family(A: Tensor) -> list[Tensor]:
    """The only matrix that GCN can scale: D̂^-½ (A + I) D̂^-½, without negative entries."""
    hat = A + torch.eye(A.size(0), dtype=A.dtype)
    scale = hat.sum(dim=1).rsqrt()
    return [scale[:, None] * hat * scale[None, :]]


def nearest(M: Tensor, family: list[Tensor]) -> Projection:
    """The combination Σ_k c_k F_k closest to M in the least-squares sense, and its error.

    R² = 1 − ‖M − Σ c_k F_k‖² / ‖M‖² is the fraction of the variance explained if the features are white noise.

    >>> A = torch.tensor([[0., 1.], [1., 0.]])
    >>> nearest(difference_matrix(torch.ones(2), A), leconv_family(A)).error < 1e-6
    True
    """
    basis = torch.stack([F.flatten() for F in family], dim=1)
    c = torch.linalg.lstsq(basis, M.flatten()[:, None], driver="gelsd").solution.view(-1)
    residual = M.flatten() - basis @ c
    return Projection(c, float(residual.abs().max()), float(1 - residual.square().sum() / M.square().sum()))


def leconv_weights(alpha: Tensor, beta: Tensor, A: Tensor, W: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights W1, W2, W3 with which LEConv equals f, if they exist.

    They exist exactly if β_ij = c·A_ij and α_i = a + b·Σ_j A_ij for three numbers a, b, c; then
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
    """LEConv before its activation, with the package's kernel: x W1 + Σ_j A_ij (x_i W2 − x_j W3), (N, 1)."""
    u = x @ torch.cat([W1, W2, W3], dim=1)
    return kernels.score(graph.pattern, graph.weight, u, loops=False, backend=backend)


def gcn(graph: Graph, x: Tensor, W: Tensor, backend: str = "reference") -> Tensor:
    """GCN before its activation, with the package's kernels: Σ_j d_i^-½ Â_ij d_j^-½ x_j W, (N, 1)."""
    norm = kernels.normalise(graph.pattern, graph.hat("add"), backend=backend)
    return kernels.propagate(graph.pattern, norm, x @ W, backend=backend)


def gcn_must_fail(alpha: Tensor, beta: Tensor) -> bool:
    """Whether signs alone rule GCN out: some node weights itself and one of its neighbours with opposite signs.

    (α_i + Σ_j β_ij)·β_ij > 0 for some edge; all entries of GCN's matrix on that row have one sign.

    >>> gcn_must_fail(torch.ones(2), torch.tensor([[0., 1.], [1., 0.]]))
    True
    >>> gcn_must_fail(torch.ones(2), torch.tensor([[0., -.5], [-.5, 0.]]))         # f is the mean of the two
    False
    """
    self_weight = alpha + beta.sum(dim=1)
    return bool((self_weight[:, None] * beta > 0).any())


Task = Literal["above", "maximum"]
Layer = Literal["leconv", "gcn"]


class LabelledGraph(NamedTuple):
    """Nodes of many copies of one regular graph: graph, features x (N, F), labels y (N,)."""

    graph: Graph
    x: Tensor
    y: Tensor


@dataclass(frozen=True, kw_only=True)
class Training:
    """How well a layer learned the task, on unseen graphs: at the end, and every tenth step."""

    layer: Layer
    task: Task
    accuracy: float
    auc: float
    bound: float  # upper bound on GCN's expected accuracy
    steps: tuple[int, ...]
    curve: tuple[float, ...]


def circulant(N: int, r: int) -> Neighbours:
    """The r-regular ring in which every node is connected to the r/2 next nodes on both sides.

    >>> circulant(5, 2)
    [[1, 4], [0, 2], [1, 3], [2, 4], [0, 3]]
    """
    if r % 2 or not 2 <= r < positive("N", N):
        raise InputError(f"r must be even and lie between 2 and N − 1 = {N - 1}, got {r}")
    return [sorted({(i + s * step) % N for step in range(1, r // 2 + 1) for s in (-1, 1)}) for i in range(N)]


def bound(task: Task, r: int) -> float:
    """Upper bound on GCN's expected accuracy: ½ for "above", r/(r + 1) for "maximum", which one node in r + 1 is.

    >>> bound("above", 2), round(bound("maximum", 2), 3)
    (0.5, 0.667)
    """
    choose("task", task, ("above", "maximum"))
    return 0.5 if task == "above" else r / (r + 1)


def draw(
    task: Task, copies: int, generator: torch.Generator, N: int = 12, r: int = 2, channels: int = 4
) -> LabelledGraph:
    """Gaussian features on copies of a circulant graph, and the labels of the task.

    s = x·W, W = the first unit vector; "above": y_i = [Σ_j (s_i − s_j) > 0]; "maximum": y_i = [s_i > s_j for all j].
    """
    one = circulant(N, r)
    x = torch.randn(copies * N, channels, generator=generator, dtype=torch.float64)
    graph = packed([[j + c * N for j in around] for c in range(copies) for around in one])
    graph = Graph(graph.pattern, graph.weight.to(x.dtype))
    s = x[:, 0].view(copies, N)
    around = s[:, torch.tensor(one)]  # (copies, N, r)
    y = (r * s > around.sum(dim=2)) if choose("task", task, ("above", "maximum")) == "above" else s > around.amax(dim=2)
    return LabelledGraph(graph, x, y.view(-1))


def train(
    layer: Layer, task: Task, seed: int = 0, steps: int = 200, copies: int = 256, r: int = 2, channels: int = 4
) -> Training:
    """Fit one scoring layer with a bias to the task by logistic regression; test it on the same number of new graphs.

    >>> train("leconv", "above", copies=64, steps=150).accuracy > 0.95
    True
    """
    choose("layer", layer, ("leconv", "gcn"))
    generator = torch.Generator().manual_seed(seed)
    seen = draw(task, copies, generator, r=r, channels=channels)
    unseen = draw(task, copies, generator, r=r, channels=channels)
    W = [torch.randn(channels, 1, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(3)]
    W = W if layer == "leconv" else W[:1]
    b = torch.zeros(1, dtype=torch.float64, requires_grad=True)

    def score(sample: LabelledGraph) -> Tensor:
        g, x = sample.graph, sample.x
        out = leconv(g, x, W[0], W[1], W[2]) if layer == "leconv" else gcn(g, x, W[0])
        return out.view(-1) + b

    optimiser = torch.optim.Adam([*W, b], lr=0.1)
    at, curve = [], []
    for step in range(steps + 1):
        if step % 10 == 0:
            with torch.no_grad():
                at.append(step)
                curve.append(_accuracy(score(unseen), unseen.y))
        optimiser.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(score(seen), seen.y.double()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        final = score(unseen)
    return Training(
        layer=layer, task=task, accuracy=_accuracy(final, unseen.y), auc=auc(final, unseen.y),
        bound=bound(task, r), steps=tuple(at), curve=tuple(curve),
    )  # fmt: skip


def auc(score: Tensor, y: Tensor) -> float:
    """The probability that a positive outscores a negative: (Σ ranks of positives − P(P + 1)/2) / (P·Q).

    >>> auc(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([False, False, True, True]))
    0.75
    """
    _, place, count = torch.unique(score, return_inverse=True, return_counts=True)
    last = count.cumsum(0).double()
    rank = (last - (count - 1) / 2)[place]  # equal scores share their mean rank
    P, Q = int(y.sum()), int((~y).sum())
    return float((rank[y].sum() - P * (P + 1) / 2) / (P * Q))


def _accuracy(score: Tensor, y: Tensor) -> float:
    return float(((score > 0) == y).double().mean())
