"""The inputs of `explain`: from any kind of model to a network with class names, from any graph to a set of one."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from asapool.data import GraphSet, load
from asapool.data.csr import Ints
from asapool.data.frames import is_frame
from asapool.data.targets import Target
from asapool.errors import CheckpointError, ConfigError, DataError
from asapool.models import DirectModel, GraphModel, checkpoint
from asapool.models.checkpoint import LoadedModel
from asapool.models.ensemble import EnsembleModel


class ModelAndGraph(NamedTuple):
    """A network, the names of its classes, and one graph that matches it."""

    model: GraphModel
    classes: tuple[str, ...]
    graph: GraphSet


class ModelAndSet(NamedTuple):
    """A network, the names of its classes, and graphs that match it."""

    model: GraphModel
    classes: tuple[str, ...]
    graphs: GraphSet


def model_and_graph(model: Any, graph: Any, index: int | str | None = None) -> ModelAndGraph:
    """Load the model if it is a path, pack the graph, and check that they match."""
    loaded, plain = _networks(model, "explain")
    chosen = one_graph(graph, index, loaded)
    return ModelAndGraph(plain, _classes(loaded, plain, chosen), chosen)


def model_and_set(model: Any, graphs: Any, **options: Any) -> ModelAndSet:
    """The same for a whole set: a GraphSet, or a source with the options that `asapool.load` takes."""
    loaded, plain = _networks(model, "motifs")
    if isinstance(graphs, GraphSet):
        if options:
            raise DataError(f"{', '.join(options)}: an option for reading a file, but these are graphs. Leave it out")
    else:
        recipe = {} if loaded is None else {"recipe": loaded.recipe}
        graphs = load(graphs, labels="optional", **recipe, **options)
    if not len(graphs):
        raise DataError(f"{graphs.name}: expected graphs, got none. Check that this is the right file")
    return ModelAndSet(plain, _classes(loaded, plain, graphs), graphs)


def training_graphs(model: str | PathLike[str], graphs: GraphSet) -> Ints | None:
    """The training graphs of a run folder, if `graphs` are the data set of its split; else None."""
    path = Path(model) / "split.json" if Path(model).is_dir() else Path(model).with_name("split.json")
    try:
        split = json.loads(path.read_text())
        train = np.array(split["train"], dtype=np.int64)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if split.get("graphs") != len(graphs) or split.get("fingerprint") != graphs.fingerprint:
        return None
    return train


def _networks(model: Any, command: str) -> tuple[LoadedModel | None, GraphModel]:
    """The content of the model file, if there is one, and the network."""
    if isinstance(model, (str, PathLike)):
        folder = Path(model)
        model = checkpoint.load(folder / "model.safetensors" if folder.is_dir() else folder)
    loaded = model if isinstance(model, LoadedModel) else getattr(model, "loaded", None) or _fitted(model)
    plain = loaded.model if isinstance(loaded, LoadedModel) else model
    if isinstance(plain, EnsembleModel):  # each member pools differently: show the first
        plain = plain.models[0]
    if isinstance(plain, DirectModel):
        raise ConfigError(f"{command} works on networks, but the method {plain.config.method!r} is not one")
    if not isinstance(plain, GraphModel):
        remedy = ""
        if hasattr(type(plain), "__sklearn_tags__"):
            remedy = " that is not fitted; call fit first"
        elif isinstance(plain, nn.Module):
            remedy = "; the pooling layers of your own model have a method explain(x, edge_index)"
        raise ConfigError(
            f"{command} takes a trained model or the path of its file, got {type(model).__name__}{remedy}"
        )
    return (loaded if isinstance(loaded, LoadedModel) else None), plain


def _fitted(estimator: Any) -> LoadedModel | None:
    """The model inside a fitted ASAPClassifier or ASAPRegressor; None for anything else."""
    model, recipe = getattr(estimator, "model_", None), getattr(estimator, "recipe_", None)
    if not isinstance(model, GraphModel) or recipe is None:
        return None
    target: Target = estimator.target_
    return LoadedModel(
        model=model,
        classes=tuple(map(str, target.output_names)),
        target=target,
        recipe=recipe,
        summary={},
        fingerprint=None,
        versions={},
        extra={},
        path=Path(type(estimator).__name__),
    )


def _classes(loaded: LoadedModel | None, plain: GraphModel, graphs: GraphSet) -> tuple[str, ...]:
    """Names of the classes; graphs that do not match the model are refused."""
    if loaded is not None:
        loaded.check(graphs)
        return loaded.classes
    if graphs.num_features != plain.in_channels:
        raise CheckpointError(
            f"the graph has {graphs.num_features} features per node, but the model was trained on {plain.in_channels}. "
            "Use the same features as the training graphs"
        )
    if plain.target is not None:
        return plain.target.output_names
    names = graphs.class_names if len(graphs.class_names) == plain.num_classes else ()
    return tuple(names) or tuple(map(str, range(plain.num_classes)))


def find_graph(graphs: GraphSet, word: str) -> int:
    """The index in the set of a graph given by its position in the source, or its id.

    These are the columns graph and id of predictions; "graph=4" and "id=4" say which one is meant. If the source has
    no names for its graphs, ids are line numbers or the like, and only "id=4" refers to them.

    >>> find_graph(load("synthetic:cycles?graphs=6"), "4")
    4
    """
    column, equals, value = word.partition("=")
    if not equals or column not in ("graph", "id"):
        column, value = "", word
    by_id = column == "id" or (column == "" and graphs.named)
    matches = [
        i
        for i, (place, graph_id) in enumerate(zip(graphs.places.tolist(), graphs.ids, strict=True))
        if (column != "id" and str(place) == value) or (by_id and graph_id == value)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        candidates = " and ".join(f"graph {graphs.places[i]} (id {graphs.ids[i]!r})" for i in matches[:3])
        choices = " or ".join(f"graph={graphs.places[i]}" for i in matches[:3])
        raise DataError(f"{graphs.name}: {word!r} could be {candidates}. Say which one is meant: {choices}")
    ids = ", ".join(map(repr, graphs.ids[:3])) + (", …" if len(graphs) > 3 else "")
    raise DataError(
        f"{graphs.name} has no graph {word!r}; its graphs are {graphs.places.min()} to {graphs.places.max()}"
        + (f", or by id {ids}" if graphs.named else "")
    )


def one_graph(graph: Any, index: int | str | None, trained: LoadedModel | None) -> GraphSet:
    """The graph as a set of one, with the features that the model expects."""
    smiles = isinstance(graph, (list, tuple)) and all(isinstance(text, str) for text in graph)
    if isinstance(graph, (str, PathLike)) or smiles or is_frame(graph):
        graph = load(graph, labels="optional", **({} if trained is None else {"recipe": trained.recipe}))
    if isinstance(graph, GraphSet):
        index = find_graph(graph, index) if isinstance(index, str) else index
        if index is None and len(graph) != 1:
            raise ConfigError(f"{graph.name} has {len(graph)} graphs; say which one: explain(model, graphs, 3)")
        chosen = graph.subset([0 if index is None else index])
        # a graph without a name is identified by the number that `asapool explain --graph` takes
        return chosen if chosen.named else chosen.with_fields(ids=(str(chosen.places[0]),))
    if index is not None:
        raise ConfigError(f"index selects from a GraphSet, but a {type(graph).__name__} is one graph. Leave it out")
    # the recipe made here only says how this graph was read; without it, it is not compared with the model's
    if hasattr(graph, "edge_index"):
        one = GraphSet.from_pyg([graph], class_names=None if trained is None else trained.classes)
        return one.with_fields(recipe={})
    if hasattr(graph, "adj"):
        if trained is not None and "networkx" in trained.recipe:
            return load([graph], recipe=trained.recipe, labels="optional")
        one = GraphSet.from_networkx([graph])
        text = graph.graph.get("text")
        return one.with_fields(recipe={}, source_text=(text,) if isinstance(text, str) else None)
    raise DataError(f"explain takes a GraphSet, a source, a PyG Data or a NetworkX graph, got {type(graph).__name__}")
