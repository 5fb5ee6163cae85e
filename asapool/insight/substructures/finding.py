"""motifs: find the substructures of a data set that drive a model's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asapool.data import GraphSet
from asapool.errors import ConfigError, DataError
from asapool.insight.copies import target_of
from asapool.insight.importance import frozen
from asapool.insight.inputs import model_and_set
from asapool.insight.levels import Ints, levels_of
from asapool.insight.substructures.cutting import Pieces, brics_pieces, cluster_pieces, match_pieces
from asapool.insight.substructures.measuring import Named, graphs_with, measure
from asapool.insight.substructures.naming import atoms_of, fragment_names, hashes, molecules_of, node_labels
from asapool.insight.substructures.results import Motifs
from asapool.models import GraphModel, method
from asapool.models.batches import cut


def motifs(
    model: Any,
    graphs: Any,
    *,
    query: str | None = None,
    min_graphs: int = 10,
    max_nodes: int = 12,
    samples: int = 100,
    share: float = 0.5,
    seed: int = 0,
    **options: Any,
) -> Motifs:
    """Find the substructures of a data set that drive a model's predictions.

    The members of every kept cluster at every level are cut out of their graphs, equal ones are grouped (molecules by
    canonical fragment SMILES, other graphs by a Weisfeiler-Lehman hash), and each is removed from a sample of graphs:

    contribution = mean of (ln p/(1 − p) of the graph − ln p/(1 − p) of the graph without the substructure),
    or of the predicted values for a regression model.

    For methods without clusters, molecules are cut into BRICS fragments instead.

    Args:
        model: A trained classifier, a fitted ASAPClassifier, or the path of a model file or run folder.
        graphs: A GraphSet, or a source that `asapool.load` reads.
        query: A SMARTS pattern (for other graphs a hash from an earlier result): only this substructure; all its
            matches in a graph are removed at once, from every graph that contains it.
        min_graphs: Substructures in fewer graphs are left out.
        max_nodes: Only the cores of larger clusters are used, and larger cores are left out.
        samples: Maximum number of graphs from which each substructure is removed.
        share: A member is in the core of a cluster if its share is at least this fraction of the largest.
        seed: Of the sample.
        **options: Other options of asapool.load for a source, such as smiles="SMILES".

    Returns:
        The substructures, strongest first.

    >>> from asapool.data import load
    >>> from asapool.models import ModelConfig, build
    >>> graphs = load("synthetic:motifs?graphs=20&nodes=7")
    >>> found = motifs(build(ModelConfig(hidden=8, levels=2), graphs.num_features, 2, seed=0), graphs)
    >>> found.outputs, found.source, len(found) > 0
    (('house', 'ring'), 'clusters', True)
    """
    for name, value, least in (("min_graphs", min_graphs, 1), ("max_nodes", max_nodes, 2), ("samples", samples, 2)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{name} must be an integer of at least {least}, got {value!r}")
    if not 0 <= share <= 1:
        raise ConfigError(f"share must lie in [0, 1], got {share}")
    network, classes, graphs = model_and_set(model, graphs, **options)
    with frozen(network):
        mols = molecules_of(graphs)
        if query is not None:
            named, source, note = _matches(network, graphs, mols, query, share, max_nodes), "query", ""
            min_graphs, samples = 1, len(graphs)
        else:
            pieces, source, note = _cut(network, graphs, mols, share, max_nodes)
            named = _group(graphs, mols, pieces, min_graphs)
        rows = measure(network, graphs, classes, named, min_graphs, samples, seed)
    return Motifs(
        data=graphs.name, method=network.config.method, kind=target_of(network, classes).kind, outputs=classes,
        graphs=len(graphs), source=source, note=note, rows=tuple(rows),
    )  # fmt: skip


def _cut(model: GraphModel, graphs: GraphSet, mols: Sequence[Any], share: float, most: int) -> tuple[Pieces, str, str]:
    """Clusters if the method forms any, otherwise BRICS fragments."""
    first, _ = levels_of(model, cut(model, graphs, np.zeros(1, np.int64)))
    if any(len(level.member) > len(level) for level in first):
        return cluster_pieces(model, graphs, share=share, max_nodes=most), "clusters", ""
    reason = method(model.config.method).no_levels or f"The method {model.config.method} keeps single nodes"
    if all(mol is None for mol in mols):
        raise ConfigError(
            f"{reason}, so there are no clusters to cut out, and {graphs.name} has no molecules to cut by the BRICS "
            "rules. Use a model with the method asap or asap+"
        )
    return brics_pieces(graphs, mols), "BRICS", f"{reason}, so molecules were cut into fragments by the BRICS rules."


def _matches(model: GraphModel, graphs: GraphSet, mols: Sequence[Any], query: str, share: float, most: int) -> Named:
    """The matches of a pattern; for graphs that are not molecules, the clusters with that hash."""
    if any(mol is not None for mol in mols):
        from rdkit import Chem, rdBase

        with rdBase.BlockLogs():
            pattern = Chem.MolFromSmarts(query)
        if pattern is None or not pattern.GetNumAtoms():
            raise ConfigError(
                f"query: {query[:80]!r} is not SMARTS that RDKit can read. Check brackets and ring numbers"
            )
        pieces = match_pieces(graphs, mols, pattern)
    else:
        every = _group(graphs, mols, _cut(model, graphs, mols, share, most)[0], 1)
        if query not in every.names:
            raise ConfigError(
                f"query: no cluster of {graphs.name} has the hash {query[:80]!r}. Use a name listed by asapool motifs"
            )
        pieces = every.pieces.take(np.flatnonzero(every.kind == every.names.index(query)))
    if not len(pieces):
        raise DataError(f"{graphs.name}: no graph contains {query!r}. Try a smaller pattern")
    return Named(pieces, np.zeros(len(pieces), np.int64), [query])


def _group(graphs: GraphSet, mols: Sequence[Any], pieces: Pieces, least: int) -> Named:
    """Give equal pieces the same number; those in too few graphs are left out."""
    if any(mol is not None for mol in mols):
        readable = np.array([mol is not None for mol in mols])
        pieces = pieces.take(np.flatnonzero(readable[pieces.graph]))
        atoms = atoms_of(graphs, mols)
        bonds = None if graphs.edge_attr is None else graphs.edge_attr[:, :5].argmax(axis=1)
        pieces = _frequent(pieces, hashes(graphs, pieces, atoms.label, bonds), least)  # first: names take longer
        texts = fragment_names(graphs, mols, atoms, pieces, bonds)
    else:
        labels, edges = node_labels(graphs)
        word = hashes(graphs, pieces, labels, edges)
        texts = [f"{w & (2**64 - 1):016x}" for w in word.tolist()]
    names, kind = np.unique(np.array(texts, dtype=object), return_inverse=True)
    return Named(pieces, kind.astype(np.int64), [str(name) for name in names])


def _frequent(pieces: Pieces, word: Ints, least: int) -> Pieces:
    _, kind = np.unique(word, return_inverse=True)
    return pieces.take(np.flatnonzero(graphs_with(pieces, kind)[kind] >= least))
