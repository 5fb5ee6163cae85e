"""Receptive fields of the pooling operators, determined by which inputs change which outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from asapool.errors import choose
from asapool.theory import operators
from asapool.theory.graphs import distances, path_graph
from asapool.theory.operators import Operator, undirected_edges


@dataclass(frozen=True, kw_only=True)
class ReceptiveField:
    """Largest distances in hops from the kept node (or the nearer of two); None if clusters have no centre.

    node: to input nodes that change X^p_i · span: between kept nodes i, j with A^p_ij ≠ 0 · edge: to input edges that
    change A^p_ij · whole: every input changes every output.
    """

    node: int | None
    span: int | None
    edge: int | None
    whole: bool


@dataclass(frozen=True)
class Influence:
    """Which inputs the outputs depend on: node (K, N), edge (K, K, E); which kept nodes are connected (K, K)."""

    node: Tensor
    edge: Tensor
    joined: Tensor


def influence(operator: Operator, x: Tensor, w: Tensor) -> Influence:
    """Where the derivatives of X^p and A^p with respect to x (N, F) and the edge weights w (E,) are not zero.

    node_iv = [∂X^p_i/∂x_v ≠ 0] · edge_ije = [∂A^p_ij/∂w_e ≠ 0] · joined_ij = [A^p_ij ≠ 0]

    A derivative may vanish by accident at one point (for example at a maximum): combine several points.
    """
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    X, A = operator(x, w)
    K = X.size(0)
    node = torch.zeros(K, x.size(0), dtype=torch.bool)
    edge = torch.zeros(K, K, w.numel(), dtype=torch.bool)
    for i in range(K):
        for value in X[i]:
            (g,) = torch.autograd.grad(value, x, retain_graph=True, allow_unused=True)
            if g is not None:
                node[i] |= (g != 0).any(dim=1)
        for j in range(K):
            if A.requires_grad:
                (g,) = torch.autograd.grad(A[i, j], w, retain_graph=True, allow_unused=True)
                if g is not None:
                    edge[i, j] = g != 0
    return Influence(node, edge, A.detach() != 0)


def probe(
    operator: Operator, graph: Any, perm: Tensor | None, channels: int, seed: int = 0, points: int = 3
) -> ReceptiveField:
    """The receptive field of one operator on one graph; perm (K,): the kept nodes, None if clusters have no centre."""
    D = torch.from_numpy(distances(graph))
    edges = undirected_edges(graph)
    generator = torch.Generator().manual_seed(seed)
    influences = []
    for _ in range(points):
        x = torch.randn(D.size(0), channels, generator=generator, dtype=torch.float64)
        w = 0.5 + torch.rand(edges.size(1), generator=generator, dtype=torch.float64)
        influences.append(influence(operator, x, w))
    node = torch.stack([point.node for point in influences]).any(dim=0)
    edge = torch.stack([point.edge for point in influences]).any(dim=0)
    joined = torch.stack([point.joined for point in influences]).any(dim=0)
    whole = bool(node.all() and edge.all())
    if perm is None:
        return ReceptiveField(node=None, span=None, edge=None, whole=whole)
    off = joined & ~torch.eye(perm.numel(), dtype=torch.bool)
    cover = D[perm][:, edges].amax(dim=1)  # (K, E): hops from a kept node until both ends of an edge are reached
    nearer = torch.minimum(cover[:, None], cover[None, :])  # (K, K, E)
    return ReceptiveField(
        node=int((D[perm] * node).max()), span=int((D[perm][:, perm] * off).max()),
        edge=int((nearer * edge * off[:, :, None]).max()), whole=whole,
    )  # fmt: skip


def receptive_field(
    method: str, h: int = 1, attention: operators.Attention = "paper", frozen: bool = False
) -> ReceptiveField:
    """The receptive field of a method, measured on a path long enough that its ends do not matter.

    >>> receptive_field("topk")
    ReceptiveField(node=0, span=1, edge=1, whole=False)
    >>> receptive_field("asap", frozen=True)
    ReceptiveField(node=1, span=3, edge=2, whole=False)
    """
    choose("method", method, ("topk", "sagpool", "asap", "diffpool"))
    graph = path_graph(4 * h + 9)
    generator = torch.Generator().manual_seed(h)
    middle = torch.arange(h + 2, 3 * h + 7)  # kept nodes; the others show how far influence reaches
    if method == "asap":
        operator = operators.asap(graph, middle, 2, generator, h, attention, frozen)
    elif method == "diffpool":
        return probe(operators.diffpool(graph, 3, 2, generator), graph, None, 2)
    else:
        make = operators.topk if method == "topk" else operators.sagpool
        operator = make(graph, middle, 2, generator)
    return probe(operator, graph, middle, 2)
