"""How much each node mattered, read off the model itself: composed attention × fitness, and gradient × input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asapool.data.batch import Batch
from asapool.insight.level import Floats, Level
from asapool.insight.log_odds import answer, log_odds
from asapool.models import GraphClassifier


def attention_importance(nodes: int, levels: Sequence[Level], aggregate: str = "both") -> Floats:
    """Each node's share in the readouts of all levels, if nothing but the pooling mixed nodes.

    a_i = Σ_l 1/K_l Σ_k (Ŝ¹Φ¹ Ŝ²Φ² … ŜˡΦˡ)_ik, Φ = diag(φ of the kept)

    Where clusters are not averaged (aggregate="none") only the medoid goes on, so Ŝ is 1 there and 0 elsewhere.
    nodes: N; returns (N,), never negative.

    >>> one = np.array([0, 0])
    >>> pair = Level(kept=np.array([1]), medoid=np.array([1]), fitness=np.array([0.2, 0.5]), cluster=one,
    ...              member=np.array([0, 1]), attention=np.array([0.75, 0.25]), source=one[:0], target=one[:0],
    ...              weight=np.zeros(0))
    >>> attention_importance(2, [pair])
    array([0.375, 0.125])
    """
    from scipy.sparse import csr_array, diags_array

    total = np.zeros(nodes)
    flow = csr_array(diags_array(np.ones(nodes)))
    for level in levels:
        K = len(level)
        S = level.S
        if aggregate == "none":
            S = csr_array((np.ones(K), (level.kept, np.arange(K))), shape=(len(level.fitness), K))
        flow = flow @ S @ diags_array(np.abs(level.kept_fitness))  # a score of topk may be negative
        total += np.asarray(flow.sum(axis=1)).ravel() / K
    return total


def gradient_importance(model: GraphClassifier, batch: Batch, c: int) -> Floats:
    """Gradient × input through convolutions, attention, fitness and pooled edges: g_i = Σ_f x_if ∂(log odds_c)/∂x_if.

    Returns (N,). The choice of the top ⌈kN⌉ is a step, so the gradient takes it as given. Call it within `judging`.
    """
    import torch

    x = batch.x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(log_odds(answer(model, batch, x), c).sum(), x)
    found: Floats = (batch.x * gradient).sum(dim=1).double().numpy()
    return found
