"""ASAPClassifier and ASAPRegressor, estimators with scikit-learn's API: clone, search, cross-validate."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from asapool.data import GraphSet
from asapool.data.targets import Target
from asapool.errors import ConfigError, InputError
from asapool.estimator.inputs import check_meaning, hold_out_of, pack, weights_by_name, with_classes, with_values
from asapool.models import GraphModel, ModelConfig, checkpoint
from asapool.training.config import DEFAULT_METHOD, TrainConfig, preset
from asapool.training.embeddings import embed
from asapool.training.fitting import fit
from asapool.training.new_model import new_model
from asapool.training.predictions import predict
from asapool.training.settings import overlay
from asapool.training.tasks import task_of

GROUPS = {"model": "model_options", "train": "train_options"}  # model__conv is the entry conv of model_options


class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator whose X are graphs; subclasses define y."""

    task: str  # kind of the labels in X
    model_: GraphModel
    target_: Target

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
        early_stopping: int | None = None,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        verbose: int | bool = 0,
        model_options: Mapping[str, Any] | None = None,
        train_options: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.hidden = hidden
        self.levels = levels
        self.ratio = ratio
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.verbose = verbose
        self.model_options = model_options
        self.train_options = train_options
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that X is not a 2d array."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.non_deterministic = self.random_state is None
        return tags

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name; model__NAME and train__NAME set single entries of model_options and train_options."""
        rest = dict(params)
        for name in params:
            group, separator, setting = name.partition("__")
            if separator and group in GROUPS:
                options = dict(getattr(self, GROUPS[group]) or {})
                setattr(self, GROUPS[group], options | {setting: rest.pop(name)})
        return super().set_params(**rest)

    def _begin(self) -> int:
        """The seed of a fit; invalid settings are refused before anything large is read."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._configs(seed, None, "none")
        return seed

    def _read(self, X: Any, y: Any) -> GraphSet:
        return pack(X, labels="required" if y is None else "ignored", task=self.task)

    def _learn(self, graphs: GraphSet, sample_weight: Any, seed: int, class_weights: Any = "none") -> None:
        """Train on a set with its targets."""
        model, train = self._configs(seed, graphs, class_weights)
        parts = hold_out_of(graphs, self.validation_fraction, np.random.default_rng(seed))
        network = new_model(model, graphs, parts.train, train)
        if self.warm_start and hasattr(self, "model_"):
            try:
                network.load_state_dict(self.model_.state_dict())
            except RuntimeError as error:
                reason = str(error).splitlines()[-1].strip()
                raise ConfigError(f"warm_start needs the same settings, features and targets ({reason})") from None
        w = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        done = fit(network, graphs, parts, train, sample_weight=w, on_epoch=self._report if self.verbose else None)
        if done.diverged:
            text = f"{done.stopped}; the weights of epoch {done.best_epoch} are kept. Lower lr"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        self.model_, self.history_, self.best_epoch_ = network, done.history, done.best_epoch
        self.n_iter_ = len(done.history)
        self.target_ = network.target or graphs.target
        recipe = {name: value for name, value in graphs.recipe.items() if name != "task"}
        recipe["classes"] = list(graphs.class_names)
        if "target" in recipe:  # for tables: the column in which `asapool evaluate` finds the labels
            recipe["target"] = ", ".join(graphs.target.names)
        if graphs.target.noun == "tasks":
            recipe["task"] = graphs.target.to_dict()
        self.recipe_, self.n_features_in_ = recipe, graphs.num_features

    def _report(self, epoch: Any, progress: Any) -> None:
        score = "" if epoch.val_score is None else f", validation {epoch.val_score:.4f}"
        print(f"epoch {epoch.epoch}: loss {epoch.loss:.4f}{score}")

    def _answers(self, X: Any) -> npt.NDArray[np.float64]:
        check_is_fitted(self, "model_")
        return predict(self.model_, self._packed(X))

    def _packed(self, X: Any) -> GraphSet:
        """X as a set of graphs with the features used in training."""
        graphs = pack(X, labels="ignored", recipe=self.recipe_)
        who = type(self).__name__
        if graphs.num_features != self.n_features_in_:
            raise InputError(
                f"X has {graphs.num_features} node features, but {who} was fitted with {self.n_features_in_}"
            )
        check_meaning(graphs.recipe, self.recipe_, who)
        return graphs

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """The embedding of every graph, (G, W): the output of the encoder, before the head."""
        check_is_fitted(self, "model_")
        return embed(self.model_, self._packed(X))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file for `asapool predict` and asapool.load_model.

        Args:
            path: Name of the file, such as model.safetensors.
        """
        check_is_fitted(self, "model_")
        summary = {"best_epoch": self.best_epoch_, "epochs": self.n_iter_}
        checkpoint.save(path, self.model_, recipe=self.recipe_, summary=summary)

    def _configs(self, seed: int, graphs: GraphSet | None, class_weights: Any) -> tuple[ModelConfig, TrainConfig]:
        """The settings: the defaults for the method and the graphs, overridden by those given."""
        model = {name: getattr(self, name) for name in ("method", "hidden", "levels", "ratio", "dropout")}
        train = {name: getattr(self, name) for name in ("epochs", "batch_size", "lr", "early_stopping")}
        train |= {"class_weights": class_weights, "seed": seed}
        given: dict[str, Mapping[str, Any]] = {
            "model": model | dict(self.model_options or {}), "train": train | dict(self.train_options or {})
        }  # fmt: skip
        count, kind = (None, self.task) if graphs is None else (len(graphs), graphs.target.kind)
        tables = overlay(preset("", given["model"]["method"], count, kind, given), given)
        return ModelConfig.from_dict(tables["model"]), TrainConfig.from_dict(tables["train"])


class ASAPClassifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    """Classify graphs with ASAP pooling, or with any other method of asapool.

    X is a GraphSet, or a list, array or pandas column of NetworkX graphs, of PyG Data, of SMILES or of RDKit molecules.
    y are the classes (any labels), which may be left out if the graphs have them; several columns of 0, 1 and NaN
    (missing) are yes/no tasks.

    Args:
        method: one of `asapool methods`.
        hidden, levels, ratio, dropout: of the model; None = the default for the method and the number of graphs.
        epochs, batch_size, lr, early_stopping: of training; None as above.
        class_weight: None, "balanced", or a dict from class to weight.
        validation_fraction: share of the graphs used to choose the best epoch; 0 = train on all and keep the last
            epoch.
        warm_start: start from the weights of the last fit.
        verbose: print a line per epoch.
        model_options, train_options: other settings of asapool.models.ModelConfig and asapool.training.TrainConfig;
            set_params and searches can set single ones as model__NAME and train__NAME.
        random_state: an integer makes fits reproducible to the byte.

    After fit: classes_ (C,) (of yes/no tasks their numbers, (T,)), model_ (the torch module), target_, history_,
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
        class_weight: str | Mapping[Any, float] | None = None,
        early_stopping: int | None = None,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        verbose: int | bool = 0,
        model_options: Mapping[str, Any] | None = None,
        train_options: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            method, hidden=hidden, levels=levels, ratio=ratio, dropout=dropout, epochs=epochs, batch_size=batch_size,
            lr=lr, early_stopping=early_stopping, validation_fraction=validation_fraction, warm_start=warm_start,
            verbose=verbose, model_options=model_options, train_options=train_options, random_state=random_state,
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
            sample_weight: how much each graph counts, (G,).
        """
        if self.class_weight not in (None, "balanced") and not isinstance(self.class_weight, Mapping):
            raise ConfigError(f"class_weight must be None or 'balanced' or a dict, got {self.class_weight!r}")
        seed = self._begin()
        classes, graphs = with_classes(self._read(X, y), y)
        self._learn(graphs, sample_weight, seed, weights_by_name(self.class_weight, _classes_of(classes, graphs)))
        self.classes_ = classes
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
        epochs, batch_size, lr, early_stopping: of training; None as above.
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
            sample_weight: how much each graph counts, (G,).
        """
        seed = self._begin()
        self._learn(with_values(self._read(X, y), y), sample_weight, seed)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The values of every graph in their unit, (G,), or (G, T) for several tasks."""
        return task_of(self.target_).predicted(self._answers(X), self.target_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, without missing values; for several tasks the mean over them."""
        answers = self._answers(X)
        truth = np.asarray(y, np.float64).reshape(answers.shape)
        w: Any = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        value = task_of(self.target_).mean("r2", truth, answers, self.target_, w)
        return float("nan") if value is None else value
