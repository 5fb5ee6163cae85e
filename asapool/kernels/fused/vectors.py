"""Pieces of rows as vectors, for loops that keep a sum in registers while they walk along the neighbours of a node.

The compiler vectorises a loop over one row, but then a sum of rows goes through memory after every neighbour, and rows
of 16 numbers, shorter than its unrolled loop, are not vectorised at all. Here a vector is 64 bytes of a row: 16 numbers
of float32, 8 of float64. Processors with shorter registers use several for it.

Loops read and write vectors through pointers, which have no reference count: one is updated whenever an array is passed
to a function, even to one that is inlined, and that costs more than a short row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.extending import intrinsic, models, register_model

from asapool.kernels.fused.compiled import helper

BYTES = 64


TYPES: Any = types  # its members are made at run time


def generated(function: Callable[..., Any]) -> Any:
    """An operation for loops that generates its own instructions."""
    return intrinsic(function)


class Vector(types.Type):
    """Numba's type of a vector of numbers."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.count = dtype, 8 * BYTES // dtype.bitwidth
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, of: Vector) -> None:
        number = manager.lookup(of.dtype).get_value_type()
        super().__init__(manager, of, ir.VectorType(number, of.count))


def vector_of(x: Any) -> Vector:
    if not isinstance(x, TYPES.CPointer) or not isinstance(x.dtype, TYPES.Float):
        raise TypingError(f"expected a pointer to float32 or float64, got {x}")
    return Vector(x.dtype)


@generated
def pointer(typing: Any, x: Any) -> Any:
    """Pointer to the first number of a contiguous array, which must outlive it."""
    if not isinstance(x, TYPES.Array) or x.layout != "C":
        raise TypingError(f"expected a contiguous array, got {x}")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return TYPES.CPointer(x.dtype)(x), generate


@generated
def at(typing: Any, x: Any, place: Any) -> Any:
    """Pointer to x[place]."""
    return x(x, TYPES.intp), lambda context, builder, signature, args: builder.gep(args[0], [args[1]])


def vector_at(builder: Any, x: Any, at: Any, vector: Any) -> Any:
    """Pointer to the vector that starts at x[at]."""
    return builder.bitcast(builder.gep(x, [at]), vector.as_pointer())


def repeated(builder: Any, vector: Any, number: Any) -> Any:
    places = ir.VectorType(ir.IntType(32), vector.count)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(single, single, ir.Constant(places, [0] * vector.count))


@generated
def load(typing: Any, x: Any, at: Any) -> Any:
    """The vector x[at : at + lanes]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (x, at), vector = args, context.get_value_type(signature.return_type)
        return builder.load(vector_at(builder, x, at, vector), align=signature.args[0].dtype.bitwidth // 8)

    return vector_of(x)(x, TYPES.intp), generate


@generated
def store(typing: Any, x: Any, at: Any, v: Any) -> Any:
    """x[at : at + lanes] = v."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, at, v = args
        builder.store(v, vector_at(builder, x, at, v.type), align=signature.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return TYPES.void(x, TYPES.intp, vector_of(x)), generate


@generated
def fill(typing: Any, x: Any, number: Any) -> Any:
    """A vector of equal numbers, in the dtype of what x points to."""
    vector = vector_of(x)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return repeated(builder, context.get_value_type(signature.return_type), args[1])

    return vector(x, vector.dtype), generate


def _combination(doc: str, build: Callable[..., Any]) -> Any:
    """An operation on two vectors."""

    def combine(typing: Any, u: Any, v: Any) -> Any:
        return v(v, v), lambda context, builder, signature, args: build(builder, *args)

    combine.__doc__ = doc
    return generated(combine)


plus = _combination("u + v.", lambda builder, u, v: builder.fadd(u, v, flags=("contract", "nsz")))
times = _combination("u v.", lambda builder, u, v: builder.fmul(u, v, flags=("contract", "nsz")))


def _larger(builder: Any, u: Any, v: Any) -> Any:
    wins = builder.or_(builder.fcmp_ordered(">", v, u), builder.fcmp_unordered("uno", v, v))
    return builder.select(wins, v, u)


larger = _combination("v where it is larger than u or NaN, u elsewhere.", _larger)


@generated
def choose(typing: Any, x: Any, u: Any, v: Any) -> Any:
    """u where x is above zero, v elsewhere."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, u, v = args
        return builder.select(builder.fcmp_ordered(">", x, ir.Constant(x.type, None)), u, v)

    return u(x, u, u), generate


@generated
def total(typing: Any, v: Any) -> Any:
    """The sum of a vector's numbers, by halves."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        [v] = args
        count = signature.args[0].count
        while count > 1:
            count //= 2
            places = ir.VectorType(ir.IntType(32), count)
            low, high = (ir.Constant(places, list(range(k, k + count))) for k in (0, count))
            v = builder.fadd(builder.shuffle_vector(v, v, low), builder.shuffle_vector(v, v, high))
        return builder.extract_element(v, ir.Constant(ir.IntType(32), 0))

    return v.dtype(v), generate


@generated
def lanes(typing: Any, x: Any) -> Any:
    """Numbers per vector."""
    count = vector_of(x).count
    return TYPES.intp(x), lambda context, builder, signature, args: context.get_constant(TYPES.intp, count)


@generated
def zero(typing: Any, x: Any) -> Any:
    """0 in the dtype of what x points to."""
    number = vector_of(x).dtype
    return number(x), lambda context, builder, signature, args: context.get_constant(number, 0.0)


@generated
def first_bit(typing: Any, word: Any) -> Any:
    """Position of the lowest set bit of a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return TYPES.int64(TYPES.uint64), generate


@helper
def scratch_rows(count, size, like):  # type: ignore[no-untyped-def]
    """`count` rows of `size` numbers in the dtype of an array; the first starts where a vector does."""
    room = np.empty(count * size + BYTES // like.itemsize, like.dtype)
    start = -room.ctypes.data % BYTES // like.itemsize
    return room[start : start + count * size].reshape(count, size)
