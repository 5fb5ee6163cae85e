"""Adam and AdamW: a minimal wrapper around torch's fused kernel.

torch.optim.Adam(fused=True) calls the same kernel and gives bitwise identical numbers. But it loads torch._dynamo
first, which takes about as long as torch itself: a second or two before the first step of every process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # as torch.optim.Adam calls them
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


class Adam:
    """θ ← θ − lr m̂ / (√v̂ + ε), with m̂ and v̂ the bias-corrected running means of the gradient g and of g².

    The weight decay λ is part of the gradient, g + λθ, or separate from it (AdamW), θ ← (1 − lr λ) θ.

    Args:
        parameters: the weights to train.
        weight_decay: λ.
        decoupled: AdamW.

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> adam = Adam([w])
    >>> w.sum().backward()
    >>> adam.step(lr=0.1)
    >>> round(w.item(), 4)
    0.9
    """

    def __init__(self, parameters: Iterable[Tensor], *, weight_decay: float = 0.0, decoupled: bool = False) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay
        self.kernel: Any = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self.moments: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # by index in the list, from the first gradient on

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for weight in self.parameters:
            weight.grad = None

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Take one step; weights without a gradient do not change."""
        kinds: dict[torch.dtype, list[int]] = {}
        for number, weight in enumerate(self.parameters):
            if weight.grad is not None:
                kinds.setdefault(weight.dtype, []).append(number)
                if number not in self.moments:
                    step = torch.zeros((), dtype=torch.float32, device=weight.device)
                    self.moments[number] = step, torch.zeros_like(weight), torch.zeros_like(weight)
        for numbers in kinds.values():
            weights = [self.parameters[number] for number in numbers]
            steps, means, squares = (list(part) for part in zip(*(self.moments[n] for n in numbers), strict=True))
            torch._foreach_add_(steps, 1)
            self.kernel(
                weights, [weight.grad for weight in weights], means, squares, [], steps, lr=lr, beta1=BETA1,
                beta2=BETA2, weight_decay=self.weight_decay, eps=EPS, amsgrad=False, maximize=False,
            )  # fmt: skip

    def state(self) -> dict[str, Tensor]:
        """The moments by number of the weight and name, such as "0.exp_avg"."""
        return {
            f"{number}.{name}": value
            for number, moments in self.moments.items()
            for name, value in zip(MOMENTS, moments, strict=True)
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the moments returned by `state`; ValueError if they do not match the weights."""
        moments: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        for number in sorted({int(key.split(".")[0]) for key in state}):
            if number >= len(self.parameters):
                raise ValueError(f"there are {len(self.parameters)} weights, but moments of weight {number}")
            weight = self.parameters[number]
            step, mean, square = (state[f"{number}.{name}"].to(weight.device) for name in MOMENTS)
            if mean.shape != weight.shape or square.shape != weight.shape:
                raise ValueError(f"the moments of weight {number} have the shape {tuple(mean.shape)}")
            moments[number] = step, mean.to(weight.dtype), square.to(weight.dtype)
        self.moments = moments
