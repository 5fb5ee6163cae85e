"""ECFP: hashed counts of the circular substructures of molecules, by RDKit's Morgan generator."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from asapool.data.graphset import GraphSet
from asapool.data.molecules import load_rdkit
from asapool.errors import DataError


def ecfp_counts(graphs: GraphSet, radius: int = 2, buckets: int = 2048) -> csr_matrix:
    """How often each circular substructure occurs in each molecule, hashed into buckets.

    Args:
        graphs: molecules, read from SMILES.
        radius: largest distance from the central atom; 2 gives ECFP4.
        buckets: number of counters.

    Returns:
        Counts (G, buckets), float32.
    """
    texts = smiles_of(graphs)
    Chem = load_rdkit()
    from rdkit import rdBase
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=buckets)
    indptr, columns, values = [0], [], []
    with rdBase.BlockLogs():
        for graph_id, text in zip(graphs.ids, texts, strict=True):
            mol = Chem.MolFromSmiles(text)
            if mol is None:
                raise DataError(f"{graphs.name}: {text[:60]!r} of graph {graph_id!r} is not SMILES that RDKit can read")
            counts = generator.GetCountFingerprint(mol).GetNonzeroElements()
            columns.extend(counts)
            values.extend(counts.values())
            indptr.append(len(columns))
    made = csr_matrix(
        (np.array(values, np.float32), np.array(columns, np.int64), np.array(indptr, np.int64)),
        shape=(len(graphs), buckets),
    )
    made.sort_indices()
    return made


def smiles_of(graphs: GraphSet) -> tuple[str, ...]:
    """The SMILES of all graphs; graphs that are no molecules are refused."""
    if graphs.source_text is None:
        raise DataError(
            f"{graphs.name}: ECFP needs molecules read from SMILES, and these graphs have none. "
            "Use WL counts instead (method wl, or model.counts=wl), which any graph has"
        )
    return graphs.source_text
