"""How much each node matters for a prediction: attention, gradient × input, neighbourhood, substitution, occlusion.

All but the first measure effects on the log odds of a class or of yes, ln p/(1 − p), or on a value in its unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from asapool.data.batch import Batch
from asapool.errors import choose
from asapool.insight.copies import blanked, drop_nodes, logits_of, without
from asapool.insight.levels import Floats, Level
from asapool.models import GraphModel
from asapool.training.tasks import task_of

PIECE = 16_384  # nodes per forward pass


def log_odds(logits: Tensor, c: int) -> Tensor:
    """ln p_c/(1 − p_c) = z_c − ln Σ_{k≠c} e^{z_k}, which, unlike p, does not saturate for confident predictions.

    logits (B, C); returns (B,). With a single class it is the logit itself.

    >>> log_odds(torch.tensor([[0.5, 2.0]]), 1)
    tensor([1.5000])
    """
    others = torch.cat([logits[:, :c], logits[:, c + 1 :]], dim=1)
    return logits[:, c] - others.logsumexp(dim=1) if others.size(1) else logits[:, c]


def contrast(logits: Tensor, c: int, against: int | None) -> Tensor:
    """ln p_c/p_against = z_c − z_against, (B,); the log odds of c if `against` is None.

    >>> contrast(torch.tensor([[0.5, 2.0, 1.0]]), 1, 2)
    tensor([1.])
    """
    return log_odds(logits, c) if against is None else logits[:, c] - logits[:, against]


def decision(model: GraphModel, logits: Tensor, k: int, against: int | None = None) -> Tensor:
    """The quantity that importance attributes, (B,): the log odds of class or task k, or the value of task k."""
    if model.target is None or against is not None:
        return contrast(logits, k, against)
    return task_of(model.target).explained(logits, k, model.target)


@contextmanager
def frozen(model: GraphModel) -> Iterator[None]:
    """Evaluation mode without parameter gradients; both are restored at the end."""
    training = model.training
    before = [(p, p.requires_grad) for p in model.parameters()]
    model.eval()
    for p, _ in before:
        p.requires_grad_(False)
    try:
        yield
    finally:
        model.train(training)
        for p, needed in before:
            p.requires_grad_(needed)


def attention_importance(nodes: int, levels: Sequence[Level], aggregate: str = "both") -> Floats:
    """Each node's share in the readouts of all levels, as if only pooling mixed nodes.

    a_i = Σ_l 1/K_l Σ_k (Ŝ¹Φ¹ Ŝ²Φ² … ŜˡΦˡ)_ik, Φ = diag(φ of the kept)

    If clusters are not averaged (aggregate="none"), only the medoid is kept, so Ŝ is 1 there and 0 elsewhere.
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


def gradient_importance(model: GraphModel, batch: Batch, c: int, against: int | None = None) -> Floats:
    """Gradient × input through convolutions, attention, fitness and pooled edges: g_i = Σ_f x_if ∂d_c/∂x_if.

    d_c are the log odds of class or task c, or the value of task c.

    Returns (N,). The gradient treats the choice of the top ⌈kN⌉ as constant. Call it within `frozen`.
    """
    x = batch.x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(decision(model, logits_of(model, batch, x), c, against).sum(), x)
    scores: Floats = (batch.x * gradient).sum(dim=1).double().numpy()
    return scores


def descriptor_importance(model: GraphModel, batch: Batch, c: int, against: int | None = None) -> Floats:
    """r_k = d_c of the graph − d_c with descriptor k at its training mean, (D,); call it within `frozen`.

    d_c are the log odds of class or task c, or the value of task c.
    """
    D = model.shape.graph_channels if "graph_attr" in model.reads else 0
    if not D or batch.graph_attr is None:
        return np.zeros(0)
    parts = []
    with torch.no_grad():
        whole = decision(model, logits_of(model, batch), c, against)
        for column in range(batch.graph_attr.size(1) - D, batch.graph_attr.size(1)):
            changed = batch.graph_attr.clone()
            changed[:, column] = torch.nan  # missing: the model takes the training mean
            parts.append(decision(model, logits_of(model, replace(batch, graph_attr=changed)), c, against))
    scores: Floats = (whole - torch.cat(parts)).double().numpy()
    return scores


def occlusion_importance(
    model: GraphModel, batch: Batch, c: int, occlude: Literal["remove", "zero"] = "remove", against: int | None = None
) -> Floats:
    """o_i = d_c of the graph − d_c without node i, (N,); call it within `frozen`.

    d_c are the log odds of class or task c, or the value of task c.

    occlude: "remove" removes the node and its edges, "zero" sets its features to zero.
    """
    choose("occlude", occlude, ("remove", "zero"))
    N = batch.x.size(0)
    # a graph of one node cannot lose it, so its features are zeroed instead
    change = without if occlude == "remove" and N > 1 else blanked
    step = max(1, PIECE // max(N, 1))
    with torch.no_grad():
        whole = decision(model, logits_of(model, batch), c, against)
        pieces = [torch.arange(first, min(first + step, N)) for first in range(0, N, step)]
        parts = [decision(model, logits_of(model, change(batch, nodes)), c, against) for nodes in pieces]
    scores: Floats = (whole - torch.cat(parts) if parts else whole[:0]).double().numpy()
    return scores


def neighbourhood_importance(model: GraphModel, batch: Batch, c: int, against: int | None = None) -> Floats:
    """n_i = o_i + mean over j ∈ N[i] of (d_c of the graph − d_c without N[j]), (N,).

    o is occlusion, d_c are log odds or a value, N[j] are j and its neighbours: this finds reasons that span several
    nodes, where removing one changes little. A neighbourhood that is the whole graph counts as the node alone. Call it
    within `frozen`.
    """
    removed = occlusion_importance(model, batch, c, "remove", against)
    if batch.x.size(0) < 2:
        return removed
    with torch.no_grad():
        whole = decision(model, logits_of(model, batch), c, against)
        drops = [
            whole - decision(model, logits_of(model, _without_sets(batch, near)), c, against)
            for near in _neighbourhoods(batch)
        ]
    scores: Floats = removed + _mean_over_neighbours(batch, torch.cat(drops)).double().numpy()
    return scores


def substitution_importance(model: GraphModel, batch: Batch, c: int, against: int | None = None) -> Floats:
    """s_i = mean over j ∈ N[i] of (d_c − d_c with typical features in N[j]) + (d_c − d_c without N[j]) / |N[j]|, (N,).

    d_c are the log odds or the value of the graph, N[j] are j and its neighbours. Typical features are those that most
    nodes of the same degree in this graph have (see `typical_features`). Substituting them keeps the structure, so
    the changed graph still resembles those that the model was trained on; a removal breaks the graph apart, and the
    model may respond to that alone. The removal is needed where the structure is the reason; it counts per node,
    because removing more changes more. A neighbourhood that is the whole graph counts as the node alone. Call it
    within `frozen`.
    """
    N = batch.x.size(0)
    if N < 2:
        return occlusion_importance(model, batch, c, "remove", against)
    typical = typical_features(batch.x, batch.rowptr.diff())
    drops = []
    with torch.no_grad():
        whole = decision(model, logits_of(model, batch), c, against)
        for near in _neighbourhoods(batch):
            copies = blanked(batch, near.long().argmax(dim=1))
            x = torch.where(near[:, :, None], typical, batch.x).view(-1, batch.x.size(1))
            substituted = whole - decision(model, logits_of(model, copies, x), c, against)
            removed = whole - decision(model, logits_of(model, _without_sets(batch, near)), c, against)
            drops.append(substituted + removed / near.sum(dim=1))
    scores: Floats = _mean_over_neighbours(batch, torch.cat(drops)).double().numpy()
    return scores


def typical_features(x: Tensor, degree: Tensor) -> Tensor:
    """For every node the features that occur most often among the nodes of its degree, (N, F).

    Of several that are equally frequent, as with continuous features, the one nearest to their mean is taken.

    >>> typical_features(torch.tensor([[1.0], [2.0], [5.0], [2.0], [1.0]]), torch.tensor([1, 2, 2, 2, 1])).T
    tensor([[1., 2., 2., 2., 1.]])
    """
    typical = x.clone()
    for d in torch.unique(degree):
        same = degree == d
        rows, count = torch.unique(x[same], dim=0, return_counts=True)
        frequent = rows[count == count.max()]
        typical[same] = frequent[(frequent - x[same].mean(dim=0)).norm(dim=1).argmin()]
    return typical


def _neighbourhoods(batch: Batch) -> Iterator[Tensor]:
    """Every N[j] as a row of a mask (b, N), in pieces for one forward pass each; j alone if N[j] is the whole graph."""
    N = batch.x.size(0)
    row = torch.repeat_interleave(batch.rowptr.diff())
    step = max(1, PIECE // N)
    for first in range(0, N, step):
        centres = torch.arange(first, min(first + step, N))
        near = torch.zeros(len(centres), N, dtype=torch.bool)
        inside = (row >= first) & (row < first + len(centres))
        near[row[inside] - first, batch.col[inside]] = True
        near[torch.arange(len(centres)), centres] = True
        full = near.all(dim=1)
        near[full] = torch.nn.functional.one_hot(centres[full], N).bool()
        yield near


def _without_sets(batch: Batch, sets: Tensor) -> Batch:
    """One copy of the graph per row of sets (b, N), without the nodes of that row."""
    return drop_nodes(blanked(batch, sets.long().argmax(dim=1)), ~sets.view(-1))


def _mean_over_neighbours(batch: Batch, values: Tensor) -> Tensor:
    """Mean of values_j over the node and its neighbours, (N,); a self-loop is not another neighbour."""
    row = torch.repeat_interleave(batch.rowptr.diff())
    total = values.clone().index_add(0, row, values[batch.col])
    loops = row == batch.col
    total = total.index_add(0, row[loops], -values[row[loops]])
    count = 1 + batch.rowptr.diff() - torch.bincount(row[loops], minlength=len(values))
    return total / count


class Question(NamedTuple):
    """The input of an importance: a graph as a batch, its levels, a class, and how occlusion removes a node."""

    model: GraphModel
    batch: Batch
    levels: Sequence[Level]
    target: int
    occlude: Literal["remove", "zero"]
    against: int | None = None  # the class to compare with; None = all others


class Kind(NamedTuple):
    """One kind of importance: its label, its meaning, and how it is computed."""

    label: str
    meaning: str
    compute: Callable[[Question], Floats]
    signed: bool = True  # positive supports the class, negative opposes it
    needs_levels: bool = False
    per_node: bool = False  # runs the model for every node, so it is slow for large graphs
    values: str = ""  # the meaning for measured values, if it differs

    def meaning_for(self, kind: str) -> str:
        """The meaning for a kind of target."""
        return self.values if self.values and kind == "regression" else self.meaning


def _attention(q: Question) -> Floats:
    return attention_importance(q.batch.x.size(0), q.levels, q.model.config.aggregate)


# the table of all kinds, used by explain(), the command line and the pages
KINDS = {
    "attention": Kind(
        "Attention",
        "Share of each node in the readouts: attention × fitness, composed over the levels.",
        _attention, signed=False, needs_levels=True,
    ),
    "gradient": Kind(
        "Gradient",
        "Gradient × input, in log odds: orange supports the explained class, blue opposes it.",
        lambda q: gradient_importance(q.model, q.batch, q.target, q.against),
        values="Gradient × input, in the unit of the value: orange raises the predicted value, blue lowers it.",
    ),
    "occlusion": Kind(
        "Occlusion",
        "Drop in log odds when the node is removed: orange supports the explained class, blue opposes it.",
        lambda q: occlusion_importance(q.model, q.batch, q.target, q.occlude, q.against),
        per_node=True,
        values="Drop in the predicted value when the node is removed: orange raises the value, blue lowers it.",
    ),
    "neighbourhood": Kind(
        "Neighbourhood",
        "Drop in log odds when the node is removed, plus the mean drop when the neighbourhoods it is in are removed: "
        "orange supports the explained class, blue opposes it.",
        lambda q: neighbourhood_importance(q.model, q.batch, q.target, q.against),
        per_node=True,
        values="Drop in the predicted value when the node is removed, plus the mean drop when the neighbourhoods it is "
        "in are removed: orange raises the value, blue lowers it.",
    ),
    "substitution": Kind(
        "Substitution",
        "Mean over the neighbourhoods that contain the node: drop in log odds when they get the features typical of "
        "their degrees, plus the drop per node when they are removed: orange supports the explained class, blue "
        "opposes it.",
        lambda q: substitution_importance(q.model, q.batch, q.target, q.against),
        per_node=True,
        values="Mean over the neighbourhoods that contain the node: drop in the predicted value when they get the "
        "features typical of their degrees, plus the drop per node when they are removed: orange raises the value, "
        "blue lowers it.",
    ),
}  # fmt: skip
