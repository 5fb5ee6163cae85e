"""SDF files as a table: one row per record, with its SMILES, its title as the id, and its data items as columns.

Structures go through SMILES, so that atoms, bonds and scaffolds come out as for any other table of molecules.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from asapool.data.molecules import load_rdkit

ITEM = re.compile(r">.*<([^>]+)>.*")
END = "$$$$"
TITLE = "id"


def sdf_header(text: io.TextIOBase) -> list[str]:
    """The columns: smiles, id, then every data item that occurs, in the order of the file."""
    names = dict.fromkeys(
        match[1] for line in text if line.startswith(">") and (match := ITEM.fullmatch(line.rstrip()))
    )
    return ["smiles", TITLE, *(name for name in names if name.lower() not in ("smiles", TITLE))]


def sdf_rows(text: io.TextIOBase, header: Sequence[str]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Every record with the line it begins at; a structure that RDKit cannot read has an empty SMILES."""
    Chem = load_rdkit()
    from rdkit import rdBase

    for line, record in _records(text):
        with rdBase.BlockLogs():
            mol = Chem.MolFromMolBlock(_block(record))
        smiles = "" if mol is None else Chem.MolToSmiles(mol)
        items = _items(record)
        title = record[0].strip() or next((items[name] for name in items if name.lower() == TITLE), None)
        yield line, [smiles, title, *(items.get(name) for name in header[2:])]


def _records(text: io.TextIOBase) -> Iterator[tuple[int, list[str]]]:
    held: list[str] = []
    first = 1
    for number, raw in enumerate(text, start=1):
        line = raw.rstrip("\r\n")
        if line.strip() == END:
            if any(part.strip() for part in held):
                yield first, held
            held, first = [], number + 1
        else:
            held.append(line)
    if any(part.strip() for part in held):  # a last record without its $$$$
        yield first, held


def _block(record: Sequence[str]) -> str:
    end = next((k for k, line in enumerate(record) if line.startswith("M  END")), len(record) - 1)
    return "\n".join(record[: end + 1]) + "\n"


def _items(record: Sequence[str]) -> dict[str, str]:
    """The data items: '> <NAME>', then the lines of the value up to an empty one."""
    items: dict[str, str] = {}
    name: str | None = None
    for line in record:
        match = ITEM.fullmatch(line) if line.startswith(">") else None
        if match:
            name = match[1]
            items[name] = ""
        elif not line.strip():
            name = None
        elif name is not None:
            items[name] = f"{items[name]} {line.strip()}".strip()
    return items
