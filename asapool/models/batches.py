"""Cuts batches for a model out of a set of graphs, with edge features and counts only if the model uses them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from asapool.errors import CheckpointError
from asapool.models.classifier import GraphModel
from asapool.models.config import ModelConfig
from asapool.models.methods import method

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from asapool.data import GraphSet
    from asapool.data.batch import Batch

_COUNTS: WeakKeyDictionary[GraphSet, dict[tuple[int, int], csr_matrix]] = WeakKeyDictionary()  # computed once per set


def edge_channels(graphs: GraphSet) -> int:
    """D, the number of features of an edge; 0 if there are none."""
    return 0 if graphs.edge_attr is None else int(graphs.edge_attr.shape[1])


def graph_channels(graphs: GraphSet) -> int:
    """The number of descriptors of a graph; 0 if there are none."""
    return 0 if graphs.descriptors is None else int(graphs.descriptors.shape[1])


def cut(model: GraphModel, graphs: GraphSet, indices: npt.NDArray[np.int64]) -> Batch:
    """The graphs at indices as a batch with everything that the model reads."""
    batch = graphs.batch(indices, edge_attr="edge_attr" in model.reads)
    if "graph_attr" not in model.reads:
        return batch
    from torch import from_numpy

    parts = []
    if model.config.counts == "ecfp":
        parts.append(_ecfp(graphs, indices, model.config.count_depth, model.config.count_buckets).toarray())
    if model.shape.graph_channels and graphs.descriptors is not None:
        parts.append(graphs.descriptors[indices])
    return replace(batch, graph_attr=from_numpy(np.concatenate(parts, axis=1)))


def check_extras(model: GraphModel, graphs: GraphSet) -> None:
    """Refuse graphs without the edge features, descriptors or SMILES that the model reads."""
    if "edge_attr" in model.reads and edge_channels(graphs) != model.shape.edge_channels:
        raise CheckpointError(
            f"{graphs.name}: its edges have {edge_channels(graphs)} features, the model was trained on "
            f"{model.shape.edge_channels}. Give graphs with the edge features of the training data"
        )
    needed = model.shape.graph_channels if "graph_attr" in model.reads else 0
    if needed and graph_channels(graphs) != needed:
        raise CheckpointError(
            f"{graphs.name}: its graphs have {graph_channels(graphs)} descriptors, the model was trained on {needed}. "
            "Load the graphs with the model's recipe"
        )
    if "graph_attr" in model.reads and model.config.counts == "ecfp":
        from asapool.data.descriptors import smiles_of

        smiles_of(graphs)


def check_molecules(config: ModelConfig, graphs: GraphSet) -> None:
    """Refuse graphs without SMILES if the model counts ECFP, before anything is trained."""
    entry = method(config.method)
    if entry.molecules_only or ("counts" in entry.defaults and config.counts == "ecfp"):
        from asapool.data.descriptors import smiles_of

        smiles_of(graphs)


def _ecfp(graphs: GraphSet, indices: npt.NDArray[np.int64], radius: int, buckets: int) -> csr_matrix:
    from asapool.data.descriptors import ecfp_counts

    if graphs.mapped is not None:  # the counts of all molecules might not fit into memory
        return ecfp_counts(graphs.subset(indices), radius, buckets)
    cache = _COUNTS.setdefault(graphs, {})
    if (radius, buckets) not in cache:
        cache[radius, buckets] = ecfp_counts(graphs, radius, buckets)
    return cache[radius, buckets][indices]
