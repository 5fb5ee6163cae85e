"""Bemis-Murcko scaffolds: the rings of a molecule and what links them, as SMILES."""

from __future__ import annotations

from typing import Any

from asapool.data.graphset import GraphSet
from asapool.data.molecules import load_rdkit
from asapool.errors import DataError


def scaffolds(graphs: GraphSet) -> list[str]:
    """The scaffold of every molecule (G,); a molecule without rings has the empty one."""
    if graphs.source_text is None:
        raise DataError(f"{graphs.name}: scaffolds need SMILES, and these graphs have none. Use another kind of split")
    Chem = load_rdkit()
    from rdkit import rdBase
    from rdkit.Chem.Scaffolds import MurckoScaffold

    murcko: Any = MurckoScaffold

    found = []
    with rdBase.BlockLogs():
        for graph_id, text in zip(graphs.ids, graphs.source_text, strict=True):
            mol = Chem.MolFromSmiles(text)
            if mol is None:
                raise DataError(f"{graphs.name}: {text[:60]!r} of graph {graph_id!r} is not SMILES that RDKit can read")
            found.append(Chem.MolToSmiles(murcko.GetScaffoldForMol(mol)))
    return found
