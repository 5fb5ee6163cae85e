"""Molecules that share a structure: Bemis-Murcko scaffolds (rings and what links them), and duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from asapool.data.graphset import GraphSet
from asapool.data.molecules import load_rdkit
from asapool.errors import DataError, MissingExtraError


class Duplicates(NamedTuple):
    """How many molecules a set holds more than once; a random split puts some of them into two parts."""

    molecules: int  # different ones that occur more than once
    graphs: int  # graphs that show one of these
    contradicting: int  # of these molecules, those with more than one class


def scaffolds(graphs: GraphSet) -> list[str]:
    """The scaffold of every molecule (G,) as SMILES; a molecule without rings has the empty one."""
    if graphs.source_text is None:
        raise DataError(f"{graphs.name}: scaffolds need SMILES, and these graphs have none. Use another kind of split")
    Chem = load_rdkit()
    from rdkit.Chem.Scaffolds import MurckoScaffold

    murcko: Any = MurckoScaffold
    smiles = []
    for i, mol in enumerate(_molecules(graphs)):
        if mol is None:
            text = graphs.source_text[i][:60]
            raise DataError(f"{graphs.name}: {text!r} of graph {graphs.ids[i]!r} is not SMILES that RDKit can read")
        smiles.append(Chem.MolToSmiles(murcko.GetScaffoldForMol(mol)))
    return smiles


def duplicates(graphs: GraphSet) -> Duplicates:
    """Count the molecules with equal canonical SMILES; none where the graphs were not made from SMILES.

    Sets that are not in memory are not searched: that would read all of their molecules before every training.
    """
    if graphs.mapped is not None or graphs.recipe.get("kind") != "smiles" or graphs.source_text is None:
        return Duplicates(0, 0, 0)
    try:
        Chem = load_rdkit()
    except MissingExtraError:  # a saved set can be trained on without it
        return Duplicates(0, 0, 0)
    labels: dict[str, list[Any]] = {}
    for text, y, mol in zip(graphs.source_text, graphs.y.tolist(), _molecules(graphs), strict=True):
        labels.setdefault(text if mol is None else Chem.MolToSmiles(mol), []).append(y)
    repeated = [ys for ys in labels.values() if len(ys) > 1]
    return Duplicates(len(repeated), sum(map(len, repeated)), sum(len(set(map(repr, ys))) > 1 for ys in repeated))


def _molecules(graphs: GraphSet) -> Iterator[Any]:
    Chem = load_rdkit()
    from rdkit import rdBase

    with rdBase.BlockLogs():
        for text in graphs.source_text or ():
            yield Chem.MolFromSmiles(text)
