"""Dropout from one draw of torch's generator; processes that share a batch draw the mask of the whole batch."""

from __future__ import annotations

import torch
from torch import Tensor

from asapool.kernels.backends import backend_for
from asapool.kernels.reference.dropout import seed_from
from asapool.kernels.rng import current_generator
from asapool.kernels.shards import current_shard, span


def draw_seed() -> Tensor:
    """The seed of a mask (1,), from one draw of torch's generator."""
    generator = current_generator()
    device = None if generator is None else generator.device
    return torch.randint(2**63 - 1, (1,), generator=generator, device=device)


def dropout_mask(entries: int, p: float, like: Tensor, *, backend: str = "auto") -> Tensor:
    """Dropout mask, 0 with probability p and else 1/(1 − p), from one draw of torch's generator."""
    seed = draw_seed()
    module, shard = backend_for(backend, like), current_shard()
    mask: Tensor
    if shard is None:
        mask = module.dropout_mask(seed, entries, p, like.detach())
        return mask
    first, _ = span(entries, shard)  # the entries of this process in the mask of the whole batch
    mask = module.dropout_mask(seed_from(seed, first), entries, p, like.detach())
    return mask


def dropout(x: Tensor, p: float, *, backend: str = "auto") -> Tensor:
    """x ⊙ mask, with a dropout mask of all entries of x."""
    return x * dropout_mask(x.numel(), p, x, backend=backend).view_as(x)
