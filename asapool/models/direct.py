"""Models that are fitted directly, without gradients: their base class, and the majority baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from asapool.errors import ConfigError
from asapool.models.classifier import GraphModel
from asapool.models.fitters import ClassFitter, fitter_of

if TYPE_CHECKING:
    from asapool.data import GraphSet


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class DirectModel(GraphModel):
    """A model whose whole state is a few named arrays, which `fit_graphs` computes and the checkpoint stores unchanged.

    A subclass implements fit_graphs (which ends with `set_arrays`), predict_graphs and check_arrays. The arrays are
    torch buffers of any dtype and size, so predictions are the same after loading.
    """

    def fit_graphs(self, graphs: GraphSet, train: Ints, val: Ints, seed: int, weight: Floats | None = None) -> None:
        """Learn from graphs.

        Args:
            graphs: the whole set.
            train: indices of the graphs to learn from.
            val: indices of the graphs for choosing settings; may be empty.
            seed: the only source of randomness.
            weight: weight of each training graph, (len(train),); None = all equal.
        """
        raise NotImplementedError

    def predict_graphs(self, graphs: GraphSet, indices: Ints) -> Floats:
        """Probability of every class, (len(indices), C), rows in the order of the indices."""
        raise NotImplementedError

    def check_arrays(self) -> None:
        """Raise a ValueError if the arrays are not valid for this model; called after fitting and loading."""

    def forward(self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None) -> Tensor:
        """Raise an error, unless the subclass can predict from a batch."""
        raise ConfigError(
            f"the method {self.config.method!r} predicts from a GraphSet and not from a batch of tensors. "
            "Use asapool.training.predict"
        )

    @property
    def fitted(self) -> bool:
        """Whether there are arrays to predict with."""
        return bool(self._buffers)

    def set_arrays(self, **arrays: npt.NDArray[Any] | Tensor) -> None:
        """Make these arrays the state of the model."""
        self._buffers.clear()
        for name, value in arrays.items():
            self.register_buffer(name, torch.as_tensor(value).detach().clone().contiguous())
        self.check_arrays()

    def array(self, name: str) -> npt.NDArray[Any]:
        """One of the arrays, as numpy."""
        value: npt.NDArray[Any] = self.get_buffer(name).numpy()
        return value

    def _load_from_state_dict(self, state_dict: Mapping[str, Tensor], prefix: str, *args: Any) -> None:
        # the sizes depend on the training data, so they come from the file and not from the config
        arrays = {name.removeprefix(prefix): value for name, value in state_dict.items() if name.startswith(prefix)}
        self.set_arrays(**arrays)


class Majority(DirectModel):
    """Predict the class frequencies: p_c = Σ_{g: y_g = c} w_g / Σ_g w_g, the same for every graph.

    For measured values it predicts the mean, for yes/no tasks the fraction of yes.

    >>> from asapool.data import load
    >>> from asapool.models import ModelConfig, build
    >>> graphs = load("synthetic:cycles?graphs=4")
    >>> model = build(ModelConfig(method="majority"), graphs.num_features, 2)
    >>> model.fit_graphs(graphs, np.arange(4), np.arange(0), seed=0)
    >>> model.predict_graphs(graphs, np.array([0])).tolist()
    [[0.5, 0.5]]
    """

    def fit_graphs(self, graphs: GraphSet, train: Ints, val: Ints, seed: int, weight: Floats | None = None) -> None:
        """Compute the class frequencies, or the means."""
        fitter = fitter_of(graphs.target)
        name = "share" if isinstance(fitter, ClassFitter) else "mean"
        self.set_arrays(**{name: fitter.constant(graphs.y[train], weight, self.num_classes)})

    def predict_graphs(self, graphs: GraphSet, indices: Ints) -> Floats:
        """The same prediction for every graph."""
        (name,) = self._buffers
        return np.repeat(self.array(name)[None], len(indices), axis=0)

    def forward(self, x: Tensor, ptr: Tensor, rowptr: Tensor, col: Tensor, weight: Tensor | None = None) -> Tensor:
        """Logits log p_c, (B, C)."""
        if "share" not in self._buffers:
            return super().forward(x, ptr, rowptr, col, weight)
        share = self.get_buffer("share").clamp(min=torch.finfo(torch.float64).tiny)
        return share.log().expand(ptr.numel() - 1, -1)

    def check_arrays(self) -> None:
        """Check the array: one share per class, which sum to 1, or one mean per task."""
        if set(self._buffers) not in ({"share"}, {"mean"}):
            raise ValueError(f"expected share or mean, got {', '.join(self._buffers)}")
        (name,) = self._buffers
        values = self.array(name)
        if values.dtype != np.float64 or values.shape != (self.num_classes,) or not np.isfinite(values).all():
            raise ValueError(f"{name} must be {self.num_classes} float64 numbers, got {values.dtype} of {values.shape}")
        if name == "share" and (not (values >= 0).all() or abs(values.sum() - 1) > 1e-9):
            raise ValueError("the shares of the classes must be at least 0 and sum to 1")
