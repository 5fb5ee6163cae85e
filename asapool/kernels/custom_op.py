"""Registers functions on tensors as custom ops, which are opaque to torch.compile and torch.export.

The steps that build a structure have outputs whose length depends on the data. Outside of torch.compile they are called
directly; inside, they are one opaque operation with a `fake` that describes the shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Run = Callable[..., Any]
Structure = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]  # rowptr, col, diag, rowptr_t, col_t, edge_t
STRUCTURE = ", ".join(["Tensor"] * 6)  # in a schema


def distinct(run: Run) -> Run:
    """The same function with outputs that share no memory, as a custom op must return."""

    def separate(*args: Any) -> Any:
        outputs = run(*args)
        if isinstance(outputs, Tensor):
            return outputs
        seen: set[int] = set()
        result = []
        for one in outputs:
            shared = one.numel() > 0 and one.data_ptr() in seen
            seen.add(one.data_ptr())
            result.append(one.clone() if shared else one)
        return tuple(result)

    return separate


def register(name: str, run: Run, fake: Run, *, inputs: str, outputs: str, device: str | None = "cpu") -> Run:
    """Register an operation on tensors without gradient; inputs and outputs as in a torch.library schema."""
    schema = f"({inputs}) -> {outputs}"
    op = torch.library.custom_op(f"asapool::{name}", distinct(run), mutates_args=(), device_types=device, schema=schema)
    op.register_fake(fake)

    def call(*args: Any) -> Any:
        return op(*args) if torch.compiler.is_compiling() else run(*args)

    return call


def fake_structure(nodes: int | torch.SymInt, like: Tensor) -> Structure:
    """Shapes of a structure whose number of entries depends on the data."""
    E, N = torch.library.get_ctx().new_dynamic_size(), nodes
    rowptr, col, diag, rowptr_t, col_t, edge_t = (
        like.new_empty(length, dtype=torch.int64) for length in (N + 1, E, N, N + 1, E, E)
    )
    return rowptr, col, diag, rowptr_t, col_t, edge_t
