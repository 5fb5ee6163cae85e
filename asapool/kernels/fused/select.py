"""Which clusters survive: a stable sort per graph, or bisection where no order is needed."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.custom_op import register
from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.operation import array


@Loop
def _select_graphs(start, stop, fitness, ptr, kept_ptr, perm):  # type: ignore[no-untyped-def]
    """The fittest of each graph; the sort is stable, so ties keep the order of node numbers."""
    for b in range(start, stop):
        first, k = kept_ptr[b], kept_ptr[b + 1] - kept_ptr[b]
        order = np.argsort(-fitness[ptr[b] : ptr[b + 1]], kind="mergesort")
        for r in range(k):
            perm[first + r] = ptr[b] + order[r]


@Loop
def _keep_graphs(start, stop, fitness, ptr, kept_ptr, perm):  # type: ignore[no-untyped-def]
    """The same nodes in the order of their numbers, for fitness in [0, 1]; NaN is less than any.

    No order is needed, so the least fitness that stays is found by bisection: counting is vectorised.
    """
    half = fitness.dtype.type(0.5)
    for b in range(start, stop):
        lo, hi, at = ptr[b], ptr[b + 1], kept_ptr[b]
        k = kept_ptr[b + 1] - at
        least, above = fitness.dtype.type(-1), fitness.dtype.type(2)  # k or more reach the one, fewer the other
        count, middle = hi - lo, least
        while count != k:
            middle = half * (least + above)
            if middle <= least or middle >= above:
                break  # neighbouring numbers: several nodes are tied
            count = 0
            for i in range(lo, hi):
                count += 1 if fitness[i] >= middle else 0
            if count >= k:
                least = middle
            else:
                above = middle
        tied = k
        for i in range(lo, hi):
            tied -= 1 if fitness[i] >= above else 0
        for i in range(lo, hi):
            surely = fitness[i] >= above
            if surely or (tied > 0 and (fitness[i] >= least or least == -1)):
                tied -= 0 if surely else 1
                perm[at] = i
                at += 1


def select_graphs(fitness: Tensor, ptr: Tensor, count: Tensor, fittest_first: bool = True) -> tuple[Tensor, Tensor]:
    """The kept of every graph, or else in the order of their numbers."""
    kept_ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    perm = ptr.new_empty(int(kept_ptr[-1]))
    arrays = (array(fitness), ptr.numpy(), kept_ptr.numpy(), perm.numpy())
    run_rows(_select_graphs if fittest_first else _keep_graphs, count.numel(), 120 * fitness.numel(), *arrays)
    return perm, kept_ptr


_select_op = register(
    "select",
    select_graphs,
    lambda fitness, ptr, count: (ptr.new_empty(torch.library.get_ctx().new_dynamic_size()), torch.empty_like(ptr)),
    inputs="Tensor fitness, Tensor ptr, Tensor count",
    outputs="(Tensor, Tensor)",
)


def select(fitness: Tensor, ptr: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """As reference.select."""
    perm, kept_ptr = _select_op(fitness, ptr, count)
    return perm, kept_ptr
