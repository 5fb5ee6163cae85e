"""Training losses: cross entropy of classes, and masked losses of several tasks with missing entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

Ints = npt.NDArray[np.int64]
Each = Callable[[Tensor, Tensor], Tensor]  # outputs (B, T), targets (B, T) → loss of every entry (B, T)


class Loss(Protocol):
    """The loss of a batch, a scalar."""

    @property
    def graphs(self) -> Tensor | None:
        """The weight of every graph of the set, (G,); None = all the same."""

    def __call__(self, logits: Tensor, y: Tensor, indices: Ints) -> Tensor: ...

    def plain(self) -> Loss:
        """The same without label smoothing, which is for training only."""

    def size(self, indices: Ints) -> float:
        """How much a part counts in a mean over parts."""


class CrossEntropy(NamedTuple):
    """Weighted mean cross entropy: Σ_b w_b c_{y_b} CE_b / Σ_b w_b c_{y_b}, c the class weights, w the graph weights."""

    classes: Tensor | None  # (C,)
    graphs: Tensor | None  # (G,) of the whole set
    smoothing: float = 0.0  # share of the target that is spread evenly over all classes

    def __call__(self, logits: Tensor, y: Tensor, indices: Ints) -> Tensor:
        if self.graphs is None:
            return functional.cross_entropy(logits, y, weight=self.classes, label_smoothing=self.smoothing)
        w = self.graphs[torch.from_numpy(indices)]
        total = w if self.classes is None else w * self.classes[y]
        each = functional.cross_entropy(
            logits, y, weight=self.classes, reduction="none", label_smoothing=self.smoothing
        )
        return (w * each).sum() / total.sum()

    def plain(self) -> CrossEntropy:
        """Without label smoothing."""
        return self._replace(smoothing=0.0)

    def size(self, indices: Ints) -> float:
        """The number of graphs, or the sum of their weights."""
        return len(indices) if self.graphs is None else float(self.graphs[torch.from_numpy(indices.copy())].sum())


class MaskedLoss(NamedTuple):
    """Weighted mean over the entries: Σ_bt w_b v_bt ℓ(z_bt, y_bt) / Σ_bt w_b v_bt, v = 0 for missing entries."""

    each: Each  # ℓ
    y: Tensor  # (G, T) of the whole set, scaled; any number where missing
    entries: Tensor  # (G, T) v, the weight of every entry, 0 where missing
    graphs: Tensor | None  # (G,) w
    smoothing: float = 0.0  # share of a yes/no that is spread evenly over both

    def __call__(self, logits: Tensor, y: Tensor, indices: Ints) -> Tensor:
        v, y = self._weights(indices), self.y[torch.from_numpy(indices.copy())]
        if self.smoothing:
            y = y * (1 - self.smoothing) + self.smoothing / 2
        return (v * self.each(logits, y)).sum() / v.sum()

    def plain(self) -> MaskedLoss:
        """Without label smoothing."""
        return self._replace(smoothing=0.0)

    def size(self, indices: Ints) -> float:
        """The sum of the weights of the entries."""
        return float(self._weights(indices).sum())

    def _weights(self, indices: Ints) -> Tensor:
        """w_b v_bt of some graphs."""
        rows = torch.from_numpy(indices.copy())  # those of a split are read-only
        return self.entries[rows] if self.graphs is None else self.entries[rows] * self.graphs[rows, None]


def binary_cross_entropy(z: Tensor, y: Tensor) -> Tensor:
    """−y ln σ(z) − (1 − y) ln(1 − σ(z)) of every entry."""
    return functional.binary_cross_entropy_with_logits(z, y, reduction="none")


def squared_error(z: Tensor, y: Tensor) -> Tensor:
    """(z − y)² of every entry."""
    return (z - y) ** 2


def huber(z: Tensor, y: Tensor) -> Tensor:
    """e²/2 where |e| ≤ 1, else |e| − 1/2, with e = z − y, of every entry."""
    return functional.huber_loss(z, y, reduction="none")


def class_weights(y: Ints, C: int) -> Tensor:
    """Weights with which every class counts the same: w_c = G / (C · G_c), 0 for a class without graphs,
    where C is the number of classes that have graphs.

    >>> class_weights(np.array([0, 0, 0, 1]), 2)
    tensor([0.6667, 2.0000])
    """
    count = np.bincount(y, minlength=C)
    w = np.divide(len(y), np.count_nonzero(count) * count, out=np.zeros(C), where=count > 0)
    return torch.from_numpy(w.astype(np.float32))
