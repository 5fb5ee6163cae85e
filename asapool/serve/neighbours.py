"""The labelled graphs that the model finds most similar to a graph: its nearest neighbours among the embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from asapool.data import GraphSet, read
from asapool.errors import ConfigError
from asapool.models.checkpoint import LoadedModel
from asapool.training.applicability import Reference
from asapool.training.embeddings import embed

SHOWN = 3
MOST = 200_000  # graphs in the set; their embeddings are kept in memory


class Neighbours:
    """A labelled set in which to look for neighbours.

    Args:
        model: computes the embeddings.
        source: the training set, or any other set with the same target.
    """

    def __init__(self, model: LoadedModel, source: str) -> None:
        self.model = model
        self.graphs = read(source, recipe=model.recipe, labels="optional", skip_invalid=True).graphs
        if not 2 <= len(self.graphs) <= MOST:
            raise ConfigError(f"{source}: a set for neighbours has 2 to {MOST:,} graphs, got {len(self.graphs):,}")
        model.check(self.graphs)
        vectors = embed(model.model, self.graphs)
        reference = Reference.fit(vectors)
        if reference is None:
            raise ConfigError(f"{source}: the model gives all graphs the same embedding, so none is nearest")
        self.reference = reference
        self.points = reference.project(vectors)

    def of(self, graphs: GraphSet) -> list[dict[str, Any]]:
        """The labelled graphs nearest to the first of `graphs`, nearest first."""
        point = self.reference.project(embed(self.model.model, graphs, [0]))
        distances = np.sqrt(((self.points - point) ** 2).sum(axis=1))
        return [self._row(i, float(distances[i])) for i in np.argsort(distances, kind="stable")[:SHOWN].tolist()]

    def _row(self, i: int, distance: float) -> dict[str, Any]:
        from asapool.insight.drawing.canvas import plain
        from asapool.insight.drawing.pictures import molecule_svg

        text = None if self.graphs.source_text is None else self.graphs.source_text[i]
        drawn = "" if text is None else molecule_svg(text, 240)
        return {
            "id": self.graphs.ids[i], "smiles": text, "label": label_of(self.graphs, i), "distance": round(distance, 4),
            "svg": plain(drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)),
        }  # fmt: skip


def label_of(graphs: GraphSet, i: int) -> str:
    """The class, the measured values or the yes/no columns of a graph, as text.

    >>> from asapool.data import load
    >>> label_of(load("synthetic:cycles?graphs=4"), 1)
    'path'
    """
    target, y = graphs.target, graphs.y[i]
    if target.kind == "classification":
        return target.classes[int(y)] if y >= 0 else "unknown"
    known = [(name, value) for name, value in zip(target.names, y.tolist(), strict=True) if not np.isnan(value)]
    if target.kind == "multilabel":
        return ", ".join(f"{name}: {target.classes[int(value)]}" for name, value in known) or "unknown"
    return ", ".join(f"{name} {value:.4g}" for name, value in known) or "unknown"
