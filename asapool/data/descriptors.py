"""Properties of whole molecules: descriptors, ECFP, scaffolds.

The recipe of a set names its descriptors, `{"descriptors": {"columns": [...], "rdkit": [...]}}`, so that new molecules
get the same ones in the same order. A missing value is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asapool.data.csr import Floats
from asapool.data.decimal_commas import DECIMAL_COMMA
from asapool.data.graphset import GraphSet
from asapool.data.molecules import load_rdkit
from asapool.data.reading import ReadOptions
from asapool.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


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
    from scipy.sparse import csr_matrix

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
    matrix = csr_matrix(
        (np.array(values, np.float32), np.array(columns, np.int64), np.array(indptr, np.int64)),
        shape=(len(graphs), buckets),
    )
    matrix.sort_indices()
    return matrix


def smiles_of(graphs: GraphSet) -> tuple[str, ...]:
    """The SMILES of all graphs; graphs that are not molecules are refused."""
    if graphs.source_text is None:
        raise DataError(
            f"{graphs.name}: ECFP needs molecules read from SMILES, and these graphs have none. "
            "Use WL counts instead (method wl, or model.counts=wl), which work for any graph"
        )
    return graphs.source_text


def scaffolds(graphs: GraphSet) -> list[str]:
    """The scaffold of every molecule (G,) as SMILES without stereo; "" for a molecule without rings."""
    if graphs.source_text is None:
        raise DataError(f"{graphs.name}: scaffolds need SMILES, and these graphs have none. Use another kind of split")
    Chem = load_rdkit()
    from rdkit.Chem.Scaffolds import MurckoScaffold

    murcko: Any = MurckoScaffold
    smiles = []
    for i, mol in enumerate(parsed(graphs)):
        if mol is None:
            text = graphs.source_text[i][:60]
            raise DataError(f"{graphs.name}: {text!r} of graph {graphs.ids[i]!r} is not SMILES that RDKit can read")
        smiles.append(Chem.MolToSmiles(murcko.GetScaffoldForMol(mol), isomericSmiles=False))
    return smiles


def parsed(graphs: GraphSet) -> Iterator[Any]:
    """RDKit's molecules of a set; None for SMILES that cannot be read."""
    Chem = load_rdkit()
    from rdkit import rdBase

    with rdBase.BlockLogs():
        for text in graphs.source_text or ():
            yield Chem.MolFromSmiles(text)


LARGEST = float(np.finfo(np.float32).max)  # descriptors are float32
MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?")


def descriptor_columns(options: ReadOptions) -> list[str]:
    """The columns that a table must have: those of the recipe, or those in the options."""
    known = _known(options)
    if known is not None or options.recipe is not None:
        return [str(name) for name in (known or {}).get("columns", ())]
    given = options.descriptors or ()
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    if len(set(names)) < len(names) or "" in names:
        raise DataError(f"descriptors must be distinct column names, got {given!r}")
    return names


def rdkit_names(options: ReadOptions) -> list[str]:
    """The properties that RDKit computes: those of the recipe, or all fast ones if the options ask for them."""
    known = _known(options)
    if known is not None or options.recipe is not None:
        return [str(name) for name in (known or {}).get("rdkit", ())]
    return _properties() if options.rdkit_descriptors else []


def read_number(cell: Any, where: str, name: str) -> float:
    """A cell as a number; an empty one is NaN, and text is refused."""
    if isinstance(cell, (bool, np.bool_)):
        return float(cell)
    text = "" if cell is None else str(cell).strip()
    if text.lower() in MISSING:
        return math.nan
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    if not abs(number) <= LARGEST:
        commas = "Read decimal commas with decimal=',' (--decimal ,)"
        advice = commas if DECIMAL_COMMA.fullmatch(text) else "Correct it, or leave it empty"
        raise DataError(f"{where}: expected a finite number for the descriptor {name!r}, got {text[:40]!r}. {advice}")
    return number


def rdkit_descriptors(smiles: Sequence[str], names: Sequence[str]) -> Floats:
    """RDKit's properties of each molecule, (G, D); NaN if one cannot be computed.

    Args:
        smiles: readable SMILES.
        names: of rdMolDescriptors.Properties, such as "amw" or "CrippenClogP".

    >>> rdkit_descriptors(["CCO"], ["NumHBD", "NumRings"]).tolist()
    [[1.0, 0.0]]
    """
    Chem = load_rdkit()
    from rdkit import rdBase
    from rdkit.Chem.rdMolDescriptors import Properties

    unknown = sorted(set(names) - set(_properties()))
    if unknown:
        raise DataError(f"this version of RDKit has no property {unknown[0]!r}. Install the version used for training")
    compute = Properties(list(names)).ComputeProperties
    with rdBase.BlockLogs():
        rows = [list(compute(Chem.MolFromSmiles(text))) for text in smiles]
    values = np.array(rows, np.float64).reshape(len(rows), len(names))
    values[~np.isfinite(values) | (np.abs(values) > LARGEST)] = np.nan
    return values.astype(np.float32)


def missing_note(values: Floats, names: Sequence[str], where: str) -> list[str]:
    """A note about missing descriptor values, if there are any."""
    counts = np.isnan(values).sum(axis=0).tolist()
    gaps = [f"{name!r} ({count:,} of {len(values):,} rows)" for name, count in zip(names, counts, strict=True) if count]
    if not gaps:
        return []
    return [f"{where}: missing descriptor values, for which the model uses the training mean: {', '.join(gaps)}"]


def refuse_empty(values: Floats | None, names: Sequence[str], where: Path) -> None:
    """Refuse a descriptor column without any value: there is no training mean to replace what is missing."""
    for k, name in enumerate(names):
        if values is not None and np.isnan(values[:, k]).all():
            raise DataError(f"{where}: all entries of the descriptor {name!r} are missing. Leave it out, or add values")


def _known(options: ReadOptions) -> Mapping[str, Any] | None:
    settings = None if options.recipe is None else options.recipe.get("descriptors")
    return settings if isinstance(settings, Mapping) else None


def _properties() -> list[str]:
    load_rdkit()
    from rdkit.Chem.rdMolDescriptors import Properties

    return list(Properties.GetAvailableProperties())
