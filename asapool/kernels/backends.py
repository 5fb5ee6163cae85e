"""Chooses the backend: `reference`, `fused` or `dense`."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from asapool.errors import ConfigError, choose
from asapool.kernels import dense, reference
from asapool.kernels.dense.graph import DenseGraph, DensePattern, Padding

BACKENDS = ("auto", "reference", "fused")
FUSED = (torch.float32, torch.float64, torch.int64)  # dtypes that the compiled loops support


def backend_for(backend: str, *tensors: Tensor | None, on: object = None) -> ModuleType:
    """The module of the backend: `dense` if `on` belongs to a padded batch, `fused` for tensors on the CPU.

    on: the structure that the step works on, or node features, which are (B, N, F) in a padded batch. `fused` supports
    float32 and float64 (and indices); everything else goes to `reference`.
    """
    if is_padded(on):
        return dense
    if backend == "reference":
        return reference
    for t in tensors:
        if t is not None and not (t.is_cpu and t.dtype in FUSED):
            if choose("backend", backend, BACKENDS) == "auto":
                return reference
            raise ConfigError(
                f'backend="fused" takes float32 or float64 on the CPU, got {t.dtype} on {t.device}; use backend="auto"'
            )
    from asapool.kernels import fused  # imports numba, so not at the top

    return fused


def is_padded(on: object) -> bool:
    """Whether a structure or features (B, N, F) belong to a padded batch."""
    return isinstance(on, (DensePattern, Padding, DenseGraph)) or (isinstance(on, Tensor) and on.dim() == 3)


def fused_layers(backend: str, *tensors: Tensor | None) -> ModuleType | None:
    """The module with whole layers as single operations: `fused`, or None if it does not apply."""
    if torch.compiler.is_compiling() or any(map(is_padded, tensors)):
        return None
    chosen = backend_for(backend, *tensors)
    return None if chosen is reference else chosen
