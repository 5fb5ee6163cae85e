"""Molecules that a set holds more than once: a split by chance puts some of them into two parts, which flatters."""

from __future__ import annotations

from typing import NamedTuple

from asapool.data.graphset import GraphSet
from asapool.data.molecules import load_rdkit
from asapool.errors import MissingExtraError


class Repeated(NamedTuple):
    """How often molecules come again."""

    molecules: int  # different ones that occur more than once
    graphs: int  # graphs that show one of these
    contradicting: int  # of these molecules, those with more than one class


def repeated(graphs: GraphSet) -> Repeated:
    """Count the molecules with equal canonical SMILES; none where the graphs were not made from SMILES."""
    if graphs.recipe.get("kind") != "smiles" or graphs.source_text is None:
        return Repeated(0, 0, 0)
    try:
        Chem = load_rdkit()
    except MissingExtraError:  # a saved set can be trained on without it
        return Repeated(0, 0, 0)
    from rdkit import rdBase

    classes: dict[str, list[int]] = {}
    with rdBase.BlockLogs():
        for text, label in zip(graphs.source_text, graphs.y.tolist(), strict=True):
            mol = Chem.MolFromSmiles(text)
            classes.setdefault(text if mol is None else Chem.MolToSmiles(mol), []).append(label)
    again = [labels for labels in classes.values() if len(labels) > 1]
    return Repeated(len(again), sum(map(len, again)), sum(len(set(labels)) > 1 for labels in again))
