"""Processes that share every batch: dropout, batch normalisation and the loss across them.

Each process has some of the graphs of a batch, in the order of the batch, so rank 0 has the first rows of every tensor.
Inside `sharing_batches(shard)` dropout draws the mask of the whole batch and keeps the rows of this process, and batch
normalisation uses the statistics of the whole batch; the numbers are then those of one process, up to rounding.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed

_local = threading.local()


class Shard(NamedTuple):
    """The rank of this process, and the number of processes."""

    rank: int
    size: int


def current_shard() -> Shard | None:
    """The shard of this thread inside sharing_batches; None elsewhere."""
    if torch.compiler.is_compiling():
        return None
    return getattr(_local, "shard", None)


@contextmanager
def sharing_batches(shard: Shard | None) -> Iterator[None]:
    """Inside, layers treat their rows as part of a batch that `shard.size` processes share."""
    before = getattr(_local, "shard", None)
    _local.shard = shard
    try:
        yield
    finally:
        _local.shard = before


def gather(x: Tensor, shard: Shard) -> Tensor:
    """The tensors of all processes, (size, *x.shape); all have the same shape."""
    parts = [torch.empty_like(x) for _ in range(shard.size)]
    distributed.all_gather(parts, x.contiguous())
    return torch.stack(parts)


def span(rows: int, shard: Shard) -> tuple[int, int]:
    """The first row of this process among the rows of all processes, and their total number."""
    counts = gather(torch.tensor([rows]), shard).view(-1).tolist()
    return sum(counts[: shard.rank]), sum(counts)


def all_rows(x: Tensor, counts: Sequence[int], shard: Shard) -> Tensor:
    """The concatenated rows of all processes; gradients flow back to the rows of this process.

    Every process computes the same loss from all rows, so its own rows get their full gradient.

    Args:
        x: rows of this process, (counts[rank], F).
        counts: rows of every process.
        shard: which process this is.

    Returns:
        (Σ counts, F).
    """
    rows: Tensor = _AllRows.apply(x, counts, shard)  # type: ignore[no-untyped-call]
    return rows


class _AllRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: Sequence[int], shard: Shard) -> Tensor:
        first = sum(counts[: shard.rank])
        ctx.rows = slice(first, first + counts[shard.rank])
        padded = x.new_zeros(max(counts), *x.shape[1:])
        padded[: len(x)] = x
        return torch.cat([part[:n] for part, n in zip(gather(padded, shard), counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[Tensor, None, None]:
        return grad[0][ctx.rows], None, None


class ShardedBatchNorm(torch.autograd.Function):
    """y = γ (x − μ)/√(σ² + ε) + β, with mean and variance over the rows of all processes.

    Applied to x (n, F), weight (F,), bias (F,), eps and shard; returns y (n, F), the mean (F,), the variance (F,)
    without Bessel's correction, and the number of rows.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, shard: Shard
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        variance, mean = torch.var_mean(x.double(), 0, correction=0) if len(x) else x.new_zeros(2, x.size(1)).double()
        count = torch.full_like(mean, len(x))
        all_counts, means, variances = gather(torch.stack([count, mean, variance]), shard).unbind(1)  # (size, F) each
        share = all_counts / all_counts.sum(0)
        mean = (share * means).sum(0)
        variance = (share * (variances + (means - mean).square())).sum(0)
        scale = (variance + eps).rsqrt().to(x.dtype)
        hat = (x - mean.to(x.dtype)) * scale
        total = all_counts.sum(0)[0]
        ctx.save_for_backward(hat, weight, scale)
        ctx.total = total
        ctx.mark_non_differentiable(mean, variance, total)
        return torch.addcmul(bias, hat, weight), mean, variance, total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        g, (hat, weight, scale) = grads[0], ctx.saved_tensors
        d_bias, d_weight = g.sum(0), (g * hat).sum(0)  # of this process's rows; weight gradients are summed later
        sums = torch.stack([d_bias, d_weight]).double()
        distributed.all_reduce(sums)
        mean, along = (sums / ctx.total).to(g.dtype)
        return (g - mean - hat * along) * (weight * scale), d_weight, d_bias, None, None
