"""nci-alerts: real molecules that need no download, with ground truth for the atoms that decide the class.

The 4,999 NCI molecules inside the rdkit wheel (4,991 of which RDKit can read), labelled by RDKit's BRENK catalogue of
105 structural alerts: a molecule is "alert" when any of them matches, and the matching atoms are the ground truth.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from asapool.data.download import cached
from asapool.data.graphset import GraphSet
from asapool.data.molecule_table import pack_molecules
from asapool.data.molecules import VERSION, load_rdkit, read_smiles
from asapool.errors import DataError

CLASSES = ("clean", "alert")


def load_alerts() -> GraphSet:
    """The set, from the cache if this version of rdkit has already made it."""
    load_rdkit()
    import rdkit

    return cached(f"nci-alerts-{VERSION}-rdkit-{rdkit.__version__}", make_alerts)


def make_alerts() -> GraphSet:
    """Read and label the molecules."""
    from rdkit import RDConfig
    from rdkit.Chem.FilterCatalog import FilterCatalog, FilterCatalogParams

    path = Path(RDConfig.RDDataDir) / "NCI" / "first_5K.smi"
    if not path.is_file():
        raise DataError(f"{path}: this rdkit comes without the NCI molecules. Install it from PyPI: pip install rdkit")
    rows = [line.split() for line in path.read_text().splitlines() if line.strip()]
    catalog = FilterCatalog(FilterCatalogParams(FilterCatalogParams.FilterCatalogs.BRENK))
    patterns: dict[str, Any] = {}
    alert: list[bool] = []
    truth: list[np.ndarray[tuple[int], np.dtype[np.int8]]] = []

    def label(mol: Any) -> None:
        marks = np.zeros(mol.GetNumAtoms(), np.int8)
        entries = catalog.GetMatches(mol)
        for entry in entries:
            name = entry.GetDescription()
            if name not in patterns:
                patterns[name] = entry.GetFilterMatches(mol)[0].filterMatch.GetPattern()
            # the catalogue stops at the first match of an alert: its pattern gives all of them
            for atoms in mol.GetSubstructMatches(patterns[name]):
                marks[list(atoms)] = 1
        alert.append(len(entries) > 0)
        truth.append(marks)

    molecules = read_smiles([row[0] for row in rows], label)
    kept = [rows[k] for k in molecules.rows.tolist()]
    return pack_molecules(
        molecules,
        y=np.array(alert, np.int64),
        class_names=CLASSES,
        ids=tuple(f"NSC {row[1]}" for row in kept),
        source_text=tuple(row[0] for row in kept),
        truth=np.concatenate(truth),
        name="nci-alerts",
        recipe={"version": VERSION, "kind": "smiles", "smiles": "smiles", "target": "label", "classes": list(CLASSES)},
    )
