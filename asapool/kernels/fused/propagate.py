"""GCN's weights, and weighted sums over neighbourhoods: forward by rows, backward by columns, without E×F tensors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import BLOCK, Loop, lookup_loop, run_rows
from asapool.kernels.fused.operation import array, differentiable, empty, fresh, fresh_like
from asapool.kernels.fused.row_sums import match_row, sum_row
from asapool.kernels.fused.vectors import at, pointer
from asapool.kernels.graph import Array, Pattern, Rows


@Loop
def _scale_rows(start, stop, rowptr, hat, scale):  # type: ignore[no-untyped-def]
    """s_i = (Σ_j Â_ij)^-½, 0 for an empty row."""
    for i in range(start, stop):
        d = hat.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            d += hat[e]
        scale[i] = 1 / np.sqrt(d) if d > 0 else 0


@Loop
def _normalise_rows(start, stop, rowptr, col, hat, scale, n):  # type: ignore[no-untyped-def]
    """n_ij = s_i Â_ij s_j."""
    for i in range(start, stop):
        for e in range(rowptr[i], rowptr[i + 1]):
            n[e] = scale[i] * hat[e] * scale[col[e]]


@lookup_loop
def _scale_rows_backward(start, stop, rowptr, col, hat, g, scale, part, ds):  # type: ignore[no-untyped-def]
    """Σ_j g_ij Â_ij s_j, and the terms g_ij Â_ij, which the pass by column reads."""
    for i in range(start, stop):
        total = hat.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            part[e] = g[e] * hat[e]
            total += part[e] * scale[col[e]]
        ds[i] = total


@lookup_loop
def _scale_columns_backward(start, stop, rowptr_t, col_t, edge_t, part, scale, ds):  # type: ignore[no-untyped-def]
    """∂/∂d_i = −½ s_i³ (Σ_j g_ij Â_ij s_j + Σ_k g_ki Â_ki s_k)."""
    for i in range(start, stop):
        total = ds[i]
        for e in range(rowptr_t[i], rowptr_t[i + 1]):
            total += part[edge_t[e]] * scale[col_t[e]]
        ds[i] = -total * scale[i] * scale[i] * scale[i] / 2


@Loop
def _normalise_rows_backward(start, stop, rowptr, col, g, scale, ds, dhat):  # type: ignore[no-untyped-def]
    """∂/∂Â_ij = s_i s_j g_ij + ∂/∂d_i."""
    for i in range(start, stop):
        for e in range(rowptr[i], rowptr[i + 1]):
            dhat[e] = scale[i] * scale[col[e]] * g[e] + ds[i]


def _normalise(rows: Rows, hat: Tensor) -> tuple[Tensor, Tensor]:
    hat_ = array(hat)
    n, scale = np.empty_like(hat_), np.empty(rows.rowptr.size - 1, hat_.dtype)
    run_rows(_scale_rows, scale.size, 25 * hat_.size, rows.rowptr, hat_, scale)
    run_rows(_normalise_rows, scale.size, 35 * hat_.size, rows.rowptr, rows.col, hat_, scale, n)
    return torch.from_numpy(n), torch.from_numpy(scale)


def _normalise_backward(rows: Rows, g: Tensor, hat: Tensor, scale: Tensor, need: list[bool]) -> Tensor:
    hat_, g_, scale_ = array(hat), g.numpy(), array(scale)
    dhat, ds = np.empty_like(hat_), np.empty_like(scale_)  # dhat first holds the terms g_ij Â_ij
    run_rows(_scale_rows_backward, ds.size, 30 * hat_.size, rows.rowptr, rows.col, hat_, g_, scale_, dhat, ds)
    run_rows(_scale_columns_backward, ds.size, 30 * hat_.size, *rows[2:], dhat, scale_, ds)
    run_rows(_normalise_rows_backward, ds.size, 35 * hat_.size, rows.rowptr, rows.col, g_, scale_, ds, dhat)
    return torch.from_numpy(dhat)


_normalise_op = differentiable(
    "normalise",
    patterns=1,
    inputs="Tensor hat",
    outputs="(Tensor, Tensor)",
    wrt=("hat",),
    saved="Tensor hat, Tensor scale",
    saves=lambda inputs, out: (inputs[0], out[1]),
    forward=_normalise,
    fake=lambda rows, hat: (torch.empty_like(hat), hat.new_empty(rows.rowptr.numel() - 1)),
    backward=_normalise_backward,
    backward_fake=lambda rows, g, hat, scale, need: torch.empty_like(hat),
)


def normalise(pattern: Pattern, hat: Tensor) -> Tensor:
    """As reference.normalise."""
    n: Tensor = _normalise_op(pattern, hat)[0]
    return n


@Loop
def _sum_rows(start, stop, rowptr, col, edge, weight, x, bias, relu, y):  # type: ignore[no-untyped-def]
    """y_i = Σ_j w_ij x_j + bias, then max(·, 0); `edge` has the position of an entry's weight (empty: its own)."""
    F, one = x.shape[1], x.dtype.type(1)
    entries, w, x_, y_ = pointer(col), pointer(weight), pointer(x), pointer(y)
    for i in range(start, stop):
        begin, end, y_i = rowptr[i], rowptr[i + 1], at(y_, i * F)
        if edge.size:
            sum_row(begin, end, entries, pointer(edge), w, 0, x_, F, None, one, relu, y_i)
        elif bias.size:
            sum_row(begin, end, entries, None, w, 0, x_, F, pointer(bias), one, relu, y_i)
        else:
            sum_row(begin, end, entries, None, w, 0, x_, F, None, one, relu, y_i)


@Loop
def _match_rows(start, stop, rowptr, col, x, g, dw):  # type: ignore[no-untyped-def]
    """dw_ij = g_i · x_j."""
    F = x.shape[1]
    for i in range(start, stop):
        match_row(rowptr[i], rowptr[i + 1], pointer(col), 0, pointer(x), F, at(pointer(g), i * F), pointer(dw))


@Loop
def _activate_rows(start, stop, h, bias, y):  # type: ignore[no-untyped-def]
    """y_i = max(h_i + bias, 0)."""
    F, zero = h.shape[1], h.dtype.type(0)
    for i in range(start, stop):
        for f in range(F):
            v = h[i, f] + bias[f]
            y[i, f] = zero if v < zero else v


@Loop
def _activate_blocks_backward(start, stop, g, y, dh, db):  # type: ignore[no-untyped-def]
    """∂h = g if y > 0, else 0 and, for each block of rows, ∂bias = Σ_i ∂h_i."""
    N, F = g.shape
    zero = g.dtype.type(0)
    for b in range(start, stop):
        for f in range(F):
            db[b, f] = zero
        for i in range(b * BLOCK, min((b + 1) * BLOCK, N)):
            for f in range(F):
                dh[i, f] = g[i, f] if y[i, f] > zero else zero
            for f in range(F):
                db[b, f] += dh[i, f]


def propagate_rows(rows: Rows, weight: Tensor, x: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
    """y of all rows."""
    x_, N, F = array(x), x.size(0), x.size(1)
    y = fresh(N, F, like=x)
    b = fresh(0, like=x) if bias is None else array(bias)
    arrays = (rows.rowptr, rows.col, rows.edge_t[:0], array(weight), x_, b, relu, y)
    run_rows(_sum_rows, N, rows.col.size * (F + 40), *arrays)
    return torch.from_numpy(y)


def propagate_backward(
    rows: Rows, g: Tensor, weight: Tensor, x: Tensor, y: Tensor, relu: bool, need: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    """∂weight, ∂x and ∂bias from ∂y."""
    N, F = x.shape
    work, g_ = rows.col.size * (F + 40), g.numpy()
    db = None
    if relu:
        g_, db = _masked(g_, array(y))
    dw, dx, none = fresh(0, like=x), fresh(0, like=x), fresh(0, like=x)
    if need[0]:
        dw = fresh(rows.col.size, like=x)
        run_rows(_match_rows, N, work, rows.rowptr, rows.col, array(x), g_, dw)
    if need[1]:
        dx = fresh(N, F, like=x)  # the gradient of a weighted sum is a weighted sum along the columns
        arrays = (rows.rowptr_t, rows.col_t, rows.edge_t, array(weight), g_, none, False, dx)
        run_rows(_sum_rows, N, work, *arrays)
    if need[2]:
        db = g.sum(0).numpy() if db is None else db
    return torch.from_numpy(dw), torch.from_numpy(dx), torch.from_numpy(none if db is None else db)


_propagate_op = differentiable(
    "propagate",
    patterns=1,
    inputs="Tensor weight, Tensor x, Tensor? bias, bool relu",
    wrt=("weight", "x", "bias"),
    saved="Tensor weight, Tensor x, Tensor y, bool relu",
    saves=lambda inputs, y: (inputs[0], inputs[1], y if inputs[3] else empty(y), inputs[3]),
    forward=propagate_rows,
    fake=lambda rows, weight, x, bias, relu: torch.empty_like(x),
    backward=propagate_backward,
    backward_fake=lambda rows, g, weight, x, y, relu, need: (
        torch.empty_like(weight) if need[0] else empty(x),
        torch.empty_like(x) if need[1] else empty(x),
        x.new_empty(x.size(1)) if need[2] else empty(x),
    ),
)


def propagate(
    pattern: Pattern, weight: Tensor, x: Tensor, bias: Tensor | None = None, relu: bool = False, transpose: bool = False
) -> Tensor:
    """As reference.propagate."""
    if transpose:
        back = torch.empty_like(pattern.edge_t)
        back[pattern.edge_t] = torch.arange(back.numel())
        weight = weight[pattern.edge_t]
        pattern = Pattern(
            pattern.ptr, pattern.rowptr_t, pattern.col_t, back[pattern.diag], pattern.rowptr, pattern.col, back
        )
    y: Tensor = _propagate_op(pattern, weight, x, bias, relu)
    return y


def _masked(g: Array, y: Array) -> tuple[Array, Array]:
    """The gradient before ReLU, and its sum over all rows."""
    dh, db = fresh_like(g), np.empty((-(-g.shape[0] // BLOCK), g.shape[1]), g.dtype)
    run_rows(_activate_blocks_backward, db.shape[0], 5 * g.size, g, y, dh, db)
    total: Array = db.sum(0)
    return dh, total


def activate_rows(h: Tensor, bias: Tensor) -> Tensor:
    """max(h + bias, 0) of all rows."""
    h_ = array(h)
    y = fresh_like(h_)
    run_rows(_activate_rows, h_.shape[0], 3 * h_.size, h_, array(bias), y)
    return torch.from_numpy(y)


def activate_backward(g: Tensor, y: Tensor, need: list[bool]) -> tuple[Tensor, Tensor]:
    """∂h and ∂bias from ∂y."""
    dh, db = _masked(g.numpy(), array(y))
    return torch.from_numpy(dh), torch.from_numpy(db)


_activate_op = differentiable(
    "activate",
    patterns=0,
    inputs="Tensor h, Tensor bias",
    wrt=("h", "bias"),
    saved="Tensor y",
    saves=lambda inputs, y: (y,),
    forward=activate_rows,
    fake=lambda h, bias: torch.empty_like(h),
    backward=activate_backward,
    backward_fake=lambda g, y, need: (torch.empty_like(y), y.new_empty(y.size(1))),
)


def activate(h: Tensor, bias: Tensor) -> Tensor:
    """As reference.activate."""
    y: Tensor = _activate_op(h, bias)
    return y
