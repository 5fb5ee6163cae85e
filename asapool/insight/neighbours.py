"""The graphs of a set that are most like one graph, and the substructure that two molecules have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from asapool.data import GraphSet
from asapool.insight.levels import Floats, Ints
from asapool.insight.substructures.naming import molecule_at

SECONDS = 2  # for the maximum common substructure of two molecules
BUCKETS = 2048


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A similar graph; nodes are numbered within their graphs."""

    graph: int  # place in the source
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
        from asapool.data.fingerprints import ecfp_counts

        counts = ecfp_counts(graphs, 2, BUCKETS)
    else:
        from scipy.sparse import csr_matrix

        from asapool.nn.counts import WLCounts
        from asapool.training.predictions import pieces

        wl = WLCounts(3, BUCKETS)
        rows = []
        for some in pieces(graphs):
            batch = graphs.batch(some)
            rows.append(wl(batch.x, batch.ptr, batch.rowptr, batch.col).numpy())
        counts = csr_matrix(np.concatenate(rows))
    mine = counts[[index]]
    both = np.asarray(counts.minimum(_tiled(mine, counts.shape[0])).sum(axis=1)).ravel()
    total = np.asarray(counts.sum(axis=1)).ravel() + float(mine.sum()) - both
    found: Floats = both / np.maximum(total, 1e-12)
    return found


def common_nodes(graphs: GraphSet, a: int, b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The atoms of the maximum common substructure in either molecule; empty for other graphs."""
    first, second = molecule_at(graphs, a), molecule_at(graphs, b)
    if first is None or second is None:
        return (), ()
    from rdkit import Chem
    from rdkit.Chem import rdFMCS

    made = rdFMCS.FindMCS([first, second], timeout=SECONDS, ringMatchesRingOnly=True, completeRingsOnly=True)
    query = Chem.MolFromSmarts(made.smartsString) if made.numAtoms else None
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
    """The same sparse row many times."""
    from scipy.sparse import csr_matrix

    n = row.nnz
    indptr: Ints = np.arange(count + 1, dtype=np.int64) * n
    return csr_matrix((np.tile(row.data, count), np.tile(row.indices, count), indptr), shape=(count, row.shape[1]))
