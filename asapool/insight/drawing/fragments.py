"""Small pictures of substructures: alone, and marked in a graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from asapool.insight.drawing.canvas import HALO, INK, Canvas, draw_molecule, draw_network
from asapool.insight.drawing.overlays import PLUS
from asapool.insight.levels import Ints

# what every bond and letter repeats is a class of the page's style: a page has hundreds of these drawings
SHORT = (
    (r" style='fill:none;[^']*stroke:(var\(--[a-z-]+,#\w+\));[^']*'", r' class="bond" style="stroke:\1"'),
    (re.escape(f' style="stroke:{INK}"'), ""),
    (re.escape(HALO), 'class="letter"'),
    (r"var\((--[a-z-]+),#\w+\)", r"var(\1)"),
)


def graph_canvas(mol: Any | None, N: int, source: Ints, target: Ints) -> Canvas:
    """The drawn graph: a molecule by RDKit, another graph as dots and lines."""
    return draw_network(N, source, target) if mol is None else draw_molecule(mol)


def marked_svg(
    ground: Canvas,
    source: Ints,
    target: Ints,
    nodes: Sequence[int],
    label: str,
    *,
    colour: str = PLUS,
    width: int = 220,
) -> str:
    """A graph in which some nodes, and the edges between them, lie on a ground of colour."""
    r, inside = 0.42 * ground.unit, set(nodes)
    at = ground.position
    spots = "".join(f"M{at[v][0]:.1f} {at[v][1]:.1f}h0" for v in sorted(inside))
    spots += "".join(
        f"M{at[a][0]:.1f} {at[a][1]:.1f}L{at[b][0]:.1f} {at[b][1]:.1f}"
        for a, b in zip(source.tolist(), target.tolist(), strict=True)
        if a < b and a in inside and b in inside
    )
    marks = (
        f'<path d="{spots}" fill="none" stroke="{colour}" stroke-opacity="0.4" stroke-width="{2 * r:.1f}" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
    )
    return _svg(ground, marks + ground.skeleton, label, width)


def fragment_svg(
    mol: Any | None, source: Ints, target: Ints, nodes: Sequence[int], label: str, width: int = 130,
    cut: Sequence[tuple[int, int]] = (),
) -> str:  # fmt: skip
    """A substructure alone, cut out of a graph that has it; cut: edges that are left out."""
    if mol is not None:
        ground = draw_molecule(_cut_out(mol, nodes, cut), prepared=True)
    else:
        place = {v: k for k, v in enumerate(sorted(nodes))}
        pairs = [
            (place[a], place[b])
            for a, b in zip(source.tolist(), target.tolist(), strict=True)
            if a in place and b in place and (min(a, b), max(a, b)) not in cut
        ]
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        ground = draw_network(len(place), ends[:, 0], ends[:, 1])
    return _svg(ground, ground.skeleton, label, width)


def _cut_out(mol: Any, nodes: Sequence[int], cut: Sequence[tuple[int, int]] = ()) -> Any:
    """Some atoms of a molecule with the bonds between them; hydrogens are written where no neighbour is missing."""
    from rdkit import Chem
    from rdkit.Chem import rdDepictor

    inside = set(nodes)
    whole = Chem.RWMol(mol)
    for v in nodes:
        atom = whole.GetAtomWithIdx(v)
        closed = all(other.GetIdx() in inside for other in atom.GetNeighbors())
        hydrogens = atom.GetTotalNumHs() if closed else 0
        atom.SetNumExplicitHs(hydrogens)
        atom.SetNoImplicit(True)
    for a, b in cut:
        whole.RemoveBond(a, b)
    whole.BeginBatchEdit()
    for v in range(mol.GetNumAtoms()):
        if v not in inside:
            whole.RemoveAtom(v)
    whole.CommitBatchEdit()
    part = whole.GetMol()
    part.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(part)
    rdDepictor.Compute2DCoords(part)
    return part


def _svg(ground: Canvas, body: str, label: str, width: int) -> str:
    w, h = ground.width, ground.height
    shown = min(float(width), w)
    for long, short in SHORT:
        body = re.sub(long, short, body)
    return (
        f'<svg class="structure" viewBox="0 0 {w:.0f} {h:.0f}" width="{shown:.0f}" role="img" '
        f'aria-label="{escape(label)}">{body}</svg>'
    )
