"""The input's own edges between kept nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern
from asapool.kernels.reference.pattern import from_keys


def induce(pattern: Pattern, weight: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """Keep just the edges of the input graph between kept nodes (and every diagonal entry).

    weight (E,); perm (K,), ptr (B+1,) of the kept; returns the structure and its weights.
    """
    K = perm.numel()
    place = perm.new_full((pattern.diag.numel(),), -1)
    place[perm] = torch.arange(K, device=perm.device)
    i, j = place[pattern.row], place[pattern.col]
    kept = ((i >= 0) & (j >= 0)).nonzero().view(-1)
    key = i[kept] * K + j[kept]
    order = torch.argsort(key)
    return from_keys(key[order], ptr, K), weight[kept[order]]
