"""Turns SMILES into atoms with 36 features and bonds with 6 (version 1 of the recipe "smiles").

Atoms: element (H B C N O F Si P S Cl Se Br I, or other), neighbours (0 to 4, or more), charge (-2 or less, -1, 0, 1, 2
or more), hydrogens (0 to 2, or more), hybridisation (s, sp, sp2, sp3, or other), aromatic, in a ring. Hydrogens are not
nodes unless RDKit keeps them as atoms. Bonds: single, double, triple, aromatic, or other; in a ring; both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asapool.data.csr import Floats, Ints, pointer
from asapool.errors import MissingExtraError

VERSION = 1
ELEMENTS = (1, 5, 6, 7, 8, 9, 14, 15, 16, 17, 34, 35, 53)
SYMBOLS = ("H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Se", "Br", "I")
ORBITALS = ("S", "SP", "SP2", "SP3")
ATOM_NAMES = (
    *(f"element={s}" for s in SYMBOLS), "element=other",
    *(f"neighbours={d}" for d in range(5)), "neighbours>=5",
    "charge<=-2", "charge=-1", "charge=0", "charge=1", "charge>=2",
    *(f"hydrogens={h}" for h in range(3)), "hydrogens>=3",
    *(f"hybridisation={o.lower()}" for o in ORBITALS), "hybridisation=other",
    "aromatic", "ring",
)  # fmt: skip
WIDTHS = (14, 6, 5, 4, 5, 2, 2)  # number of values of each atom property; the last two are binary
BOND_NAMES = ("single", "double", "triple", "aromatic", "other", "ring")
EXTENDED_NAMES = (*BOND_NAMES, "conjugated", "stereo=E", "stereo=Z")  # with edge_features="extended"
LARGE = 400  # with this many atoms, bonds are listed one by one: the adjacency matrix would be mostly zeros


class Molecules(NamedTuple):
    """Many molecules as integer codes, before they become features; G is the number of readable ones."""

    rows: Ints  # (G,) index of the SMILES
    atoms: Ints  # (G,) number of atoms
    codes: npt.NDArray[np.int8]  # (N, 7) the value of each atom property
    bonds: Ints  # (G,) number of entries, two per bond
    ends: npt.NDArray[np.int32]  # (E, 2) target and source, numbered within the molecule, sorted
    kinds: npt.NDArray[np.int8]  # (E, 2) bond type, in a ring
    failed: list[tuple[int, str]]  # index of every unreadable SMILES, and the reason


def load_rdkit() -> Any:
    """rdkit.Chem; without rdkit, an error that says how to install it."""
    try:
        from rdkit import Chem
    except ImportError:
        raise MissingExtraError("rdkit", "chem") from None
    return Chem


def read_smiles(smiles: Sequence[str], visit: Callable[[Any], None] | None = None) -> Molecules:
    """Read SMILES into codes; those that RDKit cannot read are listed as failed.

    visit is called with every RDKit molecule, in order.
    """
    Chem = load_rdkit()
    from rdkit import rdBase

    orbital = {getattr(Chem.HybridizationType, name): k for k, name in enumerate(ORBITALS)}
    rows: list[int] = []
    atoms: list[int] = []
    bonds: list[int] = []
    failed: list[tuple[int, str]] = []
    flat: list[int] = []  # five numbers per atom; encoded for all molecules at once below
    targets, sources, orders = [], [], []
    rings: list[int] = []  # the two atoms of every ring bond, numbered through all molecules
    first = 0
    with rdBase.BlockLogs():
        for row, text in enumerate(smiles):
            mol = Chem.MolFromSmiles(text)
            N = 0 if mol is None else mol.GetNumAtoms()
            if not N:
                failed.append((row, _reason(Chem, text)))
                continue
            atom = mol.GetAtomWithIdx
            for v in range(N):
                a = atom(v)
                flat += (
                    a.GetAtomicNum(), a.GetFormalCharge(), a.GetTotalNumHs(), orbital.get(a.GetHybridization(), 4),
                    a.GetIsAromatic(),
                )  # fmt: skip
            i, j, order = _bonds(Chem, mol, N)
            for ring in mol.GetRingInfo().AtomRings():
                before = ring[-1]
                for v in ring:  # consecutive atoms of a ring share a ring bond
                    rings += (first + before, first + v)
                    before = v
            targets.append(i)
            sources.append(j)
            orders.append(order)
            rows.append(row)
            atoms.append(N)
            bonds.append(len(i))
            first += N
            if visit is not None:
                visit(mol)
    counts, entries = np.array(atoms, np.int64), np.array(bonds, np.int64)
    target, source = (np.concatenate([np.zeros(0, np.int64), *ends]) for ends in (targets, sources))
    base = np.repeat(pointer(counts)[:-1], entries)
    # a call of RDKit for every atom takes long, and these two follow from the bonds and rings
    degree, ring = np.bincount(base + target, minlength=first), np.zeros(first, np.int8)
    ring[rings] = 1
    kinds = _kinds(base + target, base + source, np.concatenate([np.zeros(0), *orders]), rings, first)
    ends = np.stack([target, source], axis=1).astype(np.int32)
    return Molecules(np.array(rows, np.int64), counts, _codes(flat, degree, ring), entries, ends, kinds, failed)


def _bonds(Chem: Any, mol: Any, N: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Entries (i, j) of the bonds in row order, and their bond orders, each (E,)."""
    if N < LARGE:  # RDKit fills the matrix in C++, which is faster than a Python loop over the bonds
        i, j = Chem.GetAdjacencyMatrix(mol).nonzero()
        return i, j, Chem.GetAdjacencyMatrix(mol, useBO=True)[i, j]
    listed = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx(), b.GetBondTypeAsDouble()) for b in mol.GetBonds()]
    table = np.array(listed + [(b, a, o) for a, b, o in listed]).reshape(-1, 3)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    return table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2]


def _codes(flat: list[int], degree: Ints, ring: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Atom properties as indices into their lists of values, (N, 7)."""
    number, charge, hydrogens, orbital, aromatic = np.array(flat, np.int32).reshape(-1, 5).T
    element = np.full(256, len(ELEMENTS))
    element[list(ELEMENTS)] = np.arange(len(ELEMENTS))
    columns = (
        element[number], np.minimum(degree, 5), np.clip(charge, -2, 2) + 2, np.minimum(hydrogens, 3), orbital,
        aromatic, ring,
    )  # fmt: skip
    return np.stack(columns, axis=1).astype(np.int8)


def _kinds(target: Ints, source: Ints, order: npt.NDArray[Any], rings: list[int], N: int) -> npt.NDArray[np.int8]:
    """Bond type of every entry, and whether it is in a ring, (E, 2)."""
    key, back = target * N + source, source * N + target  # key ascends, because entries are in row order
    order = np.maximum(order, order[np.searchsorted(key, back)])  # RDKit gives a dative bond's order in one direction
    kind = np.full((len(key), 2), 4, np.int8)
    for code, value in enumerate((1.0, 2.0, 3.0, 1.5)):
        kind[order == value, 0] = code
    a, b = np.array(rings, np.int64).reshape(-1, 2).T
    kind[:, 1] = np.isin(key, np.concatenate([a * N + b, b * N + a]))
    return kind


def _reason(Chem: Any, text: str) -> str:
    shown = repr(text if len(text) <= 60 else text[:57] + "...")
    if not text.strip():
        return "the SMILES is empty"
    raw = Chem.MolFromSmiles(text, sanitize=False)
    if raw is None:
        return f"{shown} is not SMILES that RDKit can read"
    problems = [problem.Message() for problem in Chem.DetectChemistryProblems(raw)]
    return f"{shown} is not a possible molecule ({problems[0] if problems else 'no atoms'})"


def smiles_problem(text: str) -> str:
    """Why a text is not readable as SMILES, in RDKit's words; without rdkit, how to install it."""
    try:
        Chem = load_rdkit()
    except MissingExtraError as error:
        return f"it cannot be read ({error})"
    from rdkit import rdBase

    with rdBase.CaptureErrorLog() as log:
        Chem.MolFromSmiles(text)
        lines = [line.partition("] ")[2] or line for line in log.messages.splitlines()]
    with rdBase.BlockLogs():
        reason = _reason(Chem, text)
    words = next((line for line in lines if line.startswith("SMILES Parse Error: ")), "")
    detail = words.removeprefix("SMILES Parse Error: ").split(" for input")[0].split(" while parsing")[0].rstrip(":")
    return reason if not detail or reason.endswith(")") else f"{reason} ({detail})"


def atom_features(codes: npt.NDArray[np.int8]) -> Floats:
    """One-hot columns of the five categorical properties, then aromatic and ring, (N, 36); names in ATOM_NAMES."""
    x = np.zeros((len(codes), len(ATOM_NAMES)), np.float32)
    row, start = np.arange(len(codes)), 0
    for k, width in enumerate(WIDTHS[:5]):
        x[row, start + codes[:, k]] = 1
        start += width
    x[:, start:] = codes[:, 5:]
    return x


def stereo_features(smiles: Sequence[str]) -> Floats:
    """Conjugated, E and Z of every entry, (E, 3), in the order of read_smiles; all SMILES must be readable."""
    Chem = load_rdkit()
    from rdkit import rdBase

    trans = (Chem.BondStereo.STEREOE, Chem.BondStereo.STEREOTRANS)
    cis = (Chem.BondStereo.STEREOZ, Chem.BondStereo.STEREOCIS)
    parts = [np.zeros((0, 3), np.float32)]
    with rdBase.BlockLogs():
        for text in smiles:
            rows = []
            for b in Chem.MolFromSmiles(text).GetBonds():
                values = (b.GetIsConjugated(), b.GetStereo() in trans, b.GetStereo() in cis)
                i, j = b.GetBeginAtomIdx(), b.GetEndAtomIdx()
                rows += [((i, j), values), ((j, i), values)]
            parts.append(np.array([values for _, values in sorted(rows)], np.float32).reshape(-1, 3))
    return np.concatenate(parts)


def bond_features(kinds: npt.NDArray[np.int8]) -> Floats:
    """One-hot type, then ring, (E, 6); names in BOND_NAMES."""
    attr = np.zeros((len(kinds), len(BOND_NAMES)), np.float32)
    attr[np.arange(len(kinds)), kinds[:, 0]] = 1
    attr[:, 5] = kinds[:, 1]
    return attr


def molecule(text: str, nodes: int, source: Ints, target: Ints) -> Any | None:
    """The molecule of a SMILES, if rdkit is installed and can read it, and its atoms and bonds are those of the graph.

    source, target (E,): the edges, both directions. Otherwise None.
    """
    mol = parse(text)
    if mol is None or mol.GetNumAtoms() != nodes:
        return None
    edges = set(zip(source.tolist(), target.tolist(), strict=True))
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
    bonds = {pair for a, b in ends for pair in ((a, b), (b, a))}
    return mol if edges == bonds else None


@lru_cache(maxsize=64)
def parse(text: str) -> Any | None:
    """The molecule of a SMILES; None if rdkit is not installed or the text is not SMILES."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        return None
    with rdBase.BlockLogs():
        return Chem.MolFromSmiles(text)
