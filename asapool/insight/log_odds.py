"""The number that an explanation is about: the log odds of a class, and what a batch of changed graphs does to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from asapool.data.batch import Batch
from asapool.models import GraphClassifier


def log_odds(logits: Tensor, c: int) -> Tensor:
    """ln p_c/(1 − p_c) = z_c − ln Σ_{k≠c} e^{z_k}, which does not flatten out where a model is sure, as p does.

    logits (B, C); returns (B,). With a single class it is the logit itself.

    >>> log_odds(torch.tensor([[0.5, 2.0]]), 1)
    tensor([1.5000])
    """
    others = torch.cat([logits[:, :c], logits[:, c + 1 :]], dim=1)
    return logits[:, c] - others.logsumexp(dim=1) if others.size(1) else logits[:, c]


@contextmanager
def judging(model: GraphClassifier) -> Iterator[None]:
    """Without dropout, whatever the model was doing before; its parameters gather no gradients."""
    training = model.training
    asked = [(p, p.requires_grad) for p in model.parameters()]
    model.eval()
    for p, _ in asked:
        p.requires_grad_(False)
    try:
        yield
    finally:
        model.train(training)
        for p, wanted in asked:
            p.requires_grad_(wanted)


def answer(model: GraphClassifier, batch: Batch, x: Tensor | None = None) -> Tensor:
    """Logits (B, C) of a batch, with other node features if given."""
    logits: Tensor = model(batch.x if x is None else x, batch.ptr, batch.rowptr, batch.col, batch.weight)
    return logits
