"""GIN's sums over neighbours, with and without edge features, forward along rows and backward along columns.

A message max(x_j + W e_ij, 0) is computed when it is added, and again in the backward pass, which avoids an E×F tensor.
Edge features are often one-hot: a feature that is 0 costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import BLOCK, Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, empty, fresh, scalar
from asapool.kernels.fused.propagate import propagate_backward
from asapool.kernels.fused.row_sums import sum_row
from asapool.kernels.fused.vectors import at, pointer
from asapool.kernels.graph import Array, Pattern, Rows


@Loop
def _neighbour_rows(start, stop, rowptr, col, edge, weight, x, scale, y):  # type: ignore[no-untyped-def]
    """y_i = Σ_j w_ij x_j + scale x_i; `edge` has the position of an entry's weight (empty: its own)."""
    F = x.shape[1]
    entries, w, x_, y_ = pointer(col), pointer(weight), pointer(x), pointer(y)
    for i in range(start, stop):
        begin, end, x_i, y_i = rowptr[i], rowptr[i + 1], at(x_, i * F), at(y_, i * F)
        if edge.size:
            sum_row(begin, end, entries, pointer(edge), w, 0, x_, F, x_i, scale, False, y_i)
        else:
            sum_row(begin, end, entries, None, w, 0, x_, F, x_i, scale, False, y_i)


@Loop
def _dot_blocks(start, stop, x, y, total):  # type: ignore[no-untyped-def]
    """Σ_i x_i · y_i of each block of rows."""
    N, F = x.shape
    for b in range(start, stop):
        t = x.dtype.type(0)
        for i in range(b * BLOCK, min((b + 1) * BLOCK, N)):
            for f in range(F):
                t += x[i, f] * y[i, f]
        total[b] = t


@Loop
def _message_rows(start, stop, rowptr, col, weight, x, attr, W, scale, y):  # type: ignore[no-untyped-def]
    """y_i = scale x_i + Σ_j w_ij max(x_j + Σ_d e_ijd W_d, 0); W is (D, F) here, so that its rows are contiguous."""
    F, D, zero = x.shape[1], attr.shape[1], x.dtype.type(0)
    t = np.empty(F, x.dtype)
    for i in range(start, stop):
        for f in range(F):
            y[i, f] = scale * x[i, f]
        for e in range(rowptr[i], rowptr[i + 1]):
            j, a = col[e], weight[e]
            if i == j and a == zero:
                continue  # the entry of an absent self-loop
            for f in range(F):
                t[f] = x[j, f]
            for d in range(D):
                v = attr[e, d]
                if v != zero:
                    for f in range(F):
                        t[f] += v * W[d, f]
            for f in range(F):
                y[i, f] += a * (zero if t[f] < zero else t[f])  # in this order NaN stays NaN


@Loop
def _message_blocks_backward(start, stop, columns, weight, x, g, edges, scale, dx, dedges, dW):  # type: ignore[no-untyped-def]
    """∂x_j, ∂w_ij, ∂e_ij and, for each block of columns, ∂W; empty outputs are skipped.

    edges: e and W; dedges: ∂w and ∂e. With t_ij = x_j + W e_ij and m_ij = w_ij g_i if t_ij > 0, else 0:
    ∂x_j = scale g_j + Σ_i m_ij, ∂w_ij = g_i · max(t_ij, 0), ∂e_ij = Wᵀ m_ij, ∂W = Σ_ij m_ij e_ijᵀ.
    """
    rowptr_t, col_t, edge_t = columns
    attr, W = edges
    dweight, dattr = dedges
    (N, F), D, zero = x.shape, attr.shape[1], x.dtype.type(0)
    t, m = np.empty(F, x.dtype), np.empty(F, x.dtype)
    for b in range(start, stop):
        if dW.size:
            dW[b] = zero
        for j in range(b * BLOCK, min((b + 1) * BLOCK, N)):
            for f in range(F):
                dx[j, f] = scale * g[j, f]
            for k in range(rowptr_t[j], rowptr_t[j + 1]):
                i, e = col_t[k], edge_t[k]
                a = weight[e]
                for f in range(F):
                    t[f] = x[j, f]
                for d in range(D):
                    v = attr[e, d]
                    if v != zero:
                        for f in range(F):
                            t[f] += v * W[d, f]
                if dweight.size:
                    total = zero
                    for f in range(F):
                        total += g[i, f] * (t[f] if t[f] > zero else zero)
                    dweight[e] = total
                for f in range(F):
                    m[f] = a * g[i, f] if t[f] > zero else zero
                for f in range(F):
                    dx[j, f] += m[f]
                for d in range(D):
                    v = attr[e, d]
                    if dW.size and v != zero:
                        for f in range(F):
                            dW[b, d, f] += v * m[f]
                    if dattr.size:
                        total = zero
                        for f in range(F):
                            total += m[f] * W[d, f]
                        dattr[e, d] = total


def _scale(eps: Tensor | None, like: Tensor) -> Any:
    return scalar(1.0 if eps is None else 1.0 + float(eps), like)


def _deps(eps: Tensor | None, x: Array, g: Array) -> Tensor:
    """∂ε = Σ_i x_i · g_i."""
    blocks = np.empty(-(-x.shape[0] // BLOCK), x.dtype)
    run_rows(_dot_blocks, blocks.size, 2 * x.size, x, g, blocks)
    total = torch.from_numpy(blocks).sum()
    return total if eps is None else total.view(eps.shape)


def _neighbours(rows: Rows, weight: Tensor, x: Tensor, eps: Tensor | None) -> Tensor:
    x_, y = array(x), fresh(*x.shape, like=x)
    arrays = (rows.rowptr, rows.col, rows.edge_t[:0], array(weight), x_, _scale(eps, x), y)
    run_rows(_neighbour_rows, len(y), rows.col.size * (x.size(1) + 40), *arrays)
    return torch.from_numpy(y)


def _neighbours_backward(
    rows: Rows, g: Tensor, weight: Tensor, x: Tensor, eps: Tensor | None, need: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    x_, g_, dx = array(x), g.numpy(), fresh(*x.shape, like=x)
    dweight = propagate_backward(rows, g, weight, x, x, False, [need[0], False, False])[0]
    if need[1]:
        arrays = (rows.rowptr_t, rows.col_t, rows.edge_t, array(weight), g_, _scale(eps, x), dx)
        run_rows(_neighbour_rows, len(dx), rows.col.size * (x.size(1) + 40), *arrays)
    return dweight, torch.from_numpy(dx), _deps(eps, x_, g_) if need[2] else empty(x)


def _fake_eps(eps: Tensor | None, like: Tensor, needed: bool) -> Tensor:
    return torch.empty_like(eps) if needed and eps is not None else empty(like)


_neighbours_op = differentiable(
    "sum_neighbours",
    patterns=1,
    inputs="Tensor weight, Tensor x, Tensor? eps",
    wrt=("weight", "x", "eps"),
    saved="Tensor weight, Tensor x, Tensor? eps",
    saves=lambda inputs, y: inputs,
    forward=_neighbours,
    fake=lambda rows, weight, x, eps: torch.empty_like(x),
    backward=_neighbours_backward,
    backward_fake=lambda rows, g, weight, x, eps, need: (
        torch.empty_like(weight) if need[0] else empty(x),
        torch.empty_like(x),
        _fake_eps(eps, x, need[2]),
    ),
)


def sum_neighbours(pattern: Pattern, weight: Tensor, x: Tensor, eps: Tensor | None = None) -> Tensor:
    """As reference.sum_neighbours."""
    y: Tensor = _neighbours_op(pattern, weight, x, eps)
    return y


def _work(rows: Rows, x: Tensor, attr: Tensor) -> int:
    return rows.col.size * ((2 + attr.size(1)) * x.size(1) + 60)


def _messages(rows: Rows, weight: Tensor, x: Tensor, eps: Tensor | None, attr: Tensor, W: Tensor) -> Tensor:
    y = fresh(*x.shape, like=x)
    arrays = (array(weight), array(x), array(attr), array(W.t()), _scale(eps, x), y)
    run_rows(_message_rows, len(y), _work(rows, x, attr), rows.rowptr, rows.col, *arrays)
    return torch.from_numpy(y)


def _messages_backward(
    rows: Rows, g: Tensor, weight: Tensor, x: Tensor, eps: Tensor | None, attr: Tensor, W: Tensor, need: list[bool]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    x_, g_, E, (F, D) = array(x), g.numpy(), rows.col.size, W.shape
    blocks = -(-len(x_) // BLOCK)
    dx, dweight, dattr = (
        fresh(*x.shape, like=x),
        fresh(E if need[0] else 0, like=x),
        fresh(E if need[3] else 0, D, like=x),
    )
    dW = fresh(blocks if need[4] else 0, D, F, like=x)
    arrays = (array(weight), x_, g_, (array(attr), array(W.t())), _scale(eps, x), dx, (dweight, dattr), dW)
    run_rows(_message_blocks_backward, blocks, 2 * _work(rows, x, attr), rows[2:], *arrays)
    deps = _deps(eps, x_, g_) if need[2] else empty(x)
    results = (torch.from_numpy(dweight), torch.from_numpy(dx), deps, torch.from_numpy(dattr))
    return *results, torch.from_numpy(dW.sum(0)).t()


_messages_op = differentiable(
    "sum_messages",
    patterns=1,
    inputs="Tensor weight, Tensor x, Tensor? eps, Tensor edge_attr, Tensor W",
    wrt=("weight", "x", "eps", "edge_attr", "W"),
    saved="Tensor weight, Tensor x, Tensor? eps, Tensor edge_attr, Tensor W",
    saves=lambda inputs, y: inputs,
    forward=_messages,
    fake=lambda rows, weight, x, eps, attr, W: torch.empty_like(x),
    backward=_messages_backward,
    backward_fake=lambda rows, g, weight, x, eps, attr, W, need: (
        torch.empty_like(weight) if need[0] else empty(x),
        torch.empty_like(x),
        _fake_eps(eps, x, need[2]),
        torch.empty_like(attr) if need[3] else attr.new_empty(0, attr.size(1)),
        W.new_empty(W.size(1), W.size(0)).t(),
    ),
)


def sum_messages(
    pattern: Pattern, weight: Tensor, x: Tensor, eps: Tensor | None, edge_attr: Tensor, W: Tensor
) -> Tensor:
    """As reference.sum_messages."""
    y: Tensor = _messages_op(pattern, weight, x, eps, edge_attr, W)
    return y
