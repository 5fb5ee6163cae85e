"""ASAPClassifier and ASAPRegressor, estimators with scikit-learn's API: clone, search, cross-validate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score

from asapool.data import GraphSet
from asapool.errors import ConfigError
from asapool.estimator.base import GraphEstimator
from asapool.estimator.inputs import weights_by_name, with_classes, with_values
from asapool.training.config import DEFAULT_METHOD
from asapool.training.tasks import task_of


class ASAPClassifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    """Classify graphs with ASAP pooling, or with any other method of asapool.

    X is a GraphSet, or a list, array or pandas column of NetworkX graphs, of PyG Data, of SMILES or of RDKit molecules.
    y are the classes (any labels), which may be left out if the graphs have them; several columns of 0, 1 and NaN
    (missing) are yes/no tasks.

    Args:
        method: one of `asapool methods`.
        hidden, levels, ratio, dropout: of the model; None = the default for the method and the number of graphs.
        epochs, batch_size, lr, weight_decay, early_stopping: of training; None as above.
        select_by: the validation score by which the epoch is chosen, such as "accuracy", "roc_auc", "loss" or "last";
            None as above.
        class_weight: None, "balanced", or a dict from class to weight.
        validation_fraction: share of the graphs used to choose the best epoch; 0 = train on all and keep the last
            epoch.
        warm_start: start from the weights of the last fit.
        verbose: print a line per epoch.
        model_options, train_options: other settings of asapool.models.ModelConfig and asapool.training.TrainConfig;
            set_params and searches can set single ones as model__NAME and train__NAME.
        random_state: an integer makes fits reproducible to the byte.

    After fit: classes_ (C,) (of yes/no tasks a list of T arrays, [0, 1]), model_ (the torch module), target_, history_,
    n_iter_, best_epoch_, recipe_, n_features_in_.

    >>> from asapool import load
    >>> graphs = load("synthetic:cycles?graphs=20")
    >>> asap = ASAPClassifier(hidden=8, epochs=2, random_state=0).fit(graphs[:16])
    >>> asap.classes_.tolist(), asap.predict_proba(graphs[16:]).shape
    (['cycle', 'path'], (4, 2))
    """

    task = "classification"

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
        *,
        hidden: int | None = None,
        levels: int | None = None,
        ratio: float | int | tuple[float | int, ...] | None = None,
        dropout: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        early_stopping: int | None = None,
        select_by: str | None = None,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        verbose: int | bool = 0,
        model_options: Mapping[str, Any] | None = None,
        train_options: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            method, hidden=hidden, levels=levels, ratio=ratio, dropout=dropout, epochs=epochs, batch_size=batch_size,
            lr=lr, weight_decay=weight_decay, early_stopping=early_stopping, select_by=select_by,
            validation_fraction=validation_fraction, warm_start=warm_start, verbose=verbose,
            model_options=model_options, train_options=train_options, random_state=random_state,
        )  # fmt: skip
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        """Several yes/no tasks are possible."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> ASAPClassifier:
        """Fit the model to labelled graphs.

        Args:
            X: graphs.
            y: their classes, or 0, 1 and NaN for several tasks; None = the labels in X.
            sample_weight: how much each graph counts, (G,), also among the graphs that choose the epoch.
        """
        if self.class_weight not in (None, "balanced") and not isinstance(self.class_weight, Mapping):
            raise ConfigError(f"class_weight must be None or 'balanced' or a dict, got {self.class_weight!r}")
        seed = self._begin()
        classes, graphs = with_classes(self._read(X, y), y)
        self._learn(graphs, sample_weight, seed, weights_by_name(self.class_weight, _classes_of(classes, graphs)))
        tasks = graphs.target.noun == "tasks"
        # as scikit-learn has it for several outputs: its scorers take two numbers for the classes of a single one
        self.classes_ = [np.array([0, 1]) for _ in classes] if tasks else classes
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probability of every class, (G, C), columns in the order of classes_; or of yes for every task, (G, T)."""
        return self._answers(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of every graph, (G,); or 0 and 1 for several tasks, (G, T)."""
        p = self.predict_proba(X)
        if self.target_.noun == "tasks":
            return task_of(self.target_).predicted(p, self.target_)
        answer: npt.NDArray[Any] = self.classes_[p.argmax(axis=1)]
        return answer

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, the share of graphs whose class is predicted correctly.

        For several yes/no tasks this is the share of graphs of which all tasks are predicted correctly, as in
        scikit-learn; missing values (NaN) are not counted, nor are graphs without any value.
        """
        answers = self.predict(X)
        if self.target_.noun != "tasks":
            return float(accuracy_score(y, answers, sample_weight=sample_weight))
        truth = np.asarray(y, np.float64).reshape(answers.shape)
        known, w = ~np.isnan(truth), np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight)
        rows = known.any(axis=1) & (w > 0)
        right = ((truth == answers) | ~known).all(axis=1)
        return float(np.average(right[rows], weights=w[rows])) if rows.any() else float("nan")


def _classes_of(classes: npt.NDArray[Any], graphs: GraphSet) -> npt.NDArray[Any]:
    """The classes that class_weight may name: 0 and 1 for yes/no tasks."""
    return np.array([0, 1]) if graphs.target.noun == "tasks" else classes


class ASAPRegressor(RegressorMixin, GraphEstimator):  # type: ignore[misc]
    """Predict measured values of graphs with ASAP pooling, or with any other method of asapool.

    X is a GraphSet, or a list, array or pandas column of NetworkX graphs, of PyG Data, of SMILES or of RDKit molecules.
    y are numbers, (G,), or, for several tasks, (G, T) with NaN for missing values; it may be left out if the graphs
    have measured values. They are standardised internally, and predictions are in their unit.

    Args:
        method: one of `asapool methods`.
        hidden, levels, ratio, dropout: of the model; None = the default for the method and the number of graphs.
        epochs, batch_size, lr, weight_decay, early_stopping: of training; None as above.
        select_by: the validation score by which the epoch is chosen, such as "rmse", "mae", "loss" or "last"; None as
            above.
        loss: "squared", or "huber", which is less sensitive to large errors; None as above.
        validation_fraction: share of the graphs used to choose the best epoch; 0 = train on all and keep the last
            epoch.
        warm_start: start from the weights of the last fit.
        verbose: print a line per epoch.
        model_options, train_options: other settings of asapool.models.ModelConfig and asapool.training.TrainConfig;
            set_params and searches can set single ones as model__NAME and train__NAME.
        random_state: an integer makes fits reproducible to the byte.

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

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
        *,
        hidden: int | None = None,
        levels: int | None = None,
        ratio: float | int | tuple[float | int, ...] | None = None,
        dropout: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        loss: str | None = None,
        early_stopping: int | None = None,
        select_by: str | None = None,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        verbose: int | bool = 0,
        model_options: Mapping[str, Any] | None = None,
        train_options: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            method, hidden=hidden, levels=levels, ratio=ratio, dropout=dropout, epochs=epochs, batch_size=batch_size,
            lr=lr, weight_decay=weight_decay, early_stopping=early_stopping, select_by=select_by,
            validation_fraction=validation_fraction, warm_start=warm_start, verbose=verbose,
            model_options=model_options, train_options=train_options, random_state=random_state,
        )  # fmt: skip
        self.loss = loss

    def __sklearn_tags__(self) -> Any:
        """Several tasks are possible."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> ASAPRegressor:
        """Fit the model to graphs with measured values.

        Args:
            X: graphs.
            y: their values, (G,) or (G, T) with NaN for missing values; None = the values in X.
            sample_weight: how much each graph counts, (G,), also among the graphs that choose the epoch.
        """
        seed = self._begin()
        self._learn(with_values(self._read(X, y), y), sample_weight, seed)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The values of every graph in their unit, (G,), or (G, T) for several tasks."""
        answers = self._answers(X)
        return task_of(self.target_).predicted(answers, self.target_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, without missing values; for several tasks the mean over them."""
        answers = self._answers(X)
        truth = np.asarray(y, np.float64).reshape(answers.shape)
        w: Any = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        value = task_of(self.target_).mean("r2", truth, answers, self.target_, w)
        return float("nan") if value is None else value
