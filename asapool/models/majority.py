"""The trivial model: the class shares, or the mean values, of the training graphs for every graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from asapool.models.direct import DirectModel, Floats, Ints
from asapool.models.fitters import ClassFitter, fitter_of

if TYPE_CHECKING:
    from asapool.data import GraphSet


class Majority(DirectModel):
    """Answer with the most frequent class: p_c = Σ_{g: y_g = c} w_g / Σ_g w_g, the same for every graph.

    Measured values are answered with their mean, yes/no tasks with the share of yes.

    >>> from asapool.data import load
    >>> from asapool.models import ModelConfig, build
    >>> graphs = load("synthetic:cycles?graphs=4")
    >>> model = build(ModelConfig(method="majority"), graphs.num_features, 2)
    >>> model.fit_graphs(graphs, np.arange(4), np.arange(0), seed=0)
    >>> model.predict_graphs(graphs, np.array([0])).tolist()
    [[0.5, 0.5]]
    """

    def fit_graphs(self, graphs: GraphSet, train: Ints, val: Ints, seed: int, weight: Floats | None = None) -> None:
        """Count the classes, or take the means."""
        fitter = fitter_of(graphs.target)
        name = "share" if isinstance(fitter, ClassFitter) else "mean"
        self.set_arrays(**{name: fitter.constant(graphs.y[train], weight, self.num_classes)})

    def predict_graphs(self, graphs: GraphSet, indices: Ints) -> Floats:
        """The same answer, once per graph."""
        (name,) = self._buffers
        return np.repeat(self.array(name)[None], len(indices), axis=0)

    def forward(self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None) -> Tensor:
        """Logits log p_c, (B, C)."""
        if "share" not in self._buffers:
            return super().forward(x, ptr, rowptr, col, weight)
        share = self.get_buffer("share").clamp(min=torch.finfo(torch.float64).tiny)
        return share.log().expand(ptr.numel() - 1, -1)

    def check_arrays(self) -> None:
        """One share per class, which sum to 1; or one mean per task."""
        if set(self._buffers) not in ({"share"}, {"mean"}):
            raise ValueError(f"share or mean expected, got {', '.join(self._buffers)}")
        (name,) = self._buffers
        share = self.array(name)
        if share.dtype != np.float64 or share.shape != (self.num_classes,) or not np.isfinite(share).all():
            raise ValueError(f"{name} must be {self.num_classes} float64 numbers, got {share.dtype} of {share.shape}")
        if name == "share" and (not (share >= 0).all() or abs(share.sum() - 1) > 1e-9):
            raise ValueError("the shares of the classes must be at least 0 and sum to 1")
