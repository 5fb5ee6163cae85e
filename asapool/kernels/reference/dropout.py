"""Dropout masks that depend only on a seed and the position: equal on every backend and for any number of threads."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# splitmix64 (Steele, Lea and Flood, 2014), as signed numbers
STEP, FIRST, SECOND = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
BACK = pow(STEP, -1, 2**64) - 2**64  # STEP · BACK = 1 in 64 bits
BITS = 24  # random bits per position


def threshold(p: float) -> int:
    """The number below which a random number of BITS bits lies with probability p."""
    return math.ceil(p * 2.0**BITS)


def seed_from(seed: Tensor, position: int) -> Tensor:
    """The seed whose mask is that of `seed` from a position on."""
    return seed + ((position * STEP + 2**63) % 2**64 - 2**63)


def dropout_mask(seed: Tensor, entries: int, p: float, like: Tensor) -> Tensor:
    """Dropout mask: 0 with probability p, else 1/(1 − p); seed (1,) of int64."""
    # position · STEP + seed, in a form that torch.compile does not mistake for an index, which must not overflow
    z = (torch.arange(1, entries + 1, device=like.device) + seed.to(like.device) * BACK) * STEP
    z = (z ^ logical_shift(z, 30)) * FIRST
    z = (z ^ logical_shift(z, 27)) * SECOND
    z = z ^ logical_shift(z, 31)
    return (logical_shift(z, 64 - BITS) >= threshold(p)).to(like.dtype) * (1 / (1 - p))


def logical_shift(z: Tensor, bits: int) -> Tensor:
    """Logical right shift: z >> bits as for an unsigned number."""
    return torch.bitwise_and(z >> bits, (1 << (64 - bits)) - 1)
