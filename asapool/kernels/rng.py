"""Draws random numbers from a given generator instead of torch's global one, per thread.

Dropout layers of torch draw from the global generator, which all threads share, so training runs in threads would
affect each other. Inside `drawing_from(generator)` the layers of asapool draw from that generator, in this thread only,
and get the numbers that the global one would have given for the same seed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from asapool.kernels.shards import current_shard, span

_local = threading.local()


def current_generator() -> torch.Generator | None:
    """The generator of this thread; None = torch's global one."""
    if torch.compiler.is_compiling():  # compiled code cannot use a generator object
        return None
    return getattr(_local, "generator", None)


@contextmanager
def drawing_from(generator: torch.Generator, *, all_functions: bool = False) -> Iterator[None]:
    """Draw from this generator in the current thread, inside a with block.

    Args:
        generator: a CPU generator; its state advances as numbers are drawn.
        all_functions: redirect torch's own functions too (initialisation, torch.nn.Dropout, torch.rand). Each call of
            torch then costs a little more, so training with asapool's layers does not use it.

    >>> generator = torch.Generator().manual_seed(0)
    >>> with drawing_from(generator):
    ...     dropped = dropout(torch.ones(4), 0.5)
    >>> _ = torch.manual_seed(0)
    >>> torch.equal(dropped, functional.dropout(torch.ones(4), 0.5))
    True
    """
    before = getattr(_local, "generator", None)
    _local.generator = generator
    try:
        if all_functions:
            with _Redirect(generator):
                yield
        else:
            yield
    finally:
        _local.generator = before


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """torch.nn.functional.dropout, drawn from this thread's generator: x ⊙ m / (1 − p), m ~ Bernoulli(1 − p)."""
    generator = current_generator()
    if generator is None or not training or p == 0:
        return functional.dropout(x, p, training)
    shard = current_shard()
    if shard is None:
        return x * torch.empty_like(x).bernoulli_(1 - p, generator=generator).div_(1 - p)
    first, total = span(x.size(0), shard)  # the mask of the whole batch, of which this process has some rows
    mask = x.new_empty(total, *x.shape[1:]).bernoulli_(1 - p, generator=generator).div_(1 - p)
    return x * mask[first : first + x.size(0)]


# torch's functions that draw and take a generator
_DRAWS: frozenset[Callable[..., Any]] = frozenset(
    [getattr(Tensor, name) for name in ("uniform_", "normal_", "bernoulli_", "exponential_", "random_", "geometric_")]
    + [getattr(Tensor, name) for name in ("bernoulli", "multinomial", "cauchy_", "log_normal_")]
    + [getattr(torch, name) for name in ("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial")]
)


class _Redirect(TorchFunctionMode):
    """Adds the generator to every call of torch that draws random numbers."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func is functional.dropout:
            return _redirected_dropout(*args, **given)
        if func in _DRAWS or "generator" in given:  # functions of torch.nn.init pass theirs by name
            given["generator"] = given.get("generator") or self.generator
        return func(*args, **given)


def _redirected_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return dropout(input, p, training)
