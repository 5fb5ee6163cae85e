"""Whether a module may be replaced by a fused operation on its weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

from asapool import kernels

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(module: nn.Module | None) -> bool:
    """Whether a module has hooks, its own or global ones, so that it must be called as a module."""
    return module is not None and any(
        getattr(module, name) or getattr(global_hooks, f"_global{name}") for name in HOOKS
    )


def is_plain(module: nn.Module | None) -> bool:
    """Whether a linear map is a plain nn.Linear without hooks, so that its weights may be used directly."""
    return module is None or (type(module) is nn.Linear and not has_hooks(module))


def apply_linear(linear: nn.Module, x: Tensor, backend: str) -> Tensor:
    """linear(x), in the fused product where that is the same."""
    if isinstance(linear, nn.Linear) and is_plain(linear) and not torch.is_autocast_enabled("cpu"):
        fused = kernels.fused_layers(backend, x, linear.weight)
        if fused is not None and x.dim() == 2:
            y: Tensor = fused.linear(x, linear.weight, linear.bias)
            return y
    out: Tensor = linear(x)
    return out
