"""From what a model's poolings did, as tensors, to the levels of a hierarchy, as plain arrays."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool import kernels
from asapool.data.batch import Batch
from asapool.insight.level import Floats, Ints, Level
from asapool.kernels import Graph
from asapool.models import GraphClassifier
from asapool.models.hierarchical import HierarchicalEncoder
from asapool.nn.baselines import Coarse
from asapool.nn.step import PoolStep

WITHOUT = {  # why a method has no clusters around medoids
    "diffpool": "DiffPool assigns every node to a fixed number of clusters without a centre",
    "set2set": "Set2Set reads all nodes at once",
    "global-attention": "Global attention sums all nodes at once",
    "sortpool": "SortPool reads the first nodes of a sorted list",
    "none": "This model does not pool",
    "mlp": "This model sums the nodes and never looks at an edge",
}


def levels_of(model: GraphClassifier, batch: Batch) -> tuple[tuple[Level, ...], str]:
    """The levels of one graph, and, for a method that has none, the sentence that says why."""
    method, encoder = model.config.method, model.encoder
    if method in WITHOUT or not isinstance(encoder, HierarchicalEncoder):
        return (
            (),
            f"{WITHOUT[method]}, so there are no levels to look at; gradient and occlusion still tell what counted.",
        )
    levels: list[Level] = []
    origin: Ints = np.arange(batch.x.size(0))  # original node of every node of the level before
    with torch.no_grad():
        graph = model._pack(batch.x, batch.ptr, batch.rowptr, batch.col, batch.weight)
        for step in encoder.steps(batch.x, graph):
            level = _clusters(step, origin) if isinstance(step, PoolStep) else _selected(step, origin)
            levels.append(level)
            origin = level.medoid
    return tuple(levels), ""


def _clusters(step: PoolStep, origin: Ints) -> Level:
    """ASAP: every kept node with its cluster."""
    S = step.S.coalesce()
    (member, cluster), attention = _ints(S.indices()), _floats(S.values())
    order = np.lexsort((member, cluster))
    return _level(step.perm, step.fitness, cluster[order], member[order], attention[order], step.after, origin)


def _selected(step: Coarse, origin: Ints) -> Level:
    """TopK and SAGPool: every kept node is a cluster of its own, and its score is its fitness."""
    assert step.perm is not None  # noted for the type checker: methods without a selection were turned away
    assert step.score is not None
    kept = _ints(step.perm)
    return _level(step.perm, step.score, np.arange(len(kept)), kept, np.ones(len(kept)), step.after, origin)


def _level(
    perm: Tensor, fitness: Tensor, cluster: Ints, member: Ints, attention: Floats, after: Graph | None, origin: Ints
) -> Level:
    assert after is not None  # the edges of the last level were asked for too
    (source, target), weight = kernels.list_edges(after)
    there = weight != 0  # the packed form keeps a place for edges whose weight came out as 0
    kept = _ints(perm)
    return Level(
        kept=kept, medoid=origin[kept], fitness=_floats(fitness), cluster=cluster, member=member, attention=attention,
        source=_ints(source[there]), target=_ints(target[there]), weight=_floats(weight[there]),
    )  # fmt: skip


def _ints(values: Tensor) -> Ints:
    found: Ints = values.numpy().astype(np.int64)
    return found


def _floats(values: Tensor) -> Floats:
    found: Floats = values.double().numpy()
    return found
