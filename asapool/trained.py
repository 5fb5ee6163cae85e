"""load_model: load a trained model from its file, to predict and explain graphs of any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asapool.data import GraphSet, load
from asapool.data.frames import is_frame
from asapool.data.readers import reader_of
from asapool.errors import ConfigError, DataError
from asapool.models import checkpoint

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import nn

    from asapool.data.targets import Target
    from asapool.insight import Hierarchy, Motifs
    from asapool.models import ModelConfig
    from asapool.models.checkpoint import LoadedModel
    from asapool.training.task import Task


def load_model(path: str | PathLike[str]) -> TrainedModel:
    """Load a model written by `asapool train` or `asapool.models.checkpoint.save`.

    The file is data (safetensors), so loading it runs no code, and its checksum is verified.

    Args:
        path: A run folder, or a model.safetensors file.

    Returns:
        The model in eval mode, with predict, predict_proba and explain.

    >>> import tempfile
    >>> from asapool.models import ModelConfig, build
    >>> graphs = load("synthetic:cycles?graphs=6")
    >>> network = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save(f"{folder}/model.safetensors", network, classes=graphs.class_names, recipe=graphs.recipe)
    ...     model = load_model(folder)
    >>> model
    TrainedModel('asap', classes=('cycle', 'path'))
    >>> model.predict_proba(graphs).shape, model.predict(graphs[:2]).shape
    ((6, 2), (2,))
    """
    return TrainedModel(checkpoint.load(path))


class TrainedModel:
    """A trained model with everything it needs to read new graphs, from load_model.

    Every method takes one graph or many, as any of these:

    * SMILES: a string, a list, or a pandas column (if the model was trained on molecules);
    * a file, folder or name that asapool.load reads, such as "new.csv", "new.jsonl" or "PROTEINS";
    * a data frame (pandas, polars) with the column of SMILES, and the descriptors that the model reads, if any;
    * PyG Data, NetworkX graphs, or a list of either;
    * a GraphSet with the same features as the training graphs.

    Args:
        loaded: The content of a model file, from asapool.models.checkpoint.load.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded

    def __repr__(self) -> str:
        return f"TrainedModel({self.config.method!r}, {self.target.noun}={self.classes!r})"

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, in the order of the columns of predict_proba; for other targets the names of the tasks."""
        return self.loaded.classes

    @property
    def target(self) -> Target:
        """What the model predicts: kind, names of tasks and classes, units, scale."""
        return self.loaded.target

    @property
    def config(self) -> ModelConfig:
        """Settings of the model."""
        return self.loaded.config

    @property
    def recipe(self) -> Mapping[str, Any]:
        """How node features are made; asapool.load(source, recipe=model.recipe) makes the same."""
        return self.loaded.recipe

    @property
    def summary(self) -> Mapping[str, Any]:
        """What training recorded about itself, such as its scores."""
        return self.loaded.summary

    @property
    def card(self) -> dict[str, Any]:
        """What the model file says about itself, as `asapool info --json` prints it."""
        from asapool.training.model_card import model_card

        return model_card(self.loaded)

    @property
    def module(self) -> nn.Module:
        """The torch module."""
        return self.loaded.model

    def read(self, X: Any, **options: Any) -> GraphSet:
        """Graphs with the features that the model was trained on.

        Args:
            X: One graph or many, see the class.
            **options: Other options of asapool.load for a file, such as smiles="SMILES" or skip_invalid=True.

        Returns:
            One set, in the order of X; `.ids` has the names of the graphs.
        """
        graphs = self._read(X, options)
        self.loaded.check(graphs)
        return graphs

    def predict_proba(self, X: Any, **options: Any) -> npt.NDArray[np.float64]:
        """Probability of every class, or of yes for every yes/no task.

        Args:
            X: One graph or many, see the class.
            **options: Other options of asapool.load for a file.

        Returns:
            Probabilities (G, C), rows in the order of X, columns in the order of classes.
        """
        if not self._task.probabilities:
            raise ConfigError(f"a {self.target.kind} model predicts values, not probabilities. Use predict")
        return self._answers(X, options)

    def predict(self, X: Any, **options: Any) -> npt.NDArray[Any]:
        """The prediction for every graph, in the order of X.

        Args:
            X: One graph or many, see the class.
            **options: Other options of asapool.load for a file.

        Returns:
            The most probable class by name, (G,); measured values in their unit, (G,), or (G, T) for several tasks; 0
            and 1 for yes/no tasks, (G, T).
        """
        return self._task.predicted(self._answers(X, options), self.target)

    @property
    def _task(self) -> Task:
        from asapool.training.tasks import task_of

        return task_of(self.target)

    def _answers(self, X: Any, options: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        from asapool.training.predictions import predict

        return predict(self.loaded.model, self.read(X, **options))

    def uncertainty(
        self, X: Any, *, coverage: float | None = None, calibration: str = "temperature", **options: Any
    ) -> dict[str, Any]:
        """The uncertainty of predictions, as the columns that `asapool predict --uncertainty` adds.

        Args:
            X: One graph or many, see the class.
            coverage: Of conformal sets or intervals, such as 0.9; None = without them.
            calibration: "temperature" or "isotonic".
            **options: Other options of asapool.load for a file.

        Returns:
            Name → one value per graph, in the order of X: "spread" of an ensemble, "calibrated(…)", "set" or
            "lower(…)" and "upper(…)", "distance_quantile", "unlike_training"; see docs/uncertainty.md.
        """
        from asapool.training.answering import Answering, Wanted

        graphs = self.read(X, **options)
        answering = Answering(self.loaded, Wanted(True, coverage, calibration))
        return dict(answering.answer(graphs, {})[1].after)

    def embed(self, X: Any, level: int | None = None, **options: Any) -> npt.NDArray[np.float32]:
        """The embedding of every graph: the output of the encoder, before the head.

        Args:
            X: One graph or many, see the class.
            level: One row per pooled node of this level, from 1, instead of one per graph.
            **options: Other options of asapool.load for a file.

        Returns:
            Embeddings (G, W), rows in the order of X; with level (K, F), graph by graph.
        """
        from asapool.training.embeddings import embed, embed_nodes

        graphs = self.read(X, **options)
        return embed(self.loaded.model, graphs) if level is None else embed_nodes(self.loaded.model, graphs, level).x

    def explain(
        self, X: Any, index: int = 0, *, target: str | int | None = None, importance: Sequence[str] | None = None
    ) -> Hierarchy:
        """Which clusters the model formed in one graph, and which nodes decided the prediction.

        Args:
            X: One graph or many, see the class.
            index: Which of them to explain.
            target: Class to explain, by name or number; the predicted one by default.
            importance: Kinds of node importance to compute; all by default.

        Returns:
            The hierarchy, as from asapool.explain.
        """
        from asapool.insight import explain

        graphs = self.read(X)
        if not 0 <= index < len(graphs):
            raise DataError(f"index must lie in 0 to {len(graphs) - 1}, got {index}")
        if importance is None:
            return explain(self.loaded, graphs, index, target=target)
        return explain(self.loaded, graphs, index, target=target, importance=importance)

    def motifs(self, X: Any, *, query: str | None = None, **options: Any) -> Motifs:
        """The substructures that drive the model's predictions over many graphs.

        Args:
            X: Many graphs, see the class; labels of a file or a GraphSet give the enrichment.
            query: A SMARTS pattern: only this substructure.
            **options: Other options of asapool.motifs, such as min_graphs=10.

        Returns:
            The substructures, strongest first, as from asapool.motifs.
        """
        from asapool.insight import motifs

        return motifs(self.loaded, self.read(X), query=query, **options)

    def _read(self, X: Any, options: Mapping[str, Any]) -> GraphSet:
        if isinstance(X, GraphSet):
            return X
        molecules = self.recipe.get("kind") == "smiles"
        if isinstance(X, (str, PathLike)):
            if not (molecules and isinstance(X, str) and _is_smiles(X)):
                return load(X, recipe=self.recipe, **{"labels": "optional", **options})
            X = [X]
        if molecules and is_frame(X) and (len(X.columns) > 1 or self.recipe.get("smiles") in list(X.columns)):
            return load(X, recipe=self.recipe, **{"labels": "optional", **options})
        if options:
            named = ", ".join(options)
            raise DataError(f"{named}: an option for reading a file or a table, and X is neither. Leave it out")
        if hasattr(X, "edge_index") or hasattr(X, "adj"):
            X = [X]
        return self._objects(X, molecules)

    def _objects(self, X: Any, molecules: bool) -> GraphSet:
        from asapool.estimator import pack

        items = list(X) if hasattr(X, "__iter__") and not hasattr(X, "columns") else X
        text = isinstance(items, list) and any(isinstance(item, str) for item in items)
        if text and not molecules:
            raise DataError(
                "X contains text, but the model was not trained on SMILES. Give graphs, or a file name as a string"
            )
        if isinstance(items, list) and items and all(getattr(item, "x", None) is not None for item in items):
            # given features, such as PyG's x, have no recipe to compare; their number is checked
            return replace(GraphSet.from_pyg(items), recipe={})
        graphs = pack(items, labels="ignored", recipe=self.recipe)
        return load(graphs, recipe=self.recipe, labels="ignored") if text else graphs


def _is_smiles(text: str) -> bool:
    """Whether a string is SMILES rather than a source (a path, a file name or a built-in set).

    >>> _is_smiles("CCO"), _is_smiles("new.csv"), _is_smiles("synthetic:cycles")
    (True, False, False)
    """
    if text == "nci-alerts" or text.startswith("synthetic:") or reader_of(Path(text)) is not None:
        return False
    try:
        return not Path(text).exists()
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        return True
