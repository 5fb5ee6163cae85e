"""Memberships that sum to 1 for every node: joining kept clusters, graph by graph, and shares, by column."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.custom_op import STRUCTURE, fake_structure, register
from asapool.kernels.fused.compiled import Loop, inline, run_rows
from asapool.kernels.fused.operation import array, differentiable
from asapool.kernels.fused.pattern import complete, rows_from
from asapool.kernels.graph import Pattern, Rows
from asapool.kernels.reference.members import JOINED, NOT_KEPT


@inline
def _is_better(fitness, lo, i, j):  # type: ignore[no-untyped-def]
    """Whether cluster i is fitter than j, or as fit with a lower number."""
    return fitness[lo + i] > fitness[lo + j] or (fitness[lo + i] == fitness[lo + j] and i < j)


@Loop
def _join_graphs(start, stop, ptrs, clusters, edges, fitness, perm, counts):  # type: ignore[no-untyped-def]
    """Rows of the structure, columns ascending, and the source of each entry; see reference.join."""
    ptr, kept = ptrs
    rowptr, col = clusters
    e_rowptr, e_col, e_rowptr_t, e_col_t = edges
    room, most = 0, 0
    for b in range(start, stop):
        most = max(most, ptr[b + 1] - ptr[b])
    room = rowptr[ptr[stop]] - rowptr[ptr[start]] + ptr[stop] - ptr[start]
    cols, source, size = np.empty(room, np.int64), np.empty(room, np.int64), 0
    place, label, distance = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    queue, covered, first = np.empty(most, np.int64), np.empty(most, np.uint8), np.empty(most + 1, np.int64)
    uncovered = np.empty(most, np.int64)
    for b in range(start, stop):
        lo, n, k0, k = ptr[b], ptr[b + 1] - ptr[b], kept[b], kept[b + 1] - kept[b]
        for j in range(n):
            place[j], label[j], distance[j], covered[j] = -1, -1, -1, 0
        best, head, tail = -1, 0, 0
        for p in range(k):
            i = perm[k0 + p] - lo
            place[i], label[i], distance[i], queue[tail] = p, i, 0, i
            tail += 1
            if best < 0 or _is_better(fitness, lo, i, best):
                best = i
            for e in range(rowptr[lo + i], rowptr[lo + i + 1]):
                covered[col[e] - lo] = 1
        while head < tail:
            i = queue[head]
            head += 1
            for side in range(2):
                pointer = e_rowptr if side == 0 else e_rowptr_t
                for e in range(pointer[lo + i], pointer[lo + i + 1]):
                    j = (e_col[e] if side == 0 else e_col_t[e]) - lo
                    if distance[j] < 0:
                        distance[j], label[j], queue[tail] = distance[i] + 1, label[i], j
                        tail += 1
                    elif distance[j] == distance[i] + 1 and _is_better(fitness, lo, label[i], label[j]):
                        label[j] = label[i]
        # nodes that join, sorted by their cluster
        for j in range(n + 1):
            first[j] = 0
        for j in range(n):
            if not covered[j]:
                label[j] = label[j] if label[j] >= 0 else best
                first[label[j] + 1] += 1
        for i in range(n):
            first[i + 1] += first[i]
        for j in range(n):
            if not covered[j]:
                uncovered[first[label[j]]] = j  # afterwards, first is where the next cluster begins
                first[label[j]] += 1
        for i in range(n):
            before = size
            if place[i] < 0:
                cols[size], source[size] = lo + i, NOT_KEPT
                size += 1
            else:
                e, end = rowptr[lo + i], rowptr[lo + i + 1]
                a, a_end = first[i - 1] if i > 0 else 0, first[i]
                while e < end or a < a_end:
                    if a >= a_end or (e < end and col[e] < lo + uncovered[a]):
                        cols[size], source[size] = col[e], e
                        e += 1
                    else:
                        cols[size], source[size] = lo + uncovered[a], JOINED
                        a += 1
                    size += 1
            counts[lo + i] = size - before
    return cols[:size], source[:size]


@Loop
def _share_columns(start, stop, columns, source, alpha, fitness, total, share):  # type: ignore[no-untyped-def]
    """M_jp = φ_p α_pj / Σ_q φ_q α_qj, node by node; total_j is 0 if the sum vanishes and the shares are equal."""
    rowptr_t, col_t, edge_t = columns
    zero, one, tiny = alpha.dtype.type(0), alpha.dtype.type(1), np.finfo(alpha.dtype).tiny
    for j in range(start, stop):
        sum_j, number = zero, zero
        for k in range(rowptr_t[j], rowptr_t[j + 1]):
            e = edge_t[k]
            s = source[e]
            v = fitness[col_t[k]] * alpha[s] if s >= 0 else (one if s == JOINED else zero)
            share[e] = v
            sum_j += v
            number += zero if s == NOT_KEPT else one
        vanish = sum_j <= tiny
        total[j] = zero if vanish else sum_j
        for k in range(rowptr_t[j], rowptr_t[j + 1]):
            e = edge_t[k]
            if vanish:
                share[e] = zero if source[e] == NOT_KEPT else one / number
            else:
                share[e] /= sum_j


@Loop
def _share_columns_backward(start, stop, columns, source, share, total, g, dstrength):  # type: ignore[no-untyped-def]
    """∂(φ_p α_pj) = (g_jp − Σ_q M_jq g_jq) / total_j."""
    rowptr_t, _, edge_t = columns
    zero = g.dtype.type(0)
    for j in range(start, stop):
        mean = zero
        for k in range(rowptr_t[j], rowptr_t[j + 1]):
            mean += share[edge_t[k]] * g[edge_t[k]]
        for k in range(rowptr_t[j], rowptr_t[j + 1]):
            e = edge_t[k]
            dstrength[e] = (g[e] - mean) / total[j] if source[e] >= 0 and total[j] > zero else zero


@Loop
def _share_rows_backward(start, stop, rowptr, source, alpha, fitness, dstrength, dalpha, dphi):  # type: ignore[no-untyped-def]
    """∂α_pj = φ_p ∂(φ_p α_pj) and ∂φ_p = Σ_j α_pj ∂(φ_p α_pj)."""
    for i in range(start, stop):
        total = alpha.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            s = source[e]
            if s >= 0:
                dalpha[s] = fitness[i] * dstrength[e]
                total += alpha[s] * dstrength[e]
        dphi[i] = total


def _run_join(
    rowptr: Tensor, col: Tensor, e_rowptr: Tensor, e_col: Tensor, e_rowptr_t: Tensor, e_col_t: Tensor, fitness: Tensor,
    perm: Tensor, ptr: Tensor, kept: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    counts = torch.empty_like(rowptr[1:])
    clusters, edges = (array(rowptr), array(col)), tuple(array(t) for t in (e_rowptr, e_col, e_rowptr_t, e_col_t))
    arrays = ((array(ptr), array(kept)), clusters, edges, array(fitness), array(perm), counts.numpy())
    pieces = run_rows(_join_graphs, ptr.numel() - 1, 100 * (col.numel() + e_col.numel()), *arrays)
    source = torch.from_numpy(np.concatenate([s for _, s in pieces])) if pieces else counts
    return (*complete(*rows_from(counts, [c for c, _ in pieces])), source)


def _fake_join(rowptr: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
    six = fake_structure(rowptr.numel() - 1, rowptr)
    return (*six, torch.empty_like(six[1]))


_join_op = register(
    "join",
    _run_join,
    _fake_join,
    inputs=", ".join(
        f"Tensor {name}"
        for name in ["rowptr", "col", "e_rowptr", "e_col", "e_rowptr_t", "e_col_t", "fitness", "perm", "ptr", "kept"]
    ),
    outputs=f"({STRUCTURE}, Tensor)",
)


def join(clusters: Pattern, pattern: Pattern, fitness: Tensor, perm: Tensor, ptr: Tensor) -> tuple[Pattern, Tensor]:
    """As reference.join."""
    edges = (pattern.rowptr, pattern.col, pattern.rowptr_t, pattern.col_t)
    *six, source = _join_op(clusters.rowptr, clusters.col, *edges, fitness.detach(), perm, pattern.ptr, ptr)
    return Pattern(pattern.ptr, *six), source


def _share(members: Rows, source: Tensor, alpha: Tensor, fitness: Tensor) -> tuple[Tensor, Tensor]:
    a, phi = array(alpha), array(fitness)
    share, total = np.empty(members.col.size, a.dtype), np.empty_like(phi)
    run_rows(_share_columns, phi.size, 60 * share.size, members[2:], source.numpy(), a, phi, total, share)
    return torch.from_numpy(share), torch.from_numpy(total)


def _share_backward(
    members: Rows, g: Tensor, source: Tensor, alpha: Tensor, fitness: Tensor, share: Tensor, total: Tensor,
    need: list[bool],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    a, phi, s, N, work = array(alpha), array(fitness), source.numpy(), fitness.numel(), 40 * g.numel()
    dstrength, dalpha, dphi = np.empty(g.numel(), a.dtype), np.zeros_like(a), np.empty_like(phi)
    run_rows(_share_columns_backward, N, work, members[2:], s, array(share), array(total), g.numpy(), dstrength)
    run_rows(_share_rows_backward, N, work, members.rowptr, s, a, phi, dstrength, dalpha, dphi)
    return torch.from_numpy(dalpha), torch.from_numpy(dphi)


_share_op = differentiable(
    "share",
    patterns=1,
    inputs="Tensor source, Tensor alpha, Tensor fitness",
    outputs="(Tensor, Tensor)",
    wrt=("alpha", "fitness"),
    saved="Tensor source, Tensor alpha, Tensor fitness, Tensor share, Tensor total",
    saves=lambda inputs, out: (*inputs, *out),
    forward=_share,
    fake=lambda members, source, alpha, fitness: (alpha.new_empty(members.col.numel()), torch.empty_like(fitness)),
    backward=_share_backward,
    backward_fake=lambda members, g, source, alpha, fitness, *rest: (
        torch.empty_like(alpha),
        torch.empty_like(fitness),
    ),
)


def share(members: Pattern, source: Tensor, alpha: Tensor, fitness: Tensor) -> Tensor:
    """As reference.share."""
    M: Tensor = _share_op(members, source, alpha, fitness)[0]
    return M
