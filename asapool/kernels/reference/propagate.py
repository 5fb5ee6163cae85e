"""GCN's weights, and weighted sums over neighbourhoods, which GCN and cluster formation share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from asapool.kernels.graph import Pattern


def normalise(pattern: Pattern, hat: Tensor) -> Tensor:
    """GCN's symmetric weights: n_ij = d_i^-½ Â_ij d_j^-½ with d_i = Σ_j Â_ij.

    hat (E,) is Â; returns (E,). A row without weight gets zeros.
    """
    row = pattern.row
    wide = hat.to(torch.promote_types(hat.dtype, torch.float32))  # a degree in bfloat16 stops at 256
    d = wide.new_zeros(pattern.diag.numel()).index_add(0, row, wide)
    scale = torch.where(d > 0, d, torch.ones_like(d)).rsqrt() * (d > 0)
    return (scale[row] * wide * scale[pattern.col]).to(hat.dtype)


BLOCK = 1 << 18  # numbers of a temporary tensor with one row per entry: 1 MiB, which fits in the cache


def entry_blocks(E: int, F: int) -> Iterator[slice]:
    """Split E entries into blocks such that F numbers for each entry of a block stay in the cache.

    >>> list(entry_blocks(E=40, F=2**14))
    [slice(0, 16, None), slice(16, 32, None), slice(32, 40, None)]
    """
    step = max(1, BLOCK // max(F, 1))
    for start in range(0, E, step):
        yield slice(start, min(start + step, E))


def row_sums(rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor) -> Tensor:
    """y_i = Σ_e w_e x_{col_e} over the entries e of row i, without an E×F tensor.

    rowptr (N+1,), col (E,), weight (E,), x (M, F); returns (N, F).
    """
    if x.device.type not in ("cpu", "cuda"):  # other devices may lack embedding_bag
        row = torch.repeat_interleave(rowptr.diff(), output_size=col.numel())
        y = x.new_zeros(rowptr.numel() - 1, x.size(1))
        return y.index_add(0, row, weight[:, None] * x.index_select(0, col))
    if not x.numel():
        return x.new_zeros(rowptr.numel() - 1, x.size(1))
    return embedding_bag(col, x, rowptr, mode="sum", per_sample_weights=weight, include_last_offset=True)


def entry_products(g: Tensor, x: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """g_iᵀ x_j of every entry (i, j), (E,)."""
    products = [g.index_select(0, i[e]).mul(x.index_select(0, j[e])).sum(1) for e in entry_blocks(i.numel(), x.size(1))]
    return torch.cat(products) if products else x.new_zeros(0)


class _Propagate(torch.autograd.Function):
    """y_i = Σ_j w_ij x_j, without an E×F tensor in either direction."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Tensor, row: Tensor, *structure: Tensor) -> Tensor:
        ctx.save_for_backward(weight, x, row, *structure)
        rowptr, col, *_ = structure
        return row_sums(rowptr, col, weight, x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        weight, x, row, _, col, rowptr_t, col_t, edge_t = ctx.saved_tensors
        g = g.contiguous()
        dw = entry_products(g, x, row, col) if ctx.needs_input_grad[0] else None
        dx = row_sums(rowptr_t, col_t, weight[edge_t], g) if ctx.needs_input_grad[1] else None
        return dw, dx, None, None, None, None, None, None


def propagate(
    pattern: Pattern, weight: Tensor, x: Tensor, bias: Tensor | None = None, relu: bool = False, transpose: bool = False
) -> Tensor:
    """Weighted sum over the neighbours of every node: y_i = Σ_j w_ij x_j, optionally plus bias, then max(·, 0).

    weight (E,); x (N, F); bias (F,); returns (N, F). With transpose, y_j = Σ_i w_ij x_i.
    """
    wide = torch.promote_types(x.dtype, torch.float32)  # bfloat16 sums would lose most of their digits
    weight, wide_x = weight.to(wide), x.to(wide).contiguous()
    rowptr, col, rowptr_t, col_t, edge_t = pattern.tensors
    if transpose:
        back = torch.empty_like(edge_t).index_copy(0, edge_t, torch.arange(edge_t.numel(), device=edge_t.device))
        weight, rowptr, col, rowptr_t, col_t, edge_t = weight[edge_t], rowptr_t, col_t, rowptr, col, back
    row = torch.repeat_interleave(rowptr.diff(), output_size=col.numel())
    if torch.compiler.is_compiling():
        y = torch.zeros_like(wide_x).index_add(0, row, weight[:, None] * wide_x.index_select(0, col))
    else:
        y = _Propagate.apply(weight, wide_x, row, rowptr, col, rowptr_t, col_t, edge_t)  # type: ignore[no-untyped-call]
    y = y.to(x.dtype)
    if bias is not None:
        y = y + bias
    return y.relu() if relu else y


def activate(h: Tensor, bias: Tensor) -> Tensor:
    """Bias and ReLU of a convolution: y = max(h + bias, 0).

    h (N, F); bias (F,); returns (N, F).
    """
    return (h + bias).relu()
