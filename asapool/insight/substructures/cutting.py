"""Cut the members of every kept cluster, BRICS fragments, or matches of a pattern out of the graphs of a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from asapool.data import GraphSet
from asapool.data.csr import pointer, spans
from asapool.insight.levels import Floats, Ints, levels_of
from asapool.models import GraphModel
from asapool.models.batches import cut
from asapool.training.predictions import pieces as chunks


@dataclass(frozen=True, eq=False)
class Pieces:
    """P connected sets of nodes, each within one graph of a set."""

    graph: Ints  # (P,)
    level: Ints  # (P,) of the cluster; 0 = not from a cluster
    ptr: Ints  # (P+1,) where the nodes of each begin
    node: Ints  # numbered through the whole set, ascending within each piece

    def __len__(self) -> int:
        return len(self.graph)

    @property
    def sizes(self) -> Ints:
        """Nodes of each piece, (P,)."""
        return np.diff(self.ptr)

    def take(self, which: Ints) -> Pieces:
        """Some of the pieces, in that order."""
        sizes = self.sizes[which]
        node = self.node[spans(self.ptr[which], sizes)]
        return Pieces(self.graph[which], self.level[which], pointer(sizes), node)

    def nodes(self, p: int) -> list[int]:
        """The nodes of one piece."""
        return [int(v) for v in self.node[self.ptr[p] : self.ptr[p + 1]]]


class Induced(NamedTuple):
    """The subgraphs that pieces induce, packed; every member of a piece is a separate node."""

    rowptr: Ints  # (M+1,)
    col: Ints  # (F,) members, of the same piece
    entry: Ints  # (F,) the edge in the set


def cluster_pieces(model: GraphModel, graphs: GraphSet, *, share: float = 0.5, max_nodes: int = 12) -> Pieces:
    """Every kept cluster of every level as a set of original nodes.

    Two sets per cluster: all its members, if there are at most max_nodes, and its core: the members whose share is at
    least `share` of the largest and that are connected to the strongest one. Sets of one node, of more than
    max_nodes, and whole graphs are left out; a set shared by several clusters is listed once.

    Args:
        model: In evaluation mode; its method forms clusters.
        graphs: The set.
        share: Minimum share of a member of the core, relative to the largest.
        max_nodes: Maximum number of nodes of a set.
    """
    parts = []
    for chunk in chunks(graphs):
        batch = cut(model, graphs, chunk)
        base = graphs.ptr[chunk] - batch.ptr.numpy()[:-1]  # from node numbers in the batch to those in the set
        owner = np.repeat(np.arange(len(chunk)), np.diff(batch.ptr.numpy()))
        levels, _ = levels_of(model, batch)
        composed: Any = None
        for depth, level in enumerate(levels, 1):
            composed = level.S if composed is None else composed @ level.S
            columns = composed.tocsc()
            columns.sort_indices()
            first, member, weight = columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data
            sizes = np.diff(first)
            if not sizes.all():
                continue
            at = owner[member[first[:-1]]]  # the graph of each cluster, within the batch
            whole = Pieces(chunk[at], np.full(len(at), depth), first, member + base[owner[member]])
            parts.append(whole.take(np.flatnonzero(sizes <= max_nodes)))
            parts.append(_cores(graphs, whole, weight, share))
    return _distinct(graphs, _joined(parts), max_nodes)


def brics_pieces(graphs: GraphSet, mols: Sequence[Any]) -> Pieces:
    """The fragments into which the BRICS rules cut molecules; none for molecules that are not cut."""
    from rdkit.Chem import BRICS, FragmentOnBonds, GetMolFrags

    find: Any = BRICS.FindBRICSBonds

    graph, sets = [], []
    for g, mol in enumerate(mols):
        bonds = [] if mol is None else [mol.GetBondBetweenAtoms(*ends).GetIdx() for ends, _ in find(mol)]
        if bonds:
            for atoms in GetMolFrags(FragmentOnBonds(mol, bonds, addDummies=False)):
                graph.append(g)
                sets.append(sorted(atoms))
    return from_sets(graphs, graph, sets)


def match_pieces(graphs: GraphSet, mols: Sequence[Any], pattern: Any) -> Pieces:
    """All atoms of each molecule that a pattern matches, as one piece per molecule."""
    graph, sets = [], []
    for g, mol in enumerate(mols):
        matches = () if mol is None else mol.GetSubstructMatches(pattern, maxMatches=1000)
        if matches:
            graph.append(g)
            sets.append(sorted({atom for match in matches for atom in match}))
    return from_sets(graphs, graph, sets)


def from_sets(graphs: GraphSet, graph: Sequence[int], sets: Sequence[Sequence[int]]) -> Pieces:
    """Pieces from lists of nodes, which are numbered within their graphs."""
    owner = np.array(graph, np.int64)
    sizes = np.array([len(nodes) for nodes in sets], np.int64)
    flat = np.array([v for nodes in sets for v in nodes], np.int64)
    return Pieces(owner, np.zeros(len(owner), np.int64), pointer(sizes), flat + np.repeat(graphs.ptr[owner], sizes))


def induced(graphs: GraphSet, pieces: Pieces) -> Induced:
    """The edges between nodes of the same piece."""
    N, owner = len(graphs.x), np.repeat(np.arange(len(pieces)), pieces.sizes)
    key = owner * N + pieces.node  # ascending: pieces are consecutive, and their nodes ascend
    degree = np.diff(graphs.rowptr)[pieces.node]
    entry = spans(graphs.rowptr[pieces.node], degree)
    row = np.repeat(np.arange(len(pieces.node)), degree)
    neighbour = owner[row] * N + graphs.col[entry]
    place = np.minimum(np.searchsorted(key, neighbour), max(len(key) - 1, 0))
    inside = key[place] == neighbour if len(key) else np.zeros(0, bool)
    count = np.bincount(row[inside], minlength=len(pieces.node))
    return Induced(pointer(count), place[inside], entry[inside])


def _cores(graphs: GraphSet, whole: Pieces, weight: Floats, share: float) -> Pieces:
    """The nodes of each piece with a large weight that are connected to the one with the largest."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    top = np.maximum.reduceat(weight, whole.ptr[:-1])
    owner = np.repeat(np.arange(len(whole)), whole.sizes)
    strong = weight >= share * top[owner]
    pieces = Pieces(
        whole.graph, whole.level, pointer(np.bincount(owner[strong], minlength=len(whole))), whole.node[strong]
    )
    inner = induced(graphs, pieces)
    M = len(pieces.node)
    _, part = connected_components(
        csr_array((np.ones(len(inner.col)), inner.col, inner.rowptr), shape=(M, M)), directed=False
    )
    order = np.lexsort((-weight[strong], owner[strong]))  # the strongest member of each piece comes first
    chosen = part[order[pieces.ptr[:-1]]]
    joined = part == chosen[owner[strong]]
    return Pieces(
        pieces.graph,
        pieces.level,
        pointer(np.bincount(owner[strong][joined], minlength=len(whole))),
        pieces.node[joined],
    )


def _joined(parts: Sequence[Pieces]) -> Pieces:
    sizes = np.concatenate([np.zeros(0, np.int64), *(p.sizes for p in parts)])
    graph, level, node = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(p, name) for p in parts)])
        for name in ("graph", "level", "node")
    )
    return Pieces(graph, level, pointer(sizes), node)


def _distinct(graphs: GraphSet, pieces: Pieces, max_nodes: int) -> Pieces:
    """Each set of nodes once, from its lowest level; trivial ones are left out."""
    sizes = pieces.sizes
    proper = sizes < np.diff(graphs.ptr)[pieces.graph]
    pieces = pieces.take(np.flatnonzero((sizes > 1) & (sizes <= max_nodes) & proper))
    if not len(pieces):
        return pieces
    draw = np.random.default_rng(0).integers(1, 2**63, size=len(graphs.x), dtype=np.uint64)  # a random number per node
    word = np.add.reduceat(draw[pieces.node], pieces.ptr[:-1])  # wraps around; equal sets have equal sums
    order = np.lexsort((pieces.level, word))
    fresh = np.ones(len(order), bool)
    fresh[1:] = word[order][1:] != word[order][:-1]
    return pieces.take(np.sort(order[fresh]))
