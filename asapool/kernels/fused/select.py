"""Which clusters survive, and with what features: one sort per graph, one pass over the kept rows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, sweep
from asapool.kernels.fused.operation import differentiable, empty, register


@Loop
def _select_graphs(start, stop, fitness, ptr, kept_ptr, perm):  # type: ignore[no-untyped-def]
    """The fittest of each graph; the sort is stable, so ties keep the order of node numbers."""
    for b in range(start, stop):
        first, k = kept_ptr[b], kept_ptr[b + 1] - kept_ptr[b]
        order = np.argsort(-fitness[ptr[b] : ptr[b + 1]], kind="mergesort")
        for r in range(k):
            perm[first + r] = ptr[b] + order[r]


@Loop
def _gate_rows(start, stop, x, fitness, perm, out):  # type: ignore[no-untyped-def]
    """out_p = φ_i x_i for i = perm[p]."""
    for p in range(start, stop):
        i = perm[p]
        phi = fitness[i]
        for f in range(x.shape[1]):
            out[p, f] = phi * x[i, f]


@Loop
def _ungate_rows(start, stop, x, fitness, perm, g, dx, dphi):  # type: ignore[no-untyped-def]
    """∂x_i = φ_i g_p and ∂φ_i = x_i · g_p."""
    for p in range(start, stop):
        i = perm[p]
        phi, total = fitness[i], x.dtype.type(0)
        for f in range(x.shape[1]):
            total += x[i, f] * g[p, f]
        dphi[i] = total
        if dx.size:
            for f in range(x.shape[1]):
                dx[i, f] = phi * g[p, f]


def _select(fitness: Tensor, ptr: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    kept_ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    perm = ptr.new_empty(int(kept_ptr[-1]))
    arrays = (fitness.detach().contiguous().numpy(), ptr.numpy(), kept_ptr.numpy(), perm.numpy())
    sweep(_select_graphs, count.numel(), 20 * fitness.numel(), *arrays)
    return perm, kept_ptr


_select_op = register(
    "select",
    _select,
    lambda fitness, ptr, count: (ptr.new_empty(torch.library.get_ctx().new_dynamic_size()), torch.empty_like(ptr)),
    inputs="Tensor fitness, Tensor ptr, Tensor count",
    outputs="(Tensor, Tensor)",
)


def select(fitness: Tensor, ptr: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """As reference.select."""
    perm, kept_ptr = _select_op(fitness, ptr, count)
    return perm, kept_ptr


def _gate(x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    out = x.new_empty(perm.numel(), x.size(1))
    arrays = (t.numpy() for t in (x.detach().contiguous(), fitness.detach().contiguous(), perm, out))
    sweep(_gate_rows, perm.numel(), out.numel(), *arrays)
    return out


def _ungate(g: Tensor, x: Tensor, fitness: Tensor, perm: Tensor, need: list[bool]) -> tuple[Tensor, Tensor]:
    x, fitness = x.detach().contiguous(), fitness.detach().contiguous()
    dx = torch.zeros_like(x) if need[0] else empty(x).view(0, 0)
    dphi = torch.zeros_like(fitness)
    arrays = (t.numpy() for t in (x, fitness, perm, g, dx, dphi))
    sweep(_ungate_rows, perm.numel(), 2 * g.numel(), *arrays)
    return dx, dphi if need[1] else empty(x)


_gate_op = differentiable(
    "gate",
    patterns=0,
    inputs="Tensor x, Tensor fitness, Tensor perm",
    wrt=("x", "fitness"),
    saved="Tensor x, Tensor fitness, Tensor perm",
    saves=lambda inputs, out: inputs,
    forward=_gate,
    fake=lambda x, fitness, perm: x.new_empty(perm.numel(), x.size(1)),
    backward=_ungate,
    backward_fake=lambda g, x, fitness, perm, need: (
        torch.empty_like(x) if need[0] else empty(x).view(0, 0),
        torch.empty_like(fitness) if need[1] else empty(x),
    ),
)


def gate(x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """As reference.gate."""
    kept: Tensor = _gate_op(x, fitness, perm)
    return kept
