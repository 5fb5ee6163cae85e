"""One differentiable operation, two doors.

In eager mode a call goes through a torch.autograd.Function, which costs the least; under torch.compile and torch.export it
goes through the operation registered with torch.library under the same name. Both run the same forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Run = Callable[..., Any]


def register(name: str, run: Run, fake: Run) -> Run:
    """Register an operation without gradient; under torch.compile calls go through torch.library, else straight to `run`."""
    op = torch.library.custom_op(f"asapool::{name}", run, mutates_args=(), device_types="cpu")
    op.register_fake(fake)

    def call(*args: Any) -> Any:
        return op(*args) if torch.compiler.is_compiling() else run(*args)

    return call


def differentiable(
    name: str,
    *,
    forward: Run,
    fake: Run,
    backward: Run,
    backward_fake: Run,
    wrt: Sequence[int],
    saves: Callable[[Sequence[Any], Any], Sequence[Tensor | None]],
    options: Callable[[Sequence[Any]], Sequence[Any]] = lambda inputs: (),
) -> Run:
    """Register forward and backward as operations and tie them together.

    forward(*inputs) -> tensor or tuple; wrt: positions of the inputs that have gradients. backward(grad, *saved, *options,
    need) -> one gradient for each of wrt, an empty tensor where `need` (a list of bools, one for each of wrt) says no.
    Only the last output carries a gradient.
    """
    op = torch.library.custom_op(f"asapool::{name}", forward, mutates_args=(), device_types="cpu")
    op.register_fake(fake)
    back_op = torch.library.custom_op(f"asapool::{name}_backward", backward, mutates_args=(), device_types="cpu")
    back_op.register_fake(backward_fake)

    def keep(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        ctx.save_for_backward(*saves(inputs, output))
        ctx.options, ctx.length = options(inputs), len(inputs)

    def back(run: Run, ctx: Any, grads: Sequence[Any]) -> tuple[Tensor | None, ...]:
        need = [bool(ctx.needs_input_grad[i]) for i in wrt]
        result: list[Tensor | None] = [None] * ctx.length
        if any(need):
            found = run(grads[-1].contiguous(), *ctx.saved_tensors, *ctx.options, need)
            for i, wanted, gradient in zip(wrt, need, [found] if isinstance(found, Tensor) else found, strict=True):
                result[i] = gradient if wanted else None
        return tuple(result)

    op.register_autograd(lambda ctx, *grads: back(back_op, ctx, grads), setup_context=keep)

    class Eager(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            output = forward(*inputs)
            keep(ctx, inputs, output)
            if isinstance(output, tuple):
                ctx.mark_non_differentiable(*output[:-1])
            return output

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
            return back(backward, ctx, grads)

    Eager.__name__ = name

    def call(*args: Any) -> Any:
        return op(*args) if torch.compiler.is_compiling() else Eager.apply(*args)

    return call


def empty(like: Tensor) -> Tensor:
    """What stands for a gradient nobody asked for."""
    return like.new_empty(0)
