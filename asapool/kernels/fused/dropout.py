"""Dropout masks in one pass: each entry is a hash of seed and position, so results do not depend on threads."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.custom_op import register
from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import fresh
from asapool.kernels.graph import Array
from asapool.kernels.reference.dropout import BITS, FIRST, SECOND, STEP, threshold

STEP_, FIRST_, SECOND_ = (np.uint64(number % 2**64) for number in (STEP, FIRST, SECOND))


@Loop
def _dropout_entries(start, stop, seed, least, factor, mask):  # type: ignore[no-untyped-def]
    """0 or the factor; see reference/dropout.py."""
    a, b, c, top = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(64 - BITS)
    for e in range(start, stop):
        z = np.uint64(e + 1) * STEP_ + seed
        z = (z ^ (z >> a)) * FIRST_
        z = (z ^ (z >> b)) * SECOND_
        z ^= z >> c
        mask[e] = factor if (z >> top) >= least else mask.dtype.type(0)


def fill_mask(seed: int, p: float, mask: Array) -> None:
    """Write the mask of a seed into an array of any shape."""
    start, factor = np.uint64(seed % 2**64), mask.dtype.type(1 / (1 - p))
    run_rows(_dropout_entries, mask.size, 10 * mask.size, start, np.uint64(threshold(p)), factor, mask.reshape(-1))


def _run(seed: Tensor, entries: int, p: float, like: Tensor) -> Tensor:
    mask = fresh(entries, like=like)
    fill_mask(int(seed), p, mask)
    return torch.from_numpy(mask)


_dropout_op = register(
    "dropout_mask",
    _run,
    lambda seed, entries, p, like: like.new_empty(entries),
    inputs="Tensor seed, SymInt entries, float p, Tensor like",
    outputs="Tensor",
)


def dropout_mask(seed: Tensor, entries: int, p: float, like: Tensor) -> Tensor:
    """As reference.dropout_mask."""
    mask: Tensor = _dropout_op(seed, entries, p, like)
    return mask
