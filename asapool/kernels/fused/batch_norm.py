"""Batch normalisation with the steps that follow it, in one pass: y = r + dropout(ReLU(γ (x − μ)/√(σ² + ε) + β)).

The statistics are those of the rows of all processes that share the batch, or given ones. Means and squared deviations
are computed by blocks of rows that fit in the nearest cache, and combined in float64, in a fixed order. The backward
pass computes again which entries were positive.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, run_rows
from asapool.kernels.fused.dropout import fill_mask
from asapool.kernels.fused.operation import array, first_derivatives_only, fresh, scalar
from asapool.kernels.graph import Array
from asapool.kernels.reference.dropout import STEP
from asapool.kernels.shards import Shard, gather, sum_over

ROWS = 64  # of a block; fixed, so that results do not depend on threads


class RunningStatistics(NamedTuple):
    """Statistics that training updates, and that replace those of the batch outside of training.

    Args:
        mean: (F,).
        variance: (F,).
        momentum: the share of the batch in an update.
        fixed: whether to use them instead of those of the batch, without an update.
        batches: the number of updates, a scalar, or None.
    """

    mean: Tensor
    variance: Tensor
    momentum: float
    fixed: bool
    batches: Tensor | None = None


class Extras(NamedTuple):
    """The steps after the normalisation.

    Args:
        relu: whether to apply ReLU.
        p: probability of dropout.
        seed: of its mask, see kernels/dropout.py.
    """

    relu: bool
    p: float = 0.0
    seed: int = 0


@Loop
def _block_moments(start, stop, x, mean, square):  # type: ignore[no-untyped-def]
    """Mean and sum of squared deviations of every block of rows."""
    N, F = x.shape
    total = np.empty(F, x.dtype)
    for b in range(start, stop):
        lo, hi = b * ROWS, min((b + 1) * ROWS, N)
        share = x.dtype.type(1) / x.dtype.type(hi - lo)
        total[:] = x.dtype.type(0)
        for i in range(lo, hi):
            for f in range(F):
                total[f] += x[i, f]
        for f in range(F):
            mean[b, f] = total[f] * share
        total[:] = x.dtype.type(0)
        for i in range(lo, hi):
            for f in range(F):
                d = x[i, f] - mean[b, f]
                total[f] += d * d
        for f in range(F):
            square[b, f] = total[f]


@Loop
def _moments(start, stop, N, mean, square, own):  # type: ignore[no-untyped-def]
    """Number of rows, mean and variance (3, F) in float64, from those of the blocks."""
    blocks = mean.shape[0]
    for f in range(start, stop):
        total = 0.0
        for b in range(blocks):
            total += (min((b + 1) * ROWS, N) - b * ROWS) * np.float64(mean[b, f])
        m = total / max(N, 1)
        total = 0.0
        for b in range(blocks):
            d = np.float64(mean[b, f]) - m
            total += np.float64(square[b, f]) + (min((b + 1) * ROWS, N) - b * ROWS) * d * d
        own[0, f], own[1, f], own[2, f] = N, m, total / max(N, 1)


@Loop
def _affine(start, stop, parts, running, momentum, eps, weights, out):  # type: ignore[no-untyped-def]
    """Scale and shift of every channel, with mean and 1/√(σ² + ε), from the moments of all processes (P, 3, F).

    The running statistics are updated if there are parts, and used if there are none.
    """
    mean, variance = running
    weight, bias = weights
    for f in range(start, stop):
        m, v = np.float64(mean[f]), np.float64(variance[f])
        if parts.shape[0]:
            n, m, v = 0.0, np.float64(0), np.float64(0)
            for p in range(parts.shape[0]):
                n += parts[p, 0, f]
            for p in range(parts.shape[0]):
                m += parts[p, 0, f] / n * parts[p, 1, f]
            for p in range(parts.shape[0]):
                d = parts[p, 1, f] - m
                v += parts[p, 0, f] / n * (parts[p, 2, f] + d * d)
            mean[f] += momentum * (m - mean[f])
            variance[f] += momentum * (v * (n / (n - 1.0)) - variance[f])
        deviation = 1.0 / np.sqrt(v + eps)
        a = deviation * weight[f]
        out[0, f], out[1, f], out[2, f], out[3, f] = a, bias[f] - m * a, m, deviation


# Every row is one loop over its channels, because a second loop would check again that no two arrays overlap, which
# costs as much as the row. `least` is 0 for ReLU and −∞ without.


@Loop
def _activated_rows(start, stop, x, affine, residual, least, mask, y):  # type: ignore[no-untyped-def]
    """y_i = r_i + mask_i max(a x_i + b, least); an empty r or mask is left out."""
    F, one = x.shape[1], x.dtype.type(1)
    for i in range(start, stop):
        if residual.size:
            for f in range(F):
                t = affine[0, f] * x[i, f] + affine[1, f]
                t = least if t < least else t  # in this order NaN stays NaN
                y[i, f] = (mask[i, f] if mask.size else one) * t + residual[i, f]
        else:
            for f in range(F):
                t = affine[0, f] * x[i, f] + affine[1, f]
                t = least if t < least else t
                y[i, f] = (mask[i, f] if mask.size else one) * t


@Loop
def _block_sums(start, stop, x, g, affine, least, mask, sums):  # type: ignore[no-untyped-def]
    """Σ_i d_i and Σ_i d_i (x_i − μ) of every block, with d the gradient before ReLU and dropout."""
    (N, F), zero, one = x.shape, x.dtype.type(0), x.dtype.type(1)
    for b in range(start, stop):
        sums[b] = zero
        for i in range(b * ROWS, min((b + 1) * ROWS, N)):
            for f in range(F):
                d = (mask[i, f] if mask.size else one) * g[i, f]
                d = d if affine[0, f] * x[i, f] + affine[1, f] > least else zero
                sums[b, 0, f] += d
                sums[b, 1, f] += d * (x[i, f] - affine[2, f])


@Loop
def _input_rows(start, stop, x, g, affine, least, mask, lines, dx):  # type: ignore[no-untyped-def]
    """∂x_i = a d_i + c + s x_i; lines: c and s."""
    F, zero, one = x.shape[1], x.dtype.type(0), x.dtype.type(1)
    for i in range(start, stop):
        for f in range(F):
            d = (mask[i, f] if mask.size else one) * g[i, f]
            d = d if affine[0, f] * x[i, f] + affine[1, f] > least else zero
            dx[i, f] = affine[0, f] * d + lines[0, f] + lines[1, f] * x[i, f]


@Loop
def _lines(start, stop, sums, total, affine, lines):  # type: ignore[no-untyped-def]
    """c and s of every channel, from Σ d and Σ d x̂ over all rows; 0 if the statistics do not depend on x."""
    for f in range(start, stop):
        s = -affine[0, f] * affine[3, f] * sums[1, f] / max(total, 1)
        lines[1, f] = s if total else 0.0
        lines[0, f] = -affine[0, f] * sums[0, f] / total - s * affine[2, f] if total else 0.0


def _blocks(rows: int) -> int:
    return -(-rows // ROWS)


def _own_moments(x: Array) -> Tensor:
    """Number of rows, mean and variance of the rows of this process, (3, F) in float64."""
    mean, square = np.empty((2, _blocks(len(x)), x.shape[1]), x.dtype)
    run_rows(_block_moments, len(mean), 3 * x.size, x, mean, square)
    own = np.empty((3, x.shape[1]))
    run_rows(_moments, x.shape[1], 4 * mean.size, len(x), mean, square, own)
    return torch.from_numpy(own)


class _Normalised(NamedTuple):
    """What the backward pass needs, apart from x.

    Args:
        affine: scale, shift, mean and 1/√(σ² + ε), (4, F).
        least: 0 for ReLU, −∞ without.
        mask: of dropout, (N, F), or empty.
        total: rows of all processes; 0 if the statistics were given.
    """

    affine: Array
    least: Any
    mask: Array
    total: int


def _forward(
    x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, eps: float, statistics: RunningStatistics,
    extras: Extras, shard: Shard | None,
) -> tuple[Tensor, _Normalised]:  # fmt: skip
    """y, and what the backward pass needs."""
    x_, (N, F), fixed, seed = array(x), x.shape, statistics.fixed, extras.seed
    parts, total = np.empty((0, 3, F)), N
    if not fixed:
        own = _own_moments(x_)
        every = own[None] if shard is None else gather(own, shard)
        counts = [N] if shard is None else every[:, 0, 0].long().tolist()
        total = sum(counts)
        if shard is not None:  # the entries of this process in the mask of the whole batch
            seed += sum(counts[: shard.rank]) * F * STEP
        fixed = total < 2  # a single row has no variance
        if not fixed:
            parts = every.numpy()
            if statistics.batches is not None:
                statistics.batches.add_(1)
    affine, running = fresh(4, F, like=x), (array(statistics.mean), array(statistics.variance))
    run_rows(_affine, F, 20 * F, parts, running, statistics.momentum, eps, (array(weight), array(bias)), affine)
    y, mask = fresh(N, F, like=x), fresh(N if extras.p else 0, F, like=x)
    if extras.p:
        fill_mask(seed, extras.p, mask)
    r = fresh(0, 0, like=x) if residual is None else array(residual)
    least = scalar(0.0 if extras.relu else -np.inf, x)
    run_rows(_activated_rows, N, 3 * x_.size, x_, affine, r, least, mask, y)
    return torch.from_numpy(y), _Normalised(affine, least, mask, 0 if fixed else total)


class _BatchNorm(torch.autograd.Function):
    """y, with gradients for x, γ, β and r."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, *more: Any) -> Tensor:
        y, ctx.normalised = _forward(x, weight, bias, residual, *more)
        ctx.shard = more[-1]
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        first_derivatives_only()
        (x,), (affine, least, mask, total) = ctx.saved_tensors, ctx.normalised
        x_, g, (N, F) = array(x), array(grads[0]), x.shape
        by_block = np.empty((_blocks(N), 2, F), x_.dtype)
        run_rows(_block_sums, len(by_block), 4 * x_.size, x_, g, affine, least, mask, by_block)
        own = by_block.sum(axis=0, dtype=np.float64)  # of this process's rows; gradients of weights are summed later
        own[1] *= affine[3]
        sums = sum_over(torch.from_numpy(own.copy()), ctx.shard).numpy() if total and ctx.shard is not None else own
        lines, dx = fresh(2, F, like=x), fresh(N, F, like=x)
        run_rows(_lines, F, 20 * F, sums, total, affine, lines)
        run_rows(_input_rows, N, 4 * x_.size, x_, g, affine, least, mask, lines, dx)
        d_bias, d_weight = map(torch.from_numpy, own.astype(x_.dtype))
        return torch.from_numpy(dx), d_weight, d_bias, grads[0] if ctx.needs_input_grad[3] else None, *[None] * 4


def batch_norm(
    x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, eps: float, statistics: RunningStatistics,
    extras: Extras, shard: Shard | None = None,
) -> Tensor:  # fmt: skip
    """y = r + dropout(ReLU(γ (x − μ)/√(σ² + ε) + β)).

    Args:
        x: (N, F), at least one row.
        weight: γ (F,).
        bias: β (F,).
        residual: r (N, F), or None.
        eps: ε.
        statistics: the running ones, updated in place unless they are fixed or the batch has a single row.
        extras: ReLU and dropout.
        shard: the processes that share the batch, if there are several.

    Returns:
        (N, F).
    """
    inputs, more = (x, weight, bias, residual), (eps, statistics, extras, shard)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in inputs):
        y: Tensor = _BatchNorm.apply(*inputs, *more)  # type: ignore[no-untyped-call]
        return y
    return _forward(*inputs, *more)[0]
