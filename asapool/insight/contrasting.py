"""Explain one class against another: importance, the most similar graphs of either class, and a change that flips."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from asapool.data import GraphSet
from asapool.errors import ConfigError, choose
from asapool.insight.copies import answers_of, target_of
from asapool.insight.explaining import explain, refuse_contrast
from asapool.insight.flipping import Flip, flip
from asapool.insight.hierarchy import Hierarchy
from asapool.insight.importance import KINDS, frozen
from asapool.insight.inputs import find_graph, model_and_set
from asapool.insight.levels import Floats, Ints
from asapool.insight.substructures.naming import molecule_at

SECONDS = 2  # for the maximum common substructure of two molecules
BUCKETS = 2048


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A similar graph; nodes are numbered within their graphs."""

    graph: int  # position in the source
    index: int  # in the set
    id: str
    text: str | None
    label: str | None
    predicted: str
    similarity: float  # Tanimoto of Morgan counts for molecules, else of Weisfeiler-Lehman counts
    shared: tuple[int, ...]  # nodes of the original graph in the maximum common substructure; empty if not computed
    matched: tuple[int, ...]  # the same nodes in the neighbour


def similarities(graphs: GraphSet, index: int) -> Floats:
    """Σ min(a, b) / Σ max(a, b) of the counts of substructures of graph `index` and of every graph, (G,)."""
    if graphs.source_text is not None and molecule_at(graphs, index) is not None:
        from asapool.data.descriptors import ecfp_counts

        counts = ecfp_counts(graphs, 2, BUCKETS)
    else:
        from scipy.sparse import csr_matrix

        from asapool.nn.counts import WLCounts
        from asapool.training.predictions import pieces

        wl = WLCounts(3, BUCKETS, backend="reference")
        rows = []
        for piece in pieces(graphs):
            batch = graphs.batch(piece)
            rows.append(wl(batch.x, batch.ptr, batch.rowptr, batch.col).numpy())
        counts = csr_matrix(np.concatenate(rows))
    own = counts[[index]]
    both = np.asarray(counts.minimum(_tiled(own, counts.shape[0])).sum(axis=1)).ravel()
    total = np.asarray(counts.sum(axis=1)).ravel() + float(own.sum()) - both
    similarity: Floats = both / np.maximum(total, 1e-12)
    return similarity


def common_nodes(graphs: GraphSet, a: int, b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The atoms of the maximum common substructure in either molecule; empty for other graphs."""
    first, second = molecule_at(graphs, a), molecule_at(graphs, b)
    if first is None or second is None:
        return (), ()
    from rdkit import Chem
    from rdkit.Chem import rdFMCS

    mcs = rdFMCS.FindMCS([first, second], timeout=SECONDS, ringMatchesRingOnly=True, completeRingsOnly=True)
    query = Chem.MolFromSmarts(mcs.smartsString) if mcs.numAtoms else None
    if query is None:
        return (), ()
    return tuple(first.GetSubstructMatch(query)), tuple(second.GetSubstructMatch(query))


def neighbour(graphs: GraphSet, index: int, other: int, similarity: float, predicted: str) -> Neighbour:
    """Describe one neighbour of a graph."""
    shared, matched = common_nodes(graphs, index, other)
    y = graphs.y[other] if graphs.y.ndim == 1 else -1
    return Neighbour(
        graph=int(graphs.places[other]), index=other, id=graphs.ids[other],
        text=None if graphs.source_text is None else graphs.source_text[other],
        label=graphs.class_names[int(y)] if y >= 0 else None, predicted=predicted, similarity=float(similarity),
        shared=shared, matched=matched,
    )  # fmt: skip


def _tiled(row: Any, count: int) -> Any:
    """A sparse row repeated `count` times."""
    from scipy.sparse import csr_matrix

    n = row.nnz
    indptr: Ints = np.arange(count + 1, dtype=np.int64) * n
    return csr_matrix((np.tile(row.data, count), np.tile(row.indices, count), indptr), shape=(count, row.shape[1]))


LOOKED = 400  # similar graphs that are predicted to find one of the other class


@dataclass(frozen=True, eq=False, kw_only=True)
class Contrast:
    """One graph explained for a class against another."""

    hierarchy: Hierarchy  # its importance refers to ln p_class/p_against
    against: str
    flip: Flip
    nearest: tuple[Neighbour, ...]  # the most similar graph of the class, and that of the other one
    pair: Neighbour | None  # the most similar graph for which the model predicts the other class

    def to_json(self) -> str:
        """One JSON object: the hierarchy as to_json writes it, and the rest under its names."""
        plain = {
            "format": "asapool.contrast", "version": 1, "against": self.against, "flip": asdict(self.flip),
            "nearest": [asdict(n) for n in self.nearest], "pair": None if self.pair is None else asdict(self.pair),
            "hierarchy": json.loads(self.hierarchy.to_json()),
        }  # fmt: skip
        return json.dumps(plain, ensure_ascii=False)


def contrast(
    model: Any,
    graphs: Any,
    index: int | str,
    against: str,
    *,
    target: str | None = None,
    importance: Sequence[str] = tuple(KINDS),
    pool: Ints | None = None,
    **options: Any,
) -> Contrast:
    """Explain why a graph gets one class and not another.

    Importance refers to ln p_class/p_against. The result also has the most similar graphs of either class (with the
    maximum common substructure of molecules), the most similar graph for which the model predicts the other class, and
    the fewest nodes and edges whose removal makes the other class more probable.

    Args:
        model: A trained classifier, or the path of its file or run folder.
        graphs: A GraphSet, or a source that `asapool.load` reads.
        index: Number of the graph, or a value of `asapool explain --graph`.
        against: The other class.
        target: The class to explain; by default the predicted one.
        importance: Kinds to compute.
        pool: Graphs among which to search for similar ones, such as the training graphs; by default all others.
        **options: Other options of asapool.load for a source.

    Returns:
        The contrast.

    >>> from asapool.data import load
    >>> from asapool.models import ModelConfig, build
    >>> graphs = load("synthetic:motifs?graphs=8&nodes=7")
    >>> model = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0)
    >>> found = contrast(model, graphs, 0, against="ring", target="house")
    >>> found.against, [n.label for n in found.nearest]
    ('ring', ['house', 'ring'])
    """
    network, classes, graphs = model_and_set(model, graphs, **options)
    refuse_contrast(target_of(network, classes))
    other = classes.index(choose("against", against, classes))
    at = find_graph(graphs, index) if isinstance(index, str) else index
    one = graphs.subset([at])
    with frozen(network):
        answer = int(answers_of(network, one)[0].argmax())
        c = answer if target is None else classes.index(choose("target", target, classes))
        if c == other:
            raise ConfigError(
                f"graph {one.ids[0]!r} is compared with its own class {against!r}. Name another class with --against, "
                "or choose the explained one with --class"
            )
        change = flip(network, one, c, other)
        places = np.setdiff1d(np.arange(len(graphs)) if pool is None else pool, [at])
        alike = similarities(graphs, at)
        order = places[np.argsort(-alike[places], kind="stable")]
        near = order[:LOOKED]
        predicted = dict(
            zip(near.tolist(), answers_of(network, graphs.subset(near)).argmax(axis=1).tolist(), strict=True)
        )
        described = _describer(graphs, at, alike, predicted, classes)
        nearest = [
            described(i) for i in (_first(graphs, order, predicted, classes[k], k) for k in (c, other)) if i is not None
        ]
        matched = next((int(i) for i in near if predicted[int(i)] == other), None)
        pair = None if matched is None else described(matched)
    hierarchy = explain(model, graphs, at, target=classes[c], importance=importance, against=classes[other])
    return Contrast(hierarchy=hierarchy, against=against, flip=change, nearest=tuple(nearest), pair=pair)


def _first(graphs: GraphSet, order: Ints, predicted: dict[int, int], name: str, c: int) -> int | None:
    """The most similar graph with this label; without any labels, the most similar one with this prediction."""
    if graphs.labelled.any() and name in graphs.class_names:
        same_class = order[graphs.y[order] == graphs.class_names.index(name)]
        return int(same_class[0]) if len(same_class) else None
    return next((i for i, answer in predicted.items() if answer == c), None)


def _describer(graphs: GraphSet, at: int, alike: Any, predicted: dict[int, int], classes: tuple[str, ...]) -> Any:
    def describe(i: int) -> Neighbour:
        answer = classes[predicted[i]] if i in predicted else ""
        return neighbour(graphs, at, i, alike[i], answer)

    return describe
