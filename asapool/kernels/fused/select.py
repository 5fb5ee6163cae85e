"""Selection of the kept clusters (a stable sort per graph, or bisection if no order is needed), and their features."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.custom_op import register
from asapool.kernels.fused.compiled import Loop, lookup_loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, empty, fresh
from asapool.kernels.fused.row_sums import match_row, scale_row, sum_row
from asapool.kernels.fused.vectors import at, pointer
from asapool.kernels.graph import Array, Pattern, Rows


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
    """The same nodes in the order of their numbers, for fitness in [0, 1]; NaN is lower than any number.

    The lowest fitness that is kept is found by bisection instead of sorting: counting is vectorised.
    """
    half = fitness.dtype.type(0.5)
    for b in range(start, stop):
        lo, hi, at = ptr[b], ptr[b + 1], kept_ptr[b]
        k = kept_ptr[b + 1] - at
        least, above = fitness.dtype.type(-1), fitness.dtype.type(2)  # at least k nodes reach least, fewer reach above
        count, middle = hi - lo, least
        while count != k:
            middle = half * (least + above)
            if middle <= least or middle >= above:
                break  # adjacent floating point numbers: several nodes are tied
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
            above_all = fitness[i] >= above
            if above_all or (tied > 0 and (fitness[i] >= least or least == -1)):
                tied -= 0 if above_all else 1
                perm[at] = i
                at += 1


def select_graphs(fitness: Tensor, ptr: Tensor, count: Tensor, fittest_first: bool = True) -> tuple[Tensor, Tensor]:
    """The kept nodes of every graph, fittest first or in the order of their numbers."""
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


@Loop
def _gate_rows(start, stop, x, fitness, perm, out):  # type: ignore[no-untyped-def]
    """out_p = φ_i x_i for i = perm[p]."""
    for p in range(start, stop):
        i = perm[p]
        phi = fitness[i]
        for f in range(x.shape[1]):
            out[p, f] = phi * x[i, f]


@Loop
def _gate_rows_backward(start, stop, x, fitness, perm, g, dx, dphi):  # type: ignore[no-untyped-def]
    """∂x_i = φ_i g_p and ∂φ_i = x_i · g_p."""
    for p in range(start, stop):
        i = perm[p]
        phi, total = fitness[i], x.dtype.type(0)
        for f in range(x.shape[1]):
            total += x[i, f] * g[p, f]
            dx[i, f] = phi * g[p, f]
        dphi[i] = total


@Loop
def _gather_rows(start, stop, rowptr, col, alpha, x, fitness, perm, out):  # type: ignore[no-untyped-def]
    """out_p = φ_i Σ_j α_ij x_j for i = perm[p]."""
    F, one, entries, a, x_ = x.shape[1], x.dtype.type(1), pointer(col), pointer(alpha), pointer(x)
    for p in range(start, stop):
        i, row = perm[p], at(pointer(out), p * F)
        sum_row(rowptr[i], rowptr[i + 1], entries, None, a, 0, x_, F, None, one, False, row)
        scale_row(row, F, fitness[i])


@lookup_loop
def _gather_rows_backward(start, stop, rowptr, col, alpha, x, fitness, perm, g, dalpha, dphi):  # type: ignore[no-untyped-def]
    """∂α_ij = φ_i (g_p · x_j) and ∂φ_i = Σ_j α_ij (g_p · x_j)."""
    F = x.shape[1]
    for p in range(start, stop):
        i, slope = perm[p], x.dtype.type(0)
        begin, end, phi = rowptr[i], rowptr[i + 1], fitness[i]
        match_row(begin, end, pointer(col), 0, pointer(x), F, at(pointer(g), p * F), pointer(dalpha))
        for e in range(begin, end):
            slope += alpha[e] * dalpha[e]
            dalpha[e] *= phi
        dphi[i] = slope


@Loop
def _scatter_rows_backward(start, stop, columns, alpha, fitness, place, g, dx):  # type: ignore[no-untyped-def]
    """∂x_j = Σ_i φ_i α_ij g_p over the kept clusters i that contain j, by columns.

    Whether a cluster was kept is unpredictable for the processor, so the kept ones are first listed without a branch.
    """
    rowptr_t, col_t, edge_t = columns
    F, one, most = g.shape[1], g.dtype.type(1), 0
    for j in range(start, stop):
        most = max(most, rowptr_t[j + 1] - rowptr_t[j])
    kept, share = np.empty(most + 1, np.int64), np.empty(most + 1, g.dtype)
    for j in range(start, stop):
        n = 0
        for e in range(rowptr_t[j], rowptr_t[j + 1]):
            i = col_t[e]
            kept[n], share[n] = place[i], alpha[edge_t[e]] * fitness[i]
            n += 1 if place[i] >= 0 else 0
        row = at(pointer(dx), j * F)
        sum_row(0, n, pointer(kept), None, pointer(share), 0, pointer(g), F, None, one, False, row)


def _gate(x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    out = fresh(perm.numel(), x.size(1), like=x)
    run_rows(_gate_rows, perm.numel(), 2 * out.size, array(x), array(fitness), array(perm), out)
    return torch.from_numpy(out)


def _gate_backward(g: Tensor, x: Tensor, fitness: Tensor, perm: Tensor, need: list[bool]) -> tuple[Tensor, Tensor]:
    x_, phi = array(x), array(fitness)
    dx, dphi = np.zeros_like(x_), np.zeros_like(phi)
    run_rows(_gate_rows_backward, perm.numel(), 3 * g.numel(), x_, phi, perm.numpy(), g.numpy(), dx, dphi)
    return torch.from_numpy(dx), torch.from_numpy(dphi)


_gate_op = differentiable(
    "gate",
    patterns=0,
    inputs="Tensor x, Tensor fitness, Tensor perm",
    wrt=("x", "fitness"),
    saved="Tensor x, Tensor fitness, Tensor perm",
    saves=lambda inputs, out: inputs,
    forward=_gate,
    fake=lambda x, fitness, perm: x.new_empty(perm.numel(), x.size(1)),
    backward=_gate_backward,
    backward_fake=lambda g, x, fitness, perm, need: (torch.empty_like(x), torch.empty_like(fitness)),
)


def gate(x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """As reference.gate."""
    kept: Tensor = _gate_op(x, fitness, perm)
    return kept


def gather_rows(clusters: Rows, alpha: Tensor, x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """X^p of the kept clusters."""
    out = fresh(perm.numel(), x.size(1), like=x)
    arrays = (clusters.rowptr, clusters.col, array(alpha), array(x), array(fitness), perm.numpy(), out)
    run_rows(_gather_rows, perm.numel(), clusters.col.size * (x.size(1) + 40) // 2, *arrays)
    return torch.from_numpy(out)


def gather_backward(
    clusters: Rows, g: Tensor, alpha: Tensor, x: Tensor, fitness: Tensor, perm: Tensor
) -> tuple[Array, Array, Array]:
    """∂α, set only for kept clusters, ∂φ, and the position of every kept cluster, −1 for the others."""
    alpha_, phi, perm_ = array(alpha), array(fitness), perm.numpy()
    dalpha, dphi, place = np.empty_like(alpha_), np.zeros_like(phi), np.full(phi.size, -1, np.int64)
    place[perm_] = np.arange(perm_.size)
    arrays = (clusters.rowptr, clusters.col, alpha_, array(x), phi, perm_, g.numpy(), dalpha, dphi)
    run_rows(_gather_rows_backward, perm_.size, alpha_.size * (x.size(1) + 40) // 2, *arrays)
    return dalpha, dphi, place


def scatter_backward(clusters: Rows, g: Tensor, alpha: Tensor, fitness: Tensor, place: Array) -> Tensor:
    """∂x."""
    alpha_, phi, g_ = array(alpha), array(fitness), g.numpy()
    dx = fresh(phi.size, g_.shape[1], like=g)
    run_rows(
        _scatter_rows_backward,
        phi.size,
        alpha_.size * (g_.shape[1] + 40) // 2,
        clusters[2:],
        alpha_,
        phi,
        place,
        g_,
        dx,
    )
    return torch.from_numpy(dx)


def _gather_backward(
    clusters: Rows, g: Tensor, alpha: Tensor, x: Tensor, fitness: Tensor, perm: Tensor, need: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    """∂α, ∂x and ∂φ from ∂X^p."""
    dalpha, dphi, place = gather_backward(clusters, g, alpha, x, fitness, perm)
    dalpha[np.repeat(place < 0, np.diff(clusters.rowptr))] = 0
    dx = scatter_backward(clusters, g, alpha, fitness, place) if need[1] else empty(x)
    return torch.from_numpy(dalpha), dx, torch.from_numpy(dphi)


_gather_op = differentiable(
    "gather",
    patterns=1,
    inputs="Tensor alpha, Tensor x, Tensor fitness, Tensor perm",
    wrt=("alpha", "x", "fitness"),
    saved="Tensor alpha, Tensor x, Tensor fitness, Tensor perm",
    saves=lambda inputs, out: inputs,
    forward=gather_rows,
    fake=lambda rows, alpha, x, fitness, perm: x.new_empty(perm.numel(), x.size(1)),
    backward=_gather_backward,
    backward_fake=lambda rows, g, alpha, x, fitness, perm, need: (
        torch.empty_like(alpha),
        torch.empty_like(x) if need[1] else empty(x),
        torch.empty_like(fitness),
    ),
)


def gather(clusters: Pattern, alpha: Tensor, x: Tensor, fitness: Tensor, perm: Tensor) -> Tensor:
    """As reference.gather."""
    kept: Tensor = _gather_op(clusters, alpha, x, fitness, perm)
    return kept
