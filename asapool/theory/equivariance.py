"""Proposition 1: relabelling the nodes changes nothing but the labels, unless ties must be broken."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asapool.theory.extremum import circulant
from asapool.theory.graphs import Neighbours, neighbours
from asapool.theory.operators import Attention, asap, undirected_edges


def relabel(graph: Any, order: Tensor) -> Neighbours:
    """The same graph with node order[i] renumbered to i.

    >>> relabel([[1], [0, 2], [1]], torch.tensor([1, 0, 2]))
    [[1, 2], [0], [0]]
    """
    nb = neighbours(graph)
    number = torch.argsort(order).tolist()
    return [sorted(number[j] for j in nb[i]) for i in order.tolist()]


def relabelling_error(graph: Any, K: int, seed: int, h: int = 1, attention: Attention = "paper") -> float:
    """The largest change of ASAP's X^p and A^p under a random relabelling of the nodes.

    max |f(PX, PAPᵀ) − f(X, A)|: the kept clusters come best first, so without ties even their order is the same.

    >>> relabelling_error([[1], [0, 2], [1, 3], [2]], K=2, seed=0) < 1e-12
    True
    """
    nb, channels = neighbours(graph), 3
    generator = torch.Generator().manual_seed(seed)
    edges = undirected_edges(nb)
    x = torch.randn(len(nb), channels, generator=generator, dtype=torch.float64)
    w = 0.5 + torch.rand(edges.size(1), generator=generator, dtype=torch.float64)
    order = torch.randperm(len(nb), generator=generator)
    renamed = relabel(nb, order)
    weight_of = {frozenset(edge): value for edge, value in zip(edges.t().tolist(), w, strict=True)}
    w_renamed = [weight_of[frozenset(order[edge].tolist())] for edge in undirected_edges(renamed).t()]
    X, A = asap(nb, K, channels, torch.Generator().manual_seed(seed), h, attention)(x, w)
    Xr, Ar = asap(renamed, K, channels, torch.Generator().manual_seed(seed), h, attention)(
        x[order], torch.stack(w_renamed) if w_renamed else w
    )
    return float(max((X - Xr).abs().max(), (A - Ar).abs().max()))


def tied_spectra(attention: Attention = "paper") -> tuple[list[float], list[float]]:
    """Eigenvalues of A^p before and after relabelling a six-ring of equal nodes, of which three are kept.

    All fitness values tie and the lower number wins, so the labels decide whether the kept nodes are adjacent.

    >>> before, after = tied_spectra()
    >>> max(abs(a - b) for a, b in zip(before, after)) > 0.1
    True
    """
    ring = circulant(6, 2)
    x, w = torch.ones(6, 2, dtype=torch.float64), torch.ones(6, dtype=torch.float64)

    def spectrum(graph: Neighbours) -> list[float]:
        _, A = asap(graph, 3, 2, torch.Generator().manual_seed(0), attention=attention)(x, w)
        values: list[float] = torch.linalg.eigvalsh(A).tolist()
        return values

    return spectrum(ring), spectrum(relabel(ring, torch.tensor([0, 2, 4, 1, 3, 5])))


def printed_block(P: Tensor, kept: Tensor) -> Tensor:
    """P[i, i], the matrix that permutes X^p according to the proof in the appendix.

    >>> printed_block(torch.tensor([[0., 1.], [1., 0.]]), torch.tensor([0])).tolist()   # it would make X^p vanish
    [[0.0]]
    """
    return P[kept][:, kept]
