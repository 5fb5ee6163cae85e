"""The input's own edges between kept nodes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, Structure, fake_structure, register
from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.pattern import complete, rows_from
from asapool.kernels.graph import Pattern


@Loop
def _induce_rows(start, stop, rowptr, col, perm, place, counts):  # type: ignore[no-untyped-def]
    """Entries of the kept rows and columns, columns ascending in their new numbers, and where each one came from."""
    cols, source = np.empty(rowptr.size + col.size, np.int64), np.empty(rowptr.size + col.size, np.int64)
    size = 0
    for p in range(start, stop):
        begin = size
        for e in range(rowptr[perm[p]], rowptr[perm[p] + 1]):
            q = place[col[e]]
            if q >= 0:
                cols[size], source[size] = q, e
                size += 1
        order = np.argsort(cols[begin:size])
        cols[begin:size], source[begin:size] = cols[begin:size][order], source[begin:size][order]
        counts[p] = size - begin
    return cols[:size], source[:size]


def _induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    place = rowptr.new_full((rowptr.numel() - 1,), -1)
    place[perm] = torch.arange(perm.numel())
    counts = torch.empty_like(perm)
    arrays = (t.numpy() for t in (rowptr, col, perm, place, counts))
    pieces = run_rows(_induce_rows, perm.numel(), 50 * col.numel(), *arrays)
    source = torch.from_numpy(np.concatenate([s for _, s in pieces])) if pieces else counts
    return (*complete(*rows_from(counts, [c for c, _ in pieces])), source)


def _fake_induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, ...]:
    six: Structure = fake_structure(perm.numel(), perm)
    return (*six, torch.empty_like(six[1]))


_induce_op = register(
    "induce",
    _induce,
    _fake_induce,
    inputs="Tensor rowptr, Tensor col, Tensor perm",
    outputs=f"({STRUCTURE}, Tensor)",
)


def induce(pattern: Pattern, weight: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """As reference.induce."""
    *six, source = _induce_op(pattern.rowptr, pattern.col, perm)
    return Pattern(ptr, *six), weight[source]
