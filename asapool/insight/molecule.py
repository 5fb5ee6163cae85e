"""SMILES as RDKit molecules whose atoms are the nodes of a graph."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from asapool.insight.levels import Ints


def molecule(text: str, nodes: int, source: Ints, target: Ints) -> Any | None:
    """The molecule of a text, if rdkit is installed, can read it, and its atoms and bonds are those of the graph.

    source, target (E,): the edges, both directions; texts of other kinds (and rdkit's absence) give None.
    """
    mol = parse(text)
    if mol is None or mol.GetNumAtoms() != nodes:
        return None
    ours = set(zip(source.tolist(), target.tolist(), strict=True))
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
    theirs = {pair for a, b in ends for pair in ((a, b), (b, a))}
    return mol if ours == theirs else None


@lru_cache(maxsize=64)
def parse(text: str) -> Any | None:
    """The molecule of a SMILES; None where rdkit is absent or the text is no SMILES."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        return None
    with rdBase.BlockLogs():
        return Chem.MolFromSmiles(text)
