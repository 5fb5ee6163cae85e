"""The two paths of an operation: the eager path and the registered custom op.

In eager mode a call runs the loops through a torch.autograd.Function, with a pattern's cached arrays, which has the
least overhead. Under torch.compile and torch.export it calls the custom op registered with torch.library, where a
pattern is five tensors. Both run the same forward and backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asapool.errors import AsapoolError
from asapool.kernels.custom_op import Run, distinct
from asapool.kernels.fused.vectors import BYTES
from asapool.kernels.graph import Array, Rows

PATTERN_FIELDS = ("rowptr", "col", "rowptr_t", "col_t", "edge_t")


def _schema(patterns: int, inputs: str, outputs: str) -> str:
    named = [f"Tensor {part}_{k}" for k in range(patterns) for part in PATTERN_FIELDS]
    return f"({', '.join([*named, *([inputs] if inputs else [])])}) -> {outputs}"


def _library(name: str, run: Run, fake: Run, patterns: int, schema: str) -> Any:
    """The custom op; `run` gets Rows of arrays in place of five tensors, `fake` Rows of fake tensors."""

    def flat(*args: Any) -> Any:
        rows = [Rows(*(t.numpy() for t in args[5 * k : 5 * k + 5])) for k in range(patterns)]
        return run(*rows, *args[5 * patterns :])

    op = torch.library.custom_op(f"asapool::{name}", distinct(flat), mutates_args=(), device_types="cpu", schema=schema)

    def flat_fake(*args: Any) -> Any:
        rows = [Rows(*args[5 * k : 5 * k + 5]) for k in range(patterns)]
        return fake(*rows, *args[5 * patterns :])

    op.register_fake(flat_fake)
    return op


def differentiable(
    name: str,
    *,
    patterns: int,
    inputs: str,
    outputs: str = "Tensor",
    wrt: Sequence[str],
    saved: str,
    saves: Callable[[Sequence[Any], Any], Sequence[Any]],
    forward: Run,
    fake: Run,
    backward: Run,
    backward_fake: Run,
) -> Run:
    """An operation on patterns and tensors whose first output has gradients with respect to the inputs `wrt`.

    inputs, outputs, saved: as in a torch.library schema. saves(inputs, output) returns what `saved` describes, tensors
    before options. forward(*rows, *inputs); backward(*rows, gradient, *saved, need) -> one gradient for each of `wrt`,
    with arbitrary content if its need (bool) is False. The fakes get fake tensors in the rows.
    """
    names = [part.split()[-1] for part in inputs.split(", ")]
    places = [names.index(n) for n in wrt]
    kept = sum(part.startswith("Tensor") for part in saved.split(", "))
    op = _library(name, forward, fake, patterns, _schema(patterns, inputs, outputs))
    returns = "Tensor" if len(wrt) == 1 else f"({', '.join(['Tensor'] * len(wrt))})"
    backward_schema = _schema(patterns, f"Tensor gradient, {saved}, bool[] need", returns)
    backward_op = _library(f"{name}_backward", backward, backward_fake, patterns, backward_schema)

    def as_input_gradients(gradients: Any, need: Sequence[bool], offset: int) -> list[Tensor | None]:
        result: list[Tensor | None] = [None] * (offset + len(names))
        for place, needed, gradient in zip(places, need, [gradients] if len(places) == 1 else gradients, strict=True):
            if needed:
                result[offset + place] = gradient
        return result

    def setup(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        keep = saves(inputs[5 * patterns :], output)
        ctx.save_for_backward(*inputs[: 5 * patterns], *keep[:kept])
        ctx.options = keep[kept:]

    def library_backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        need = [bool(ctx.needs_input_grad[5 * patterns + i]) for i in places]
        tensors = ctx.saved_tensors
        flat = (*tensors[: 5 * patterns], grads[0].contiguous(), *tensors[5 * patterns :], *ctx.options)
        return tuple(as_input_gradients(backward_op(*flat, need), need, 5 * patterns))

    op.register_autograd(library_backward, setup_context=setup)

    class Eager(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, rows: tuple[Rows, ...], *inputs: Any) -> Any:
            output = forward(*rows, *inputs)
            keep = saves(inputs, output)
            ctx.rows, ctx.options = rows, keep[kept:]
            ctx.save_for_backward(*keep[:kept])
            if isinstance(output, tuple):
                ctx.mark_non_differentiable(*output[1:])
                ctx.set_materialize_grads(False)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
            first_derivatives_only()
            if grads[0] is None:
                return (None,) * (1 + len(names))
            need = [ctx.needs_input_grad[1 + i] for i in places]
            return tuple(
                as_input_gradients(
                    backward(*ctx.rows, grads[0].contiguous(), *ctx.saved_tensors, *ctx.options, need), need, 1
                )
            )

    Eager.__name__ = Eager.__qualname__ = name

    def call(*args: Any) -> Any:
        given, inputs = args[:patterns], args[patterns:]
        if torch.compiler.is_compiling():
            return op(*(t for pattern in given for t in pattern.tensors), *inputs)
        rows = tuple([pattern.rows for pattern in given])
        if torch.is_grad_enabled() and any(inputs[i] is not None and inputs[i].requires_grad for i in places):
            return Eager.apply(rows, *inputs)  # type: ignore[no-untyped-call]
        return forward(*rows, *inputs)  # needs no gradient

    return call


def first_derivatives_only() -> None:
    """Refuse a backward pass that is to be differentiated."""
    if torch.is_grad_enabled():
        raise AsapoolError(
            'asapool\'s operators have only first derivatives; leave out create_graph=True, or use backend="reference"'
        )


def without_autocast(method: Run) -> Run:
    """A method that runs outside of torch.autocast, in the dtype of its inputs."""

    @wraps(method)
    def run(*args: Any) -> Any:
        if not torch.is_autocast_enabled("cpu"):
            return method(*args)
        with torch.autocast("cpu", enabled=False):
            return method(*args)

    return run


def fresh(*shape: int, like: Tensor) -> Array:
    """An uninitialised array; faster to allocate than a tensor and its numpy view."""
    return _aligned(shape, np.float32 if like.dtype == torch.float32 else np.float64)


def fresh_like(a: Array) -> Array:
    """An uninitialised array with the same shape and dtype."""
    return _aligned(a.shape, a.dtype)


def _aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array whose rows start where vectors do, as those of torch's tensors; numpy's own start at 16 bytes.

    Otherwise every vector that is read or written lies on two lines of the cache. Columns are read number by number,
    and small arrays are in the cache anyway.
    """
    size = math.prod(shape)
    if size < 1024 or len(shape) < 2 or shape[-1] < 16:
        return np.empty(shape, dtype)
    room = np.empty(size + BYTES // 4, dtype)
    start = -room.__array_interface__["data"][0] % BYTES // room.itemsize
    return room[start : start + size].reshape(shape)


def empty(like: Tensor) -> Tensor:
    """Placeholder for a gradient that is not needed."""
    return like.new_empty(0)


def array(t: Tensor) -> Array:
    """A tensor as a contiguous array, detached."""
    a: Array = (t.detach() if t.requires_grad else t).contiguous().numpy()
    return a


def scalar(value: float, like: Tensor) -> Any:
    """A number in the dtype of the loop, which then computes in that dtype throughout."""
    return np.float32(value) if like.dtype == torch.float32 else np.float64(value)
