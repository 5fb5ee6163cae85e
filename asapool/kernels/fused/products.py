"""Dense matrix products of node features, for processors on which torch's own are slow.

torch multiplies with MKL, which uses vectors of 256 bits on other makers' processors even if they have 512. There, a
product computed tile by tile in registers takes half the time. Elsewhere these functions call torch, as they do for
shapes that do not fill a tile. A product with very few columns is computed row by row on every processor.
"""

from __future__ import annotations

from typing import Any

import torch
from llvmlite import binding, ir
from torch import Tensor

from asapool.kernels.fused.compiled import Loop, helper, run_rows
from asapool.kernels.fused.operation import array, first_derivatives_only, fresh, without_autocast
from asapool.kernels.fused.vectors import (
    TYPES,
    at,
    generated,
    lanes,
    load,
    plus,
    pointer,
    repeated,
    times,
    total,
    vector_at,
    vector_of,
)

ROWS, VECTORS = 8, 2  # of a tile: 16 sums, which the registers hold together with what is added to them
PART = 512  # rows per partial sum of ∂W; fixed, so that results do not depend on threads
FEW = 4  # columns that are computed row by row
LEAST = 64  # rows below which torch is called


def _tile(rows: int, vectors: int) -> Any:
    """c_r = start + Σ_k a_rk b_k for some rows r of a and vectors of columns of b, with all sums in registers.

    Steps are the distances between the rows of a, b and c, and between the columns of a. start: a row that begins at
    its `place`, or None.
    """

    @generated
    def tile(  # type: ignore[no-untyped-def]
        typing, a, row_step, column_step, b, b_step, K, start, place, c, c_step
    ):
        vector = vector_of(a)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            a, row_step, column_step, b, b_step, K, start, place, c, c_step = args
            kind, index, align = context.get_value_type(vector), K.type, vector.dtype.bitwidth // 8
            places = [ir.Constant(index, vector.count * v) for v in range(vectors)]
            sums = [(r, v) for r in range(rows) for v in range(vectors)]

            def vectors_at(p: Any) -> list[Any]:
                return [builder.load(vector_at(builder, p, place, kind), align=align) for place in places]

            given = signature.args[6] != TYPES.none
            first = vectors_at(builder.gep(start, [place])) if given else [ir.Constant(kind, None)] * vectors
            offsets = [builder.mul(row_step, ir.Constant(index, r)) for r in range(rows)]
            before, loop = builder.block, builder.append_basic_block("products")
            after = builder.append_basic_block("store")
            zero = ir.Constant(index, 0)
            builder.cbranch(builder.icmp_signed(">", K, zero), loop, after)

            builder.position_at_end(loop)
            k, a_k, b_k = builder.phi(index), builder.phi(a.type), builder.phi(b.type)
            running = {place: builder.phi(kind) for place in sums}
            b_vectors, grown = vectors_at(b_k), {}
            for r in range(rows):
                factor = repeated(builder, kind, builder.load(builder.gep(a_k, [offsets[r]]), align=align))
                for v in range(vectors):
                    product = builder.fmul(factor, b_vectors[v], flags=("contract",))
                    grown[r, v] = builder.fadd(running[r, v], product, flags=("contract",))
            nexts = builder.add(k, ir.Constant(index, 1)), builder.gep(a_k, [column_step]), builder.gep(b_k, [b_step])
            builder.cbranch(builder.icmp_signed("<", nexts[0], K), loop, after)
            for phi, initial, following in zip((k, a_k, b_k), (zero, a, b), nexts, strict=True):
                phi.add_incoming(initial, before)
                phi.add_incoming(following, loop)

            builder.position_at_end(after)
            results = {place: builder.phi(kind) for place in sums}
            for r, v in sums:
                running[r, v].add_incoming(first[v], before)
                running[r, v].add_incoming(grown[r, v], loop)
                results[r, v].add_incoming(first[v], before)
                results[r, v].add_incoming(grown[r, v], loop)
            for r in range(rows):
                row = builder.gep(c, [builder.mul(c_step, ir.Constant(index, r))])
                for v, place in enumerate(places):
                    builder.store(results[r, v], vector_at(builder, row, place, kind), align=align)
            return context.get_dummy_value()

        size = TYPES.intp
        return TYPES.void(a, size, size, b, size, size, start, size, c, size), generate

    return tile


_tall_wide, _tall, _flat_wide, _flat = _tile(ROWS, VECTORS), _tile(ROWS, 1), _tile(1, VECTORS), _tile(1, 1)


@helper
def _multiply(begin, end, a, row_step, column_step, b, N, K, start, c):  # type: ignore[no-untyped-def]
    """c_i = start + Σ_k a_ik b_k for rows begin … end, all of N ≥ lanes numbers; what remains overlaps other tiles."""
    L, f = lanes(a), 0
    while f < N:
        if N - f >= VECTORS * L:
            i = begin
            while i + ROWS <= end:
                _tall_wide(at(a, i * row_step), row_step, column_step, at(b, f), N, K, start, f, at(c, i * N + f), N)
                i += ROWS
            while i < end:
                _flat_wide(at(a, i * row_step), row_step, column_step, at(b, f), N, K, start, f, at(c, i * N + f), N)
                i += 1
            f += VECTORS * L
        else:
            f = min(f, N - L)
            i = begin
            while i + ROWS <= end:
                _tall(at(a, i * row_step), row_step, column_step, at(b, f), N, K, start, f, at(c, i * N + f), N)
                i += ROWS
            while i < end:
                _flat(at(a, i * row_step), row_step, column_step, at(b, f), N, K, start, f, at(c, i * N + f), N)
                i += 1
            f += L


@Loop
def _multiply_rows(start, stop, x, b, bias, y):  # type: ignore[no-untyped-def]
    """y_i = Σ_k x_ik b_k + bias."""
    K, N = b.shape
    if bias.size:
        _multiply(start, stop, pointer(x), K, 1, pointer(b), N, K, pointer(bias), pointer(y))
    else:
        _multiply(start, stop, pointer(x), K, 1, pointer(b), N, K, None, pointer(y))


@Loop
def _multiply_parts(start, stop, g, x, parts):  # type: ignore[no-untyped-def]
    """Σ_i g_i x_iᵀ of each part of the rows."""
    (n, M), N = g.shape, x.shape[1]
    for p in range(start, stop):
        lo, hi = p * PART, min((p + 1) * PART, n)
        g_, x_, part = at(pointer(g), lo * M), at(pointer(x), lo * N), at(pointer(parts), p * M * N)
        _multiply(0, M, g_, 1, M, x_, N, hi - lo, None, part)


@Loop
def _project_rows(start, stop, x, columns, y):  # type: ignore[no-untyped-def]
    """y_ic = x_i · column_c."""
    (C, F), L, zero = columns.shape, lanes(pointer(x)), x.dtype.type(0)
    whole = F // L * L
    for i in range(start, stop):
        row = at(pointer(x), i * F)
        for c in range(C):
            w, rest = at(pointer(columns), c * F), zero
            for f in range(whole, F):
                rest += row[f] * w[f]
            if whole:
                a, f = times(load(row, 0), load(w, 0)), L
                while f < whole:
                    a = plus(a, times(load(row, f), load(w, f)))
                    f += L
                rest += total(a)
            y[i, c] = rest


def is_slow_in_torch() -> bool:
    """Whether this processor has vectors of 512 bits that MKL does not use."""
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512" and torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    return wide and binding.get_host_cpu_name().startswith("znver")


TILED = is_slow_in_torch()


def _fits(rows: int, columns: int, *tensors: Tensor) -> bool:
    """Whether tiles are faster than torch; tensors of other dtypes are for torch to refuse."""
    kinds = {t.dtype for t in tensors}
    lanes = 16 if kinds == {torch.float32} else 8
    return TILED and rows >= LEAST and columns >= lanes and kinds in ({torch.float32}, {torch.float64})


def multiply(x: Tensor, W: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + bias: x (N, in), W (out, in), bias (out,); returns (N, out).

    >>> multiply(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]])).tolist()
    [[11.0]]
    """
    (n, k), m = x.shape, W.size(0)
    if not _fits(n, m, x, W):
        return torch.mm(x, W.t()) if bias is None else torch.addmm(bias, x, W.t())
    y, b = fresh(n, m, like=x), fresh(0, like=x) if bias is None else array(bias)
    run_rows(_multiply_rows, n, n * k * m // 12, array(x), array(W.t()), b, y)
    return torch.from_numpy(y)


def multiply_backward(g: Tensor, W: Tensor) -> Tensor:
    """∂x = g W."""
    return multiply(g, W.t())


def multiply_across(g: Tensor, x: Tensor) -> Tensor:
    """∂W = gᵀ x, summed over the rows."""
    (n, m), k = g.shape, x.size(1)
    if k < m and not _fits(n, k, g, x):  # a few rows times many columns is faster than many rows times a few columns
        return multiply_across(x, g).t()
    if not _fits(n, k, g, x):
        return torch.mm(g.t(), x)
    parts = fresh(-(-n // PART), m, k, like=x)
    run_rows(_multiply_parts, len(parts), n * k * m // 12, array(g), array(x), parts)
    return torch.from_numpy(parts.sum(0) if len(parts) > 1 else parts[0])


def project_to_few(x: Tensor, U: Tensor) -> Tensor:
    """x U for a matrix U (F, C) of few columns."""
    (n, k), C = x.shape, U.size(1)
    if C > FEW or x.dtype != U.dtype:
        return torch.mm(x, U)
    y = fresh(n, C, like=x)
    run_rows(_project_rows, n, n * C * (k // 8 + 20), array(x), array(U.t()), y)
    return torch.from_numpy(y)


class Linear(torch.autograd.Function):
    """y = x Wᵀ + b."""

    @staticmethod
    @without_autocast
    def forward(ctx: Any, x: Tensor, W: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, W)
        return multiply(x, W, bias)

    @staticmethod
    @without_autocast
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """∂x, ∂W and ∂b."""
        first_derivatives_only()
        (x, W), g, (needs_x, needs_W, needs_b) = ctx.saved_tensors, grads[0].contiguous(), ctx.needs_input_grad
        return (
            multiply_backward(g, W) if needs_x else None,
            multiply_across(g, x) if needs_W else None,
            g.sum(0) if needs_b else None,
        )


def linear(x: Tensor, W: Tensor, bias: Tensor | None = None) -> Tensor:
    """A linear map: x (N, in), W (out, in), bias (out,); returns (N, out)."""
    if not _fits(x.size(0), W.size(0), x, W):
        return torch.nn.functional.linear(x, W, bias)
    y: Tensor = Linear.apply(x, W, bias)  # type: ignore[no-untyped-call]
    return y
