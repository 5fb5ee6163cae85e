"""From one-hop to h-hop clusters."""

from __future__ import annotations

import torch

from asapool.kernels.dense.graph import DensePattern


def reach(pattern: DensePattern, hops: int) -> DensePattern:
    """Structure of (A + I)^h: row i lists every node from which i is at most h hops away."""
    step = pattern.entries.to(torch.float32)
    reached = step
    for _ in range(hops - 1):
        reached = (reached @ step > 0).to(torch.float32)
    return DensePattern(pattern.ptr, reached > 0)
