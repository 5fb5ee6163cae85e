"""Dropout that trainings in several threads can repeat."""

from __future__ import annotations

from torch import Tensor, nn

from asapool.kernels.rng import dropout


class Dropout(nn.Dropout):
    """torch.nn.Dropout that draws from the generator of its training, see asapool.kernels.rng.

    Outside a training it draws from torch's global generator, as torch's layer does.
    """

    def forward(self, input: Tensor) -> Tensor:
        """x ⊙ m / (1 − p), m ~ Bernoulli(1 − p) while training, else x."""
        return dropout(input, self.p, self.training)
