"""Whether a module may be replaced by a fused operation on its weights."""

from __future__ import annotations

from torch import nn
from torch.nn.modules import module as global_hooks

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(module: nn.Module | None) -> bool:
    """Whether a module has hooks, its own or global ones, so that it must be called as a module."""
    return module is not None and any(
        getattr(module, name) or getattr(global_hooks, f"_global{name}") for name in HOOKS
    )


def is_plain(module: nn.Module | None) -> bool:
    """Whether a linear map is a plain nn.Linear without hooks, so that its weights may be used directly."""
    return module is None or (type(module) is nn.Linear and not has_hooks(module))
