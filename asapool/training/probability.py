"""Probabilities of the classes for a set in memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asapool.data import GraphSet
from asapool.data.batch import Batch
from asapool.errors import DataError
from asapool.models import DirectModel, GraphModel

PIECE = 8_192  # nodes that go through the model at once: enough to be fast, few enough to stay in the cache


def pieces(graphs: GraphSet, indices: npt.ArrayLike | None = None, nodes: int = PIECE) -> list[npt.NDArray[np.int64]]:
    """Cut a list of graphs (all, by default) into pieces of about that many nodes; a large graph is one piece.

    >>> trio = GraphSet(x=np.ones((6, 1)), ptr=[0, 2, 4, 6], rowptr=[0] * 7, col=[])
    >>> [piece.tolist() for piece in pieces(trio, nodes=4)]
    [[0, 1], [2]]
    """
    chosen = np.arange(len(graphs)) if indices is None else np.asarray(indices, dtype=np.int64)
    if len(chosen) == 0:
        return []
    ends = np.cumsum(np.diff(graphs.ptr)[chosen])
    number = np.maximum(ends - 1, 0) // nodes
    return np.split(chosen, np.flatnonzero(np.diff(number)) + 1)


def logits_of(model: GraphModel, batch: Batch) -> Tensor:
    """The model's answer to a batch, without gradients or dropout, (B, C)."""
    model.eval()
    with torch.inference_mode():
        logits: Tensor = model(batch.x, batch.ptr, batch.rowptr, batch.col, batch.weight)
    return logits


def predict(model: GraphModel, graphs: GraphSet, indices: npt.ArrayLike | None = None) -> npt.NDArray[np.float64]:
    """Probability of every class for every graph (or those named), p = softmax(logits), (G, C), in their order.

    A graph to which the model's answer is no number is refused.
    """
    if isinstance(model, DirectModel):
        chosen = np.arange(len(graphs)) if indices is None else np.asarray(indices, dtype=np.int64)
        return model.predict_graphs(graphs, chosen)
    rows = []
    for piece in pieces(graphs, indices):
        logits = logits_of(model, graphs.batch(piece)).double()
        unknown = torch.nonzero(~logits.isfinite().all(dim=1))
        if len(unknown):
            i = int(piece[int(unknown[0])])
            raise DataError(
                f"{graphs.name}, graph {graphs.places[i]} (id {graphs.ids[i]!r}): finite logits expected, the model "
                f"gave {logits[int(unknown[0])].tolist()}. Look for huge features or edge weights in this graph; where "
                "there are none, train the model again with a lower train.lr"
            )
        rows.append(logits.softmax(dim=1).numpy())
    return np.concatenate(rows) if rows else np.zeros((0, model.num_classes))
