"""What ASAPClassifier and ASAPRegressor share: settings, fitting, vectors, files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from asapool.data import GraphSet
from asapool.data.targets import Target
from asapool.errors import ConfigError, InputError
from asapool.estimator.inputs import check_meaning, hold_out_of, pack
from asapool.models import GraphModel, ModelConfig, checkpoint
from asapool.training.config import DEFAULT_METHOD, TrainConfig, preset
from asapool.training.embeddings import embed
from asapool.training.fitting import fit
from asapool.training.new_model import new_model
from asapool.training.predictions import predict
from asapool.training.settings import overlay

GROUPS = {"model": "model_options", "train": "train_options"}  # model__conv is the entry conv of model_options


class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator of scikit-learn whose X holds graphs; subclasses say what y is."""

    task: str  # kind of the labels that X carries
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
        """Graphs are no table: say so to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.non_deterministic = self.random_state is None
        return tags

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name; model__NAME and train__NAME set single entries of model_options and train_options."""
        rest = dict(params)
        for name in params:
            group, found, setting = name.partition("__")
            if found and group in GROUPS:
                options = dict(getattr(self, GROUPS[group]) or {})
                setattr(self, GROUPS[group], options | {setting: rest.pop(name)})
        return super().set_params(**rest)

    def _begin(self) -> int:
        """The seed of a fit; mistakes in the settings are refused before anything large is read."""
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
                raise ConfigError(f"warm_start needs the settings, features and targets of before ({reason})") from None
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
        if "target" in recipe:  # of tables: the column by which `asapool evaluate` finds the values again
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
        """X as a set of graphs with the features of the training."""
        graphs = pack(X, labels="ignored", recipe=self.recipe_)
        who = type(self).__name__
        if graphs.num_features != self.n_features_in_:
            raise InputError(
                f"X has {graphs.num_features} node features, but {who} was fitted with {self.n_features_in_}"
            )
        check_meaning(graphs.recipe, self.recipe_, who)
        return graphs

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """The vector of every graph, (G, W): what the network makes of it before its last layers."""
        check_is_fitted(self, "model_")
        return embed(self.model_, self._packed(X))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model as a file that `asapool predict` and asapool.load_model take.

        Args:
            path: Name of the file, such as model.safetensors.
        """
        check_is_fitted(self, "model_")
        summary = {"best_epoch": self.best_epoch_, "epochs": self.n_iter_}
        checkpoint.save(path, self.model_, recipe=self.recipe_, summary=summary)

    def _configs(self, seed: int, graphs: GraphSet | None, class_weights: Any) -> tuple[ModelConfig, TrainConfig]:
        """The settings: those given, over those that follow from the method and the graphs."""
        model = {name: getattr(self, name) for name in ("method", "hidden", "levels", "ratio", "dropout")}
        train = {name: getattr(self, name) for name in ("epochs", "batch_size", "lr", "early_stopping")}
        train |= {"class_weights": class_weights, "seed": seed}
        given: dict[str, Mapping[str, Any]] = {
            "model": model | dict(self.model_options or {}), "train": train | dict(self.train_options or {})
        }  # fmt: skip
        count, kind = (None, self.task) if graphs is None else (len(graphs), graphs.target.kind)
        tables = overlay(preset("", given["model"]["method"], count, kind), given)
        return ModelConfig.from_dict(tables["model"]), TrainConfig.from_dict(tables["train"])
