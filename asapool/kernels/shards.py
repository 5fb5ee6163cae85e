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

from asapool.kernels.exchange import Exchange

_local = threading.local()


class Shard(NamedTuple):
    """The rank of this process, the number of processes, and their shared memory if they run on one machine."""

    rank: int
    size: int
    exchange: Exchange | None = None


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
    if shard.exchange is not None and x.device.type == "cpu":
        return shard.exchange.gather(x)
    parts = [torch.empty_like(x) for _ in range(shard.size)]
    distributed.all_gather(parts, x.contiguous())
    return torch.stack(parts)


def sum_over(x: Tensor, shard: Shard) -> Tensor:
    """Replace a contiguous x by its sum over all processes, and return it."""
    if shard.exchange is not None and x.device.type == "cpu":
        return shard.exchange.sum_(x)
    distributed.all_reduce(x)
    return x


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
        own = x.new_zeros(3, x.size(1), dtype=torch.float64)  # number of rows, mean, variance
        if len(x):
            own[0] = len(x)
            _, own[1], deviation = torch.native_batch_norm(x, None, None, None, None, True, 0.0, eps)  # 1/√(σ² + ε)
            own[2] = deviation.double().pow(-2) - eps
        counts, means, variances = gather(own, shard).unbind(1)  # (size, F) each
        total = counts.sum(0)[0]
        share = counts / total
        mean = (share * means).sum(0)
        variance = (share * (variances + (means - mean).square())).sum(0).clamp_(min=0)
        scale = (variance + eps).rsqrt().to(x.dtype)
        hat = (x - mean.to(x.dtype)) * scale
        ctx.save_for_backward(hat, weight, scale)
        ctx.total, ctx.shard = total, shard
        ctx.mark_non_differentiable(mean, variance, total)
        return torch.addcmul(bias, hat, weight), mean, variance, total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        g, (hat, weight, scale) = grads[0], ctx.saved_tensors
        d_bias, d_weight = g.sum(0), (g * hat).sum(0)  # of this process's rows; weight gradients are summed later
        sums = sum_over(torch.stack([d_bias, d_weight]).double(), ctx.shard)
        mean, along = (sums / ctx.total).to(g.dtype)
        return (g - mean - hat * along) * (weight * scale), d_weight, d_bias, None, None
