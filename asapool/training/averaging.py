"""The mean of the weights of the last epochs, which is often a better model than those of the last one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from asapool.training.state import Progress, snapshot


def average_weights(progress: Progress, model: nn.Module, epochs: int) -> None:
    """Take the weights of a finished epoch into the mean: m ← m + (w − m) / min(e, epochs), e counted from 1.

    Statistics of batch norms are averaged like weights; whole numbers are taken as they are.

    Args:
        progress: where the mean is kept; it has the history of the epochs before this one.
        model: the model after the epoch.
        epochs: about how many epochs count; 0 = no mean is kept.
    """
    if epochs == 0:
        return
    now, share = snapshot(model), 1 / min(progress.epoch + 1, epochs)
    for name, value in now.items():
        if value.is_floating_point() and name in progress.mean:
            now[name] = torch.lerp(progress.mean[name].to(value.device), value, share)
    progress.mean = now


@contextmanager
def averaged(progress: Progress, model: nn.Module) -> Iterator[None]:
    """Within it the model has the mean of the weights, if there is one."""
    if not progress.mean:
        yield
        return
    own = snapshot(model)
    model.load_state_dict(progress.mean)
    try:
        yield
    finally:
        model.load_state_dict(own)
