"""Names of subgraphs: canonical fragment SMILES for molecules, otherwise a Weisfeiler-Lehman hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from asapool.data import GraphSet
from asapool.data.molecules import molecule
from asapool.insight.levels import Ints
from asapool.insight.substructures.cutting import Induced, Pieces, induced
from asapool.kernels import subtree_labels

ROUNDS = 4  # refinements of the hash
ORGANIC = frozenset(("B", "C", "N", "O", "P", "S", "F", "Cl", "Br", "I"))


def molecules_of(graphs: GraphSet) -> list[Any | None]:
    """The RDKit molecule of every graph; None if a graph is not a molecule."""
    return [molecule_at(graphs, g) for g in range(len(graphs))]


def molecule_at(graphs: GraphSet, g: int) -> Any | None:
    """The RDKit molecule of one graph, if it is one."""
    if graphs.source_text is None:
        return None
    a, b = graphs.ptr[g], graphs.ptr[g + 1]
    begin, end = graphs.rowptr[a], graphs.rowptr[b]
    row = np.repeat(np.arange(b - a), np.diff(graphs.rowptr[a : b + 1]))
    return molecule(graphs.source_text[g], int(b - a), graphs.col[begin:end] - a, row)


def hashes(graphs: GraphSet, pieces: Pieces, label: Ints, edge: Ints | None = None) -> Ints:
    """A 64-bit Weisfeiler-Lehman hash of the subgraph that each piece induces, (P,).

    Equal for isomorphic subgraphs; others share a hash only if Weisfeiler-Lehman cannot distinguish them.

    Args:
        graphs: The set.
        pieces: The pieces.
        label: A number for every node of the set, (N,), such as its element.
        edge: A number for every edge of the set, (E,); None = all are alike.
    """
    return hash_members(pieces, induced(graphs, pieces), label[pieces.node], edge)


def hash_members(pieces: Pieces, inner: Induced, label: Ints, edge: Ints | None) -> Ints:
    """Like hashes, with a label for every member of every piece."""
    if not len(pieces):
        return np.zeros(0, np.int64)
    x = torch.from_numpy(label.astype(np.float64))[:, None]
    attr = None if edge is None else torch.from_numpy(edge[inner.entry].astype(np.float64))[:, None]
    rows = torch.from_numpy(inner.rowptr), torch.from_numpy(inner.col)
    last = subtree_labels(x, *rows, ROUNDS, attr, backend="reference")[-1]
    sums: Ints = np.add.reduceat(last.numpy(), pieces.ptr[:-1])  # wraps around
    return sums


def node_labels(graphs: GraphSet) -> tuple[Ints, Ints | None]:
    """The labels of nodes and edges for hashes: one-hot features as numbers; others, and degrees, are not used."""
    hot = graphs.x.shape[1] > 1 and bool((np.count_nonzero(graphs.x, axis=1) == 1).all())
    structural = any("degree" in name for name in graphs.feature_names) or graphs.recipe.get("features") == "degree"
    nodes = graphs.x.argmax(axis=1) if hot and not structural else np.zeros(len(graphs.x), np.int64)
    e = graphs.edge_attr
    edges = e.argmax(axis=1) if e is not None and e.shape[1] > 1 and np.isin(e, (0, 1)).all() else None
    return nodes.astype(np.int64), edges


class Atoms(NamedTuple):
    """The atoms of all molecules of a set, with two ways to write each."""

    label: Ints  # (N,) a number for element, charge and aromaticity
    detail: Ints  # (N,) a number for these, the hydrogens and the size of the smallest ring
    plain: list[str]  # c, N, [O-]
    closed: list[str]  # with its hydrogens: [cH], [NH2]


def atoms_of(graphs: GraphSet, mols: Sequence[Any | None]) -> Atoms:
    """How the atoms of a set are written in SMILES; "*" if a graph is not a molecule."""
    N = len(graphs.x)
    numbers: dict[Any, int] = {}
    label, detail, plain, closed = np.zeros(N, np.int64), np.zeros(N, np.int64), ["*"] * N, ["*"] * N
    for first, mol in zip(graphs.ptr.tolist(), mols, strict=False):
        if mol is None:
            continue
        ring = mol.GetRingInfo().MinAtomRingSize
        for v, atom in enumerate(mol.GetAtoms()):
            symbol = atom.GetSymbol().lower() if atom.GetIsAromatic() else atom.GetSymbol()
            charge, at = atom.GetFormalCharge(), first + v
            plain[at] = atom_text(symbol, charge)
            closed[at] = atom_text(symbol, charge, atom.GetTotalNumHs())
            label[at] = numbers.setdefault(plain[at], len(numbers))
            detail[at] = numbers.setdefault((closed[at], ring(v)), len(numbers))
    return Atoms(label, detail, plain, closed)


def fragment_names(
    graphs: GraphSet, mols: Sequence[Any], atoms: Atoms, pieces: Pieces, bonds: Ints | None
) -> list[str]:
    """The canonical SMILES of every piece, which is also valid SMARTS.

    Hydrogens are written if all neighbours of an atom are in the fragment, so that NH2 and NHR differ. Pieces with the
    same hash of atoms, hydrogens, rings and bonds are written once.
    """
    from rdkit.Chem import MolFragmentToSmiles

    inner = induced(graphs, pieces)
    whole = np.diff(inner.rowptr) == np.diff(graphs.rowptr)[pieces.node]
    word = hash_members(pieces, inner, 2 * atoms.detail[pieces.node] + whole, bonds).tolist()
    flat, ends, inside = pieces.node.tolist(), pieces.ptr.tolist(), whole.tolist()
    known: dict[int, str] = {}
    for p, g in enumerate(pieces.graph.tolist()):
        if word[p] in known:
            continue
        first, last = int(graphs.ptr[g]), int(graphs.ptr[g + 1])
        texts = atoms.plain[first:last]
        chosen = []
        for m in range(ends[p], ends[p + 1]):
            v = flat[m]
            chosen.append(v - first)
            if inside[m]:
                texts[v - first] = atoms.closed[v]
        known[word[p]] = MolFragmentToSmiles(mols[g], chosen, atomSymbols=texts, isomericSmiles=False)
    return [known[w] for w in word]


def atom_text(symbol: str, charge: int, hydrogens: int = 0) -> str:
    """An atom in SMILES: in brackets if hydrogens, a charge or an unusual element require them.

    >>> atom_text("c", 0), atom_text("N", 0, 2), atom_text("O", -1), atom_text("Hg", 2)
    ('c', '[NH2]', '[O-]', '[Hg+2]')
    """
    if not hydrogens and not charge and symbol.capitalize() in ORGANIC:
        return symbol
    count = "" if not hydrogens else "H" if hydrogens == 1 else f"H{hydrogens}"
    sign = "" if not charge else ("+" if charge > 0 else "-") + (str(abs(charge)) if abs(charge) > 1 else "")
    return f"[{symbol}{count}{sign}]"
