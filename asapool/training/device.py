"""Device and precision of computation: CPU, CUDA or Apple GPU (mps); float32, bfloat16 or float16."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from asapool.data.batch import Batch
from asapool.errors import ConfigError, choose
from asapool.training.config import DEVICES


def resolve_device(name: str) -> torch.device:
    """The device of that name; "auto" is CUDA, else Apple's GPU, else the CPU.

    If there are several GPUs, the processes of this machine take them in turn, by LOCAL_RANK (see workers.py).

    >>> resolve_device("cpu")
    device(type='cpu')
    """
    choose("device", name, DEVICES)
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(k for k in ("cuda", "mps", "cpu") if present[k])
    if not present[name]:
        available = ", ".join(k for k, exists in present.items() if exists)
        raise ConfigError(
            f"the device {name!r} is not available; this machine and this torch have {available}. Use one of these"
        )
    if name == "cuda" and (count := torch.cuda.device_count()) > 1:
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % count)
    return torch.device(name)


def check_shared(device: torch.device, processes: int, gpus: bool = True) -> None:
    """Refuse processes that share every batch if each of them cannot have a GPU of its own on this machine."""
    if device.type == "mps":
        raise ConfigError("processes cannot share an Apple GPU. Leave out -j, or use --device cpu")
    if device.type != "cpu" and not gpus:
        raise ConfigError(
            "--engine ray shares the batches of one training run on CPUs only. Use torchrun, or --device cpu"
        )
    here = int(os.environ.get("LOCAL_WORLD_SIZE", processes))  # torchrun may have started some on other machines
    if device.type == "cuda" and here > (count := torch.cuda.device_count()):
        raise ConfigError(
            f"{here} processes need a GPU each, but this machine has {count}. Use fewer processes, or --device cpu"
        )


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


class LossScale:
    """The loss is multiplied by a factor before the backward pass, so that small float16 gradients do not become 0.

    A step whose gradients overflow is left out, and the factor is halved. Every epoch starts with the same factor, so a
    resumed training run continues with the same numbers. In the other precisions the factor is 1.

    >>> scale, w = LossScale("float16"), torch.nn.Parameter(torch.ones(1))
    >>> scale.backward((3 * w).sum())
    >>> w.grad.item(), scale.unscale([w]), w.grad.item()
    (3072.0, True, 3.0)
    >>> w.grad = torch.tensor([torch.inf])
    >>> scale.unscale([w]), scale.factor
    (False, 512.0)
    """

    def __init__(self, precision: str) -> None:
        self.factor = 1024.0 if precision == "float16" else 1.0

    def backward(self, loss: Tensor) -> None:
        """The gradients of the scaled loss."""
        (loss if self.factor == 1 else loss * self.factor).backward()  # type: ignore[no-untyped-call]

    def unscale(self, weights: Sequence[Tensor]) -> bool:
        """Divide the gradients by the factor; False, with half of the factor, if one of them is not finite."""
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        if self.factor == 1 or not gradients:
            return True
        if not all(bool(gradient.isfinite().all()) for gradient in gradients):
            self.factor /= 2
            return False
        for gradient in gradients:
            gradient.div_(self.factor)
        return True


def device_of(model: nn.Module) -> torch.device:
    """The device of a model's weights; the CPU for a model without weights."""
    weight = next(model.parameters(), None)
    return torch.device("cpu") if weight is None else weight.device


def on_device_of(model: nn.Module, batch: Batch) -> Batch:
    """The batch on the device of the model."""
    device = device_of(model)
    return batch if device.type == "cpu" else batch.to(device)
