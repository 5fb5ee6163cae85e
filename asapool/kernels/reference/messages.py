"""GIN's sums over neighbours: the node itself has the weight 1 + ε, and messages may include edge features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from asapool.kernels.graph import Pattern
from asapool.kernels.reference.propagate import entry_blocks, propagate


def sum_neighbours(pattern: Pattern, weight: Tensor, x: Tensor, eps: Tensor | None = None) -> Tensor:
    """Add the neighbours of every node to the node itself: y_i = (1 + ε) x_i + Σ_j A_ij x_j.

    weight (E,); x (N, F); eps () or (1,), None for 0; returns (N, F).

    >>> from asapool.kernels.reference.pattern import pack
    >>> pattern, _ = pack(torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 2]), 2)
    >>> sum_neighbours(pattern, torch.tensor([0., 1., 1., 0.]), torch.tensor([[1.], [5.]]), torch.tensor(1.)).tolist()
    [[7.0], [11.0]]
    """
    return _scaled(x, eps) + propagate(pattern, weight, x)


def sum_messages(
    pattern: Pattern, weight: Tensor, x: Tensor, eps: Tensor | None, edge_attr: Tensor, W: Tensor
) -> Tensor:
    """The same with edge features in every message: y_i = (1 + ε) x_i + Σ_j A_ij max(x_j + W e_ij, 0).

    weight (E,); x (N, F); eps () or (1,), None for 0; edge_attr (E, D); W (F, D); returns (N, F).
    """
    wide = torch.promote_types(x.dtype, torch.float32)  # bfloat16 sums would lose most of their digits
    inputs = (t.to(wide) for t in (weight, x, edge_attr, W))
    y: Tensor = _Messages.apply(*inputs, pattern.row, pattern.col)  # type: ignore[no-untyped-call]
    return _scaled(x, eps) + y.to(x.dtype)


def _scaled(x: Tensor, eps: Tensor | None) -> Tensor:
    return x if eps is None else (1 + eps) * x


class _Messages(torch.autograd.Function):
    """y_i = Σ_j A_ij max(x_j + W e_ij, 0), one block of entries at a time, which avoids an E×F tensor."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Tensor, attr: Tensor, W: Tensor, row: Tensor, col: Tensor) -> Tensor:
        ctx.save_for_backward(weight, x, attr, W, row, col)
        y = torch.zeros_like(x)
        for e in entry_blocks(col.numel(), x.size(1)):
            message = (x.index_select(0, col[e]) + attr[e] @ W.t()).relu()
            y.index_add_(0, row[e], weight[e, None] * message)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        weight, x, attr, W, row, col = ctx.saved_tensors
        dx, dweight, dattr, dW = (torch.zeros_like(t) for t in (x, weight, attr, W))
        for e in entry_blocks(col.numel(), x.size(1)):
            sums = x.index_select(0, col[e]) + attr[e] @ W.t()
            g_i = g.index_select(0, row[e])
            dweight[e] = (g_i * sums.relu()).sum(1)
            dsums = weight[e, None] * g_i * (sums > 0)
            dx.index_add_(0, col[e], dsums)
            dattr[e] = dsums @ W
            dW += dsums.t() @ attr[e]
        return dweight, dx, dattr, dW, None, None
