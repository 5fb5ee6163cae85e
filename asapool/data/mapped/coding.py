"""Compact, lossless storage of feature rows.

Node and edge features repeat: the atoms of a million molecules are a few hundred distinct rows. So a block of rows is
stored as a table of the distinct rows and an index per row, or, if there are too many, as bits, bytes or floats.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.data.csr import Floats

Arrays = dict[str, npt.NDArray[Any]]
MOST = 65_536  # distinct rows of a table: their indices fit in two bytes
KINDS = ("codes", "bits", "bytes", "floats")


def encode(rows: Floats) -> Arrays:
    """A block of rows (n, F) as a table of the distinct rows and an index per row, or unchanged if that saves nothing.

    >>> {name: a.tolist() for name, a in encode(np.array([[0, 1], [1, 0], [0, 1]], np.float32)).items()}
    {'table': [[0.0, 1.0], [1.0, 0.0]], 'codes': [0, 1, 0]}
    """
    keys = _keys(rows)
    _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) > min(MOST, max(len(rows) // 4, 256)):
        return {"rows": rows}
    return {"table": rows[first], "codes": codes.reshape(-1).astype(np.uint16)}


def decode(block: Arrays) -> Floats:
    """The rows of a block."""
    return block["rows"] if "rows" in block else block["table"][block["codes"]]


def plan(blocks: Iterable[Arrays]) -> tuple[str, Floats | None]:
    """How to store all blocks of a set: the kind, and the table of distinct rows if it is "codes".

    blocks: each with its table, or its rows; only one is in memory at a time.
    """
    union: Floats | None = None
    coded = binary = small = True
    for block in blocks:
        coded &= "table" in block
        rows = block["table"] if "table" in block else block["rows"]
        binary = binary and bool(((rows == 0) | (rows == 1)).all())
        small = small and bool(((rows >= 0) & (rows <= 255) & (rows == np.floor(rows))).all())
        if coded:
            rows = rows if union is None else np.concatenate([union, rows])
            _, first = np.unique(_keys(rows), return_index=True)
            union = rows[np.sort(first)]
            coded = len(union) <= MOST
    if coded:
        return "codes", union
    return "bits" if binary else "bytes" if small else "floats", None


class Packer:
    """Turns blocks of rows into the stored form."""

    def __init__(self, kind: str, table: Floats | None) -> None:
        self.kind = kind
        if table is not None:
            keys = _keys(table)
            self.order = np.argsort(keys, kind="stable")
            self.keys = keys[self.order]
            self.dtype = np.uint8 if len(table) <= 256 else np.uint16

    def pack(self, block: Arrays) -> npt.NDArray[Any]:
        """The stored form of a block, (n,) or (n, width)."""
        if self.kind == "codes":
            index = self.order[np.searchsorted(self.keys, _keys(block["table"]))].astype(self.dtype)
            return index[block["codes"]]
        rows = decode(block)
        if self.kind == "bits":
            return np.packbits(rows.astype(np.uint8), axis=1)
        return rows.astype(np.uint8 if self.kind == "bytes" else np.float32)


def unpack(kind: str, stored: npt.NDArray[Any], table: Floats | None, width: int) -> Floats:
    """The inverse of Packer.pack: rows (n, width)."""
    if kind == "codes":
        assert table is not None
        return table.take(stored, axis=0)
    if kind == "bits":
        return np.unpackbits(stored, axis=1, count=width).astype(np.float32)
    return stored.astype(np.float32)


def _keys(rows: Floats) -> npt.NDArray[Any]:
    """One key per row, equal for equal rows."""
    rows = np.ascontiguousarray(rows + 0.0, np.float32)  # -0.0 becomes 0.0
    if rows.shape[1] <= 64 and bool(((rows == 0) | (rows == 1)).all()):
        bits = np.zeros((len(rows), 8), np.uint8)
        packed = np.packbits(rows.astype(np.uint8), axis=1)
        bits[:, : packed.shape[1]] = packed
        return bits.view(np.uint64).reshape(-1)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
