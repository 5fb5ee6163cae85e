"""GraphEstimator, the common base of the estimators: settings, training, embeddings and saving."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from asapool.data import GraphSet
from asapool.data.targets import Target
from asapool.errors import ConfigError, InputError
from asapool.estimator.inputs import check_meaning, hold_out_of, pack
from asapool.models import GraphModel, ModelConfig, checkpoint, method
from asapool.models.batches import check_extras
from asapool.training.config import DEFAULT_METHOD, TrainConfig, preset
from asapool.training.embeddings import embed
from asapool.training.fitting import fit
from asapool.training.new_model import new_model
from asapool.training.predictions import predict
from asapool.training.settings import overlay
from asapool.training.trust import KEY, trust_of

GROUPS = {"model": "model_options", "train": "train_options"}  # model__conv is the entry conv of model_options
MODEL_SETTINGS = ("method", "hidden", "levels", "ratio", "dropout")
TRAIN_SETTINGS = ("epochs", "batch_size", "lr", "weight_decay", "early_stopping", "select_by", "loss")


class GraphEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator whose X are graphs; subclasses define y."""

    task: str  # kind of the labels in X
    model_: GraphModel
    target_: Target
    _width: int | None  # of the embeddings

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
        early_stopping: int | None = None,
        select_by: str | None = None,
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
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.select_by = select_by
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
        if graphs.descriptors is not None and method(self.method).trainer != "gradient":
            raise ConfigError(
                f"the method {self.method!r} does not use descriptors. Leave them out of X, or use another method, "
                f"such as {DEFAULT_METHOD!r}"
            )
        model, train = self._configs(seed, graphs, class_weights)
        parts = hold_out_of(graphs, self.validation_fraction, np.random.default_rng(seed))
        network = new_model(model, graphs, parts.train, train)
        warm = self.warm_start and hasattr(self, "model_")
        if warm:
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
        try:
            self._width = embed(network, graphs, [0]).shape[1]
        except ConfigError:  # the method is not a neural network
            self._width = None
        # after a warm start the model may have been trained on the validation graphs before
        self._trust = None if warm else trust_of(network, graphs, parts)

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
        check_extras(self.model_, graphs)
        return graphs

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """The embedding of every graph, (G, W): the output of the encoder, before the head."""
        check_is_fitted(self, "model_")
        return embed(self.model_, self._packed(X))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the columns of transform, (W,): asapclassifier0, asapclassifier1, …

        Args:
            input_features: ignored; pipelines pass it.
        """
        check_is_fitted(self, "model_")
        if self._width is None:
            raise ConfigError(f"the method {self.method!r} has no embeddings. Use 'asap+' or another network")
        return np.array([f"{type(self).__name__.lower()}{k}" for k in range(self._width)], dtype=object)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file for `asapool predict` and asapool.load_model.

        The file has uncertainty data unless the last fit was a warm start; `asapool predict --coverage` also needs
        validation graphs (`validation_fraction`).

        Args:
            path: Name of the file, such as model.safetensors.
        """
        check_is_fitted(self, "model_")
        summary = {"best_epoch": self.best_epoch_, "epochs": self.n_iter_}
        trust = getattr(self, "_trust", None)  # an estimator pickled by an older version has none
        extra = None if trust is None else {KEY: trust}
        checkpoint.save(path, self.model_, recipe=self.recipe_, summary=summary, extra=extra)

    def _configs(self, seed: int, graphs: GraphSet | None, class_weights: Any) -> tuple[ModelConfig, TrainConfig]:
        """The settings: the defaults for the method and the graphs, overridden by those given."""
        model = {name: getattr(self, name) for name in MODEL_SETTINGS}
        train = {name: getattr(self, name, None) for name in TRAIN_SETTINGS}  # a classifier has no loss
        for options, settings in (("model_options", model), ("train_options", train)):
            for name, value in (getattr(self, options) or {}).items():
                if name != "method" and settings.get(name) not in (None, value):
                    raise ConfigError(
                        f"{name} is given twice: {name}={settings[name]!r} and {options}={{{name!r}: {value!r}}}. "
                        "Give it once"
                    )
        train |= {"class_weights": class_weights, "seed": seed}
        given: dict[str, Mapping[str, Any]] = {
            "model": model | dict(self.model_options or {}), "train": train | dict(self.train_options or {})
        }  # fmt: skip
        count, kind = (None, self.task) if graphs is None else (len(graphs), graphs.target.kind)
        tables = overlay(preset("", given["model"]["method"], count, kind, given), given)
        return ModelConfig.from_dict(tables["model"]), TrainConfig.from_dict(tables["train"])
