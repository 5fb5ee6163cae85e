"""Attention whose query does not cancel in the softmax: scores wᵀσ(q_i + t_j), without an E×F tensor."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.attend import divide_by_sums, softmax_backward
from asapool.kernels.fused.compiled import BLOCK, Loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, fresh, scalar
from asapool.kernels.graph import Array, Pattern, Rows


@Loop
def _dynamic_rows(start, stop, rowptr, col, query, token, w, slope, s):  # type: ignore[no-untyped-def]
    """s_ij = wᵀσ(q_i + t_j), less the largest of the row."""
    F, zero = token.shape[1], token.dtype.type(0)
    for i in range(start, stop):
        top = token.dtype.type(-np.inf)
        for e in range(rowptr[i], rowptr[i + 1]):
            j, total = col[e], zero
            for f in range(F):
                v = query[i, f] + token[j, f]
                total += w[f] * (v if v > zero else slope * v)
            s[e] = total
            top = max(top, total)
        for e in range(rowptr[i], rowptr[i + 1]):
            s[e] -= top


@Loop
def _dynamic_blocks_backward(start, stop, rows, here, there, w, slope, ds, dhere, dw):  # type: ignore[no-untyped-def]
    """∂here_i = Σ_j ∂s_ij w σ'(here_i + there_j) and, unless dw is empty, ∂w = Σ_ij ∂s_ij σ(·) of each block of rows.

    rows: row pointer, columns and positions of the entries in ds (empty: their own).
    """
    rowptr, col, edge = rows
    (N, F), zero = here.shape, here.dtype.type(0)
    for b in range(start, stop):
        for f in range(F if dw.size else 0):
            dw[b, f] = zero
        for i in range(b * BLOCK, min((b + 1) * BLOCK, N)):
            for f in range(F):
                dhere[i, f] = zero
            for k in range(rowptr[i], rowptr[i + 1]):
                j, above = col[k], ds[edge[k]] if edge.size else ds[k]
                below = above * slope
                for f in range(F):
                    dhere[i, f] += above if here[i, f] + there[j, f] > zero else below
                if dw.size:
                    for f in range(F):
                        v = here[i, f] + there[j, f]
                        dw[b, f] += v * (above if v > zero else below)
            for f in range(F):
                dhere[i, f] *= w[f]


def dynamic_scores(rows: Rows, query: Tensor, token: Tensor, w: Tensor, slope: float) -> Array:
    """exp(s_ij − max_j s_ij) of all rows: memberships before they are divided by their sum."""
    e = fresh(rows.col.size, like=token)
    arrays = (array(query), array(token), array(w), scalar(slope, token), e)
    run_rows(_dynamic_rows, token.size(0), e.size * (2 * token.size(1) + 40), rows.rowptr, rows.col, *arrays)
    np.exp(e, out=e)
    return e


def dynamic_backward(
    rows: Rows, ds: Array, query: Tensor, token: Tensor, w: Tensor, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """∂query, ∂token and ∂w from ∂s."""
    q, t, w_, (N, F) = array(query), array(token), array(w), token.shape
    blocks, work, bend = -(-N // BLOCK), ds.size * (3 * F + 40), scalar(slope, token)
    dq, dt, dw = np.empty_like(q), np.empty_like(t), fresh(blocks, F, like=token)
    by_row, by_column = (rows.rowptr, rows.col, rows.edge_t[:0]), rows[2:]
    run_rows(_dynamic_blocks_backward, blocks, work, by_row, q, t, w_, bend, ds, dq, dw)
    run_rows(_dynamic_blocks_backward, blocks, work, by_column, t, q, w_, bend, ds, dt, dw[:0])
    return torch.from_numpy(dq), torch.from_numpy(dt), torch.from_numpy(dw.sum(0))


def _forward(rows: Rows, query: Tensor, token: Tensor, w: Tensor, slope: float) -> Tensor:
    return divide_by_sums(rows, dynamic_scores(rows, query, token, w, slope))


def _backward(
    rows: Rows, g: Tensor, query: Tensor, token: Tensor, w: Tensor, alpha: Tensor, slope: float, need: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    return dynamic_backward(rows, softmax_backward(rows, g, alpha), query, token, w, slope)


_attend_dynamic_op = differentiable(
    "attend_dynamic",
    patterns=1,
    inputs="Tensor query, Tensor token, Tensor w, float slope",
    wrt=("query", "token", "w"),
    saved="Tensor query, Tensor token, Tensor w, Tensor alpha, float slope",
    saves=lambda inputs, alpha: (*inputs[:3], alpha, inputs[3]),
    forward=_forward,
    fake=lambda rows, query, token, w, slope: torch.empty_like(rows.col, dtype=token.dtype),
    backward=_backward,
    backward_fake=lambda rows, g, query, token, w, alpha, slope, need: (
        torch.empty_like(query),
        torch.empty_like(token),
        torch.empty_like(w),
    ),
)


def attend_dynamic(clusters: Pattern, query: Tensor, token: Tensor, w: Tensor, negative_slope: float = 0.2) -> Tensor:
    """As reference.attend_dynamic."""
    alpha: Tensor = _attend_dynamic_op(clusters, query, token, w, float(negative_slope))
    return alpha
