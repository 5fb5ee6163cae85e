"""Device and precision of computation: CPU, CUDA or Apple GPU (mps); float32 or bfloat16."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from asapool.data.batch import Batch
from asapool.errors import ConfigError, choose
from asapool.training.config import DEVICES


def resolve_device(name: str) -> torch.device:
    """The device of that name; "auto" is CUDA, else Apple's GPU, else the CPU.

    >>> resolve_device("cpu")
    device(type='cpu')
    """
    choose("device", name, DEVICES)
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(k for k in ("cuda", "mps", "cpu") if present[k]))
    if not present[name]:
        available = ", ".join(k for k, exists in present.items() if exists)
        raise ConfigError(
            f"the device {name!r} is not available; this machine and this torch have {available}. Use one of these"
        )
    return torch.device(name)


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse a precision that this torch cannot compute on this device."""
    if precision == "float32":
        return
    try:
        with products_in(precision, device):
            torch.ones(64, 7, device=device) @ torch.ones(7, 8, device=device)
    except RuntimeError as error:
        raise ConfigError(
            f"train.precision: torch cannot multiply {precision} matrices on this {device.type} "
            f"({str(error).splitlines()[0][:100]}). Use train.precision = 'float32'"
        ) from None


def products_in(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """A context in which torch computes matrix products in this precision."""
    return nullcontext() if precision == "float32" else torch.autocast(device.type, dtype=getattr(torch, precision))


def device_of(model: nn.Module) -> torch.device:
    """The device of a model's weights; the CPU for a model without weights."""
    weight = next(model.parameters(), None)
    return torch.device("cpu") if weight is None else weight.device


def on_device_of(model: nn.Module, batch: Batch) -> Batch:
    """The batch on the device of the model."""
    device = device_of(model)
    return batch if device.type == "cpu" else batch.to(device)
