"""The input's own edges between kept nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, fake_structure, register
from asapool.kernels.graph import Pattern
from asapool.kernels.reference.pattern import from_keys


def induce(pattern: Pattern, weight: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """Keep just the edges of the input graph between kept nodes (and every diagonal entry).

    weight (E,); perm (K,), ptr (B+1,) of the kept; returns the structure and its weights.
    """
    *structure, source = _induce_op(pattern.rowptr, pattern.col, perm)
    return Pattern(ptr, *structure), weight[source]


def _induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, ...]:
    N, K = rowptr.numel() - 1, perm.numel()
    place = perm.new_full((N,), -1)
    place[perm] = torch.arange(K, device=perm.device)
    row = torch.repeat_interleave(rowptr.diff(), output_size=col.numel())
    i, j = place[row], place[col]
    kept = ((i >= 0) & (j >= 0)).nonzero().view(-1)
    key = i[kept] * K + j[kept]
    order = torch.argsort(key)
    return *from_keys(key[order], perm, K).structure, kept[order]


def _fake_induce(rowptr: Tensor, col: Tensor, perm: Tensor) -> tuple[Tensor, ...]:
    structure = fake_structure(perm.numel(), perm)
    return *structure, torch.empty_like(structure[1])


_induce_op = register(
    "reference_induce",
    _induce,
    _fake_induce,
    inputs="Tensor rowptr, Tensor col, Tensor perm",
    outputs=f"({STRUCTURE}, Tensor)",
    device=None,
)
