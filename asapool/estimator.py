"""ASAPClassifier: the classifier as scikit-learn knows it, to clone, search, cross-validate and put into pipelines."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from reprlib import repr as short
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from asapool.data import GraphSet, load
from asapool.data.recipe import MAKES_X
from asapool.errors import ConfigError, DataError, InputError
from asapool.models import ModelConfig
from asapool.training.config import TrainConfig
from asapool.training.embeddings import embed
from asapool.training.fitting import fit
from asapool.training.new_model import new_model
from asapool.training.predictions import predict
from asapool.training.presets import DEFAULT_METHOD, preset
from asapool.training.settings import overlay

Ints = npt.NDArray[np.int64]
MISSING = ("nan", "<NA>", "NaT")  # how Python's, NumPy's and pandas' marks of nothing read


class ASAPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify graphs with ASAP pooling, or with any other method of asapool.

    X is a GraphSet, or a list or pandas column of NetworkX graphs, of PyG Data, or of SMILES; y the classes (any
    labels), which may be left out where the graphs carry them. model_options and train_options reach every further
    setting of asapool.models.ModelConfig and asapool.training.TrainConfig.

    method, hidden, levels, ratio, dropout: the model. Settings that are None follow from the method and, in `asap+`,
    from the number of graphs. epochs, batch_size, lr, class_weight (None or "balanced"),
    early_stopping: the training. validation_fraction: share of each class's graphs by which the best epoch is chosen;
    0 = train on all and keep the last epoch. random_state: a whole number makes fits repeatable to the byte.

    After fit: classes_ (C,), model_ (the torch module), history_, best_epoch_, recipe_, n_features_in_.

    >>> graphs = load("synthetic:cycles?graphs=20")
    >>> asap = ASAPClassifier(hidden=8, epochs=2, random_state=0).fit(graphs[:16])
    >>> asap.classes_.tolist(), asap.predict_proba(graphs[16:]).shape
    (['cycle', 'path'], (4, 2))
    """

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
        class_weight: str | None = None,
        early_stopping: int | None = None,
        validation_fraction: float = 0.1,
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
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.model_options = model_options
        self.train_options = train_options
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Graphs are no table: say so to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.non_deterministic = self.random_state is None
        return tags

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> ASAPClassifier:
        """Learn from labelled graphs."""
        chance = check_random_state(self.random_state)
        seed = int(chance.randint(2**31 - 1))
        self._configs(seed, None)  # refuses mistakes before anything large is read
        graphs = pack(X, labels="required" if y is None else "ignored")
        classes, graphs = _with_classes(graphs, y)
        model, train = self._configs(seed, len(graphs))
        parts = _hold_out(graphs.y, self.validation_fraction, np.random.default_rng(seed))
        network = new_model(model, graphs, parts.train, train)
        done = fit(network, graphs, parts, train)
        if done.diverged:
            said = f"{done.stopped}; the weights of epoch {done.best_epoch} are kept. Lower lr"
            warnings.warn(said, ConvergenceWarning, stacklevel=2)
        self.classes_ = classes
        self.model_, self.history_, self.best_epoch_ = network, done.history, done.best_epoch
        self.recipe_, self.n_features_in_ = dict(graphs.recipe), graphs.num_features
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probability of every class, (G, C), columns in the order of classes_."""
        check_is_fitted(self, "model_")
        return predict(self.model_, self._packed(X))

    def _packed(self, X: Any) -> GraphSet:
        """X as a set of graphs with the features of the training."""
        graphs = pack(X, labels="ignored", recipe=self.recipe_)
        if graphs.num_features != self.n_features_in_:
            raise InputError(
                f"X has {graphs.num_features} node features, but ASAPClassifier was fitted with {self.n_features_in_}"
            )
        _check_meaning(graphs.recipe, self.recipe_)
        return graphs

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of every graph, (G,)."""
        p = self.predict_proba(X)
        answer: npt.NDArray[Any] = self.classes_[p.argmax(axis=1)]
        return answer

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """The vector of every graph, (G, W): what the network makes of it before its last layers."""
        check_is_fitted(self, "model_")
        return embed(self.model_, self._packed(X))

    def _configs(self, seed: int, graphs: int | None) -> tuple[ModelConfig, TrainConfig]:
        """The settings: those given, over those that follow from the method and the number of graphs."""
        if self.class_weight not in (None, "balanced"):
            raise ConfigError(f"class_weight must be None or 'balanced', got {self.class_weight!r}")
        model = {name: getattr(self, name) for name in ("method", "hidden", "levels", "ratio", "dropout")}
        train = {name: getattr(self, name) for name in ("epochs", "batch_size", "lr", "early_stopping")}
        train |= {"class_weights": self.class_weight or "none", "seed": seed}
        given = {"model": model | dict(self.model_options or {}), "train": train | dict(self.train_options or {})}
        tables = overlay(preset("", given["model"]["method"], graphs), given)
        return ModelConfig.from_dict(tables["model"]), TrainConfig.from_dict(tables["train"])


def pack(X: Any, labels: Any, recipe: Mapping[str, Any] | None = None) -> GraphSet:
    """Any X as one packed set; with a recipe, with the columns of the graphs that were learned from.

    >>> pack(["CCO", "c1ccccc1"], labels="ignored")
    GraphSet('graphs', graphs=2, nodes=9, edges=16, features=36, classes=0)
    """
    if isinstance(X, GraphSet):
        return X  # its columns are finished: their number is checked by the caller
    if hasattr(X, "columns") and hasattr(X, "iloc"):  # a pandas table
        if len(X.columns) != 1:
            named = ", ".join(map(repr, X.columns[:5])) + (", …" if len(X.columns) > 5 else "")
            raise DataError(
                f"X must be one column of SMILES or graphs, got a table of {len(X.columns)}: {named}. "
                "Give one of them, such as X['smiles']"
            )
        X = X.iloc[:, 0]
    items = list(X) if not isinstance(X, (str, bytes)) and hasattr(X, "__iter__") else None
    if not items:
        came = "an empty list" if items is not None else type(X).__name__
        raise DataError(f"X must be a GraphSet or a list of NetworkX graphs, PyG Data or SMILES, got {came}")
    if any(isinstance(item, str) for item in items):
        return _molecules(items)
    if all(getattr(item, "x", None) is not None for item in items):
        recipe = None  # PyG's x holds finished columns, whatever they were made of
    return load(items, labels=labels, recipe=recipe, task=None if recipe else "classification")


def _molecules(smiles: Sequence[Any]) -> GraphSet:
    from asapool.data.molecule_table import pack_molecules
    from asapool.data.molecules import VERSION, read_smiles

    for place, item in enumerate(smiles):
        if not isinstance(item, str):
            raise DataError(f"X[{place}]: a SMILES text as in the others expected, got {item!r}. Leave it out")
    found = read_smiles(smiles)
    if found.failed:
        place, reason = found.failed[0]
        raise DataError(f"X[{place}]: {reason}. {len(found.failed)} of {len(smiles)} cannot be read: leave them out")
    recipe = {"version": VERSION, "kind": "smiles", "smiles": "smiles", "target": None}
    return pack_molecules(found, source_text=tuple(smiles), recipe=recipe)


def _check_meaning(made: Mapping[str, Any], fitted: Mapping[str, Any]) -> None:
    """Refuse columns that were made by another recipe than those that were learned from."""
    theirs, ours = _meaning(made), _meaning(fitted)
    differ = [key for key in MAKES_X if theirs.get(key) != ours.get(key)]
    if theirs and ours and differ:
        key = differ[0]
        raise InputError(
            f"X has node features made with {key} = {short(theirs.get(key))}, but ASAPClassifier was fitted on those "
            f"with {short(ours.get(key))}. Load the graphs with recipe=classifier.recipe_"
        )


def _meaning(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What of a recipe decides the columns; nothing where they came finished, as PyG's x, and mean who knows what.

    >>> _meaning({"features": "degree", "max_degree": 2, "classes": []})
    {'features': 'degree', 'max_degree': 2}
    >>> _meaning({"features": "attributes", "attributes": ["x0", "x1"]})
    {}
    """
    names = recipe.get("attributes", ())
    if names and list(names) == [f"x{k}" for k in range(len(names))]:
        return {}
    return {key: recipe[key] for key in MAKES_X if key in recipe}


def _with_classes(graphs: GraphSet, y: npt.ArrayLike | None) -> tuple[npt.NDArray[Any], GraphSet]:
    """The classes, (C,), and the set with those of y, or, where y was left out, with its own."""
    if y is None:
        if graphs.num_classes < 2 or (graphs.y < 0).any():
            raise DataError("X has graphs without a class, or one class only. Give y")
        return np.array(graphs.class_names), graphs
    given = _targets(y, len(graphs))
    classes, codes = np.unique(given, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"y must have at least two classes, got only {classes.tolist()}")
    return classes, replace(graphs, y=codes.astype(np.int64), class_names=tuple(map(str, classes.tolist())))


def _targets(y: npt.ArrayLike, G: int) -> npt.NDArray[Any]:
    """y as an array of G classes; what is missing or measured is refused.

    >>> _targets([True, False], 2), _targets(["b", "a"], 2).tolist()
    (array([ True, False]), ['b', 'a'])
    """
    values = np.asarray(y, dtype=object)
    if values.shape != (G,):
        raise InputError(f"y must have one class per graph, shape ({G},), got {values.shape}")
    for place, value in enumerate(values.tolist()):
        if value is None or (not isinstance(value, str) and str(value) in MISSING):
            raise InputError(f"y[{place}]: a class expected, got {value!r}. Leave out graphs without a class")
    given = np.asarray(y)
    if given.dtype == object:  # a column of pandas: the values have a type of their own
        given = np.asarray(given.tolist())
    try:
        check_classification_targets(given)
    except ValueError:
        raise InputError(
            f"y must be classes (words, whole numbers, booleans), got {short(given.tolist())}. "
            "Cut what was measured into classes first"
        ) from None
    return given


def _hold_out(y: Ints, fraction: Any, chance: np.random.Generator) -> SimpleNamespace:
    """Numbers of the graphs to learn from and to choose the epoch by; every class keeps at least one to learn from.

    >>> parts = _hold_out(np.array([0] * 10 + [1] * 20), 0.1, np.random.default_rng(0))
    >>> len(parts.train), np.sort(parts.val // 10).tolist()
    (27, [0, 1, 2])
    """
    number = isinstance(fraction, (int, float, np.integer, np.floating)) and not isinstance(fraction, bool)
    if not number or not 0 <= fraction < 1:
        raise ConfigError(f"validation_fraction must lie in [0, 1), got {fraction!r}")
    held = []
    for c in np.unique(y):
        members = chance.permutation(np.flatnonzero(y == c))
        held.append(members[: min(round(fraction * len(members)), len(members) - 1)])
    val = np.sort(np.concatenate(held))
    return SimpleNamespace(train=np.setdiff1d(np.arange(len(y)), val), val=val)
