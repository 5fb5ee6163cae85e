"""ASAPRegressor: measured values of graphs, as scikit-learn's regressors predict them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from asapool.estimator.base import GraphEstimator
from asapool.estimator.labels import with_values
from asapool.training.tasks import task_of


class ASAPRegressor(RegressorMixin, GraphEstimator):  # type: ignore[misc]
    """Predict measured values of graphs with ASAP pooling, or with any other method of asapool.

    X is a GraphSet, or a list, array or pandas column of NetworkX graphs, of PyG Data, of SMILES or of RDKit molecules.
    y are numbers, (G,), or of several tasks (G, T) with NaN where missing; it may be left out where the graphs carry
    measured values. They are scaled to mean 0 and deviation 1 inside, and predictions are in their unit.

    Args:
        method: one of `asapool methods`.
        hidden, levels, ratio, dropout: of the model; None = what follows from the method and the number of graphs.
        epochs, batch_size, lr, early_stopping: of the training; None as above.
        validation_fraction: share of the graphs by which the best epoch is chosen; 0 = train on all and keep the last
            epoch.
        warm_start: begin with the weights of the last fit.
        verbose: print a line per epoch.
        model_options, train_options: further settings of asapool.models.ModelConfig and asapool.training.TrainConfig;
            set_params and searches reach single ones as model__NAME and train__NAME.
        random_state: a whole number makes fits repeatable to the byte.

    After fit: model_ (the torch module), target_ (with the scale), history_, n_iter_, best_epoch_, recipe_,
    n_features_in_.

    >>> from asapool import load
    >>> graphs = load("synthetic:cycles?graphs=20")
    >>> sizes = np.diff(graphs.ptr)
    >>> asap = ASAPRegressor(hidden=8, epochs=2, random_state=0).fit(graphs[:16], sizes[:16])
    >>> asap.predict(graphs[16:]).shape
    (4,)
    """

    task = "regression"

    def __sklearn_tags__(self) -> Any:
        """Several tasks are possible."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> ASAPRegressor:
        """Learn from graphs with measured values.

        Args:
            X: graphs.
            y: their values, (G,) or (G, T) with NaN where missing; None = what the graphs carry.
            sample_weight: how much each graph counts, (G,).
        """
        seed = self._begin()
        self._learn(with_values(self._read(X, y), y), sample_weight, seed)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The values of every graph in their unit, (G,), or (G, T) of several tasks."""
        return task_of(self.target_).predicted(self._answers(X), self.target_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions; of several tasks the mean over them, without the values that are missing."""
        answers = self._answers(X)
        truth = np.asarray(y, np.float64).reshape(answers.shape)
        w: Any = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        value = task_of(self.target_).mean("r2", truth, answers, self.target_, w)
        return float("nan") if value is None else value
