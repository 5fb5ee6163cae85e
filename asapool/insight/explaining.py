"""explain: the hierarchy of clusters and the node importance of one prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from asapool.data import GraphSet
from asapool.data.molecules import molecule
from asapool.data.targets import Target
from asapool.errors import ConfigError, choose
from asapool.insight.copies import logits_of
from asapool.insight.hierarchy import Hierarchy
from asapool.insight.importance import KINDS, Question, descriptor_importance, frozen
from asapool.insight.inputs import model_and_graph
from asapool.insight.levels import Floats, Ints, levels_of
from asapool.models.batches import cut
from asapool.training.tasks import task_of


def explain(
    model: Any,
    graph: Any,
    index: int | str | None = None,
    *,
    target: str | int | None = None,
    importance: Sequence[str] = tuple(KINDS),
    occlude: Literal["remove", "zero"] = "remove",
    against: str | int | None = None,
) -> Hierarchy:
    """Explain one prediction: which nodes were pooled together, and which nodes decided it.

    Levels exist for "asap", and for "topk" and "sagpool" with clusters of one node; gradient and occlusion work for any
    network, and `note` says why levels are missing.

    Args:
        model: A trained model, a fitted estimator, or the path of a model file or run folder.
        graph: A GraphSet, a PyG Data, a NetworkX graph, or a source that `asapool.load` reads.
        index: Number of the graph in a set, or a value of `asapool explain --graph`.
        target: The class or task to explain, by name or number; by default the predicted class, or the first task.
        importance: Which kinds to compute; all but attention and gradient run the model for every node.
        occlude: How occlusion removes a node: "remove" with its edges, or "zero" its features.
        against: A class to compare with: gradient and occlusion then refer to ln p_target/p_against.

    Returns:
        The hierarchy of clusters with the importance of every node.

    >>> from asapool.data import load
    >>> from asapool.models import ModelConfig, build
    >>> graphs = load("synthetic:motifs?graphs=2&nodes=7")
    >>> model = build(ModelConfig(hidden=8, levels=2), graphs.num_features, 2, seed=0)
    >>> hierarchy = explain(model, graphs, 0)
    >>> [len(level) for level in hierarchy.levels], hierarchy.assignment(2).shape
    ([6, 3], (12, 3))
    >>> hierarchy.assignment(2).sum(axis=0).round(5).tolist()
    [1.0, 1.0, 1.0]
    """
    for kind in importance:
        choose("importance", kind, tuple(KINDS))
    network, classes, one = model_and_graph(model, graph, index)
    batch = cut(network, one, np.zeros(1, np.int64))
    meaning = network.target or Target(classes=classes)
    task = task_of(meaning)
    if against is not None:
        refuse_contrast(meaning)
    with frozen(network):
        with torch.no_grad():
            probability: Floats = task.answers(logits_of(network, batch).double(), meaning)[0].numpy()
        levels, note = levels_of(network, batch)
        c = _class(target, classes, probability, meaning)
        other = None if against is None else _class(against, classes, probability, meaning)
        question = Question(network, batch, levels, c, occlude, other)
        scores = {
            kind: row.compute(question)
            for kind, row in KINDS.items()
            if kind in importance and (levels or not row.needs_levels)
        }
        effects = descriptor_importance(network, batch, c, other)
    row = np.repeat(np.arange(len(one.x)), np.diff(one.rowptr))
    text = None if one.source_text is None else one.source_text[0]
    return Hierarchy(
        id=one.ids[0], data=one.name, method=network.config.method, classes=classes, probability=probability, target=c,
        against=other, nodes=len(one.x), source=one.col.copy(), target_node=row,
        weight=np.ones(len(row)) if one.weight is None else one.weight.astype(np.float64),
        levels=levels, importance=scores, names=_names(one, text, row), text=text, note=note,
        label=_label(one, c, meaning), kind=meaning.kind, unit=_unit(meaning, c),
        answer=task.shown_answer(probability, c, meaning),
        truth=None if one.truth is None else one.truth.astype(np.int64),
        descriptors=dict(zip(_descriptor_names(one, len(effects)), effects.tolist(), strict=True)),
    )  # fmt: skip


def refuse_contrast(target: Target) -> None:
    """Raise ConfigError for a model that does not choose among classes, of which two could be compared."""
    if target.kind == "classification":
        return
    names = ", ".join(map(repr, target.names[:3])) + (", …" if target.tasks > 3 else "")
    what = "measured values" if target.kind == "regression" else "yes/no tasks"
    signs = "raise the value and which lower it" if target.kind == "regression" else "support yes and which support no"
    raise ConfigError(
        f"--against compares two classes of one column, but this model predicts {what} ({names}). Leave it out: the "
        f"explanation of a task shows which nodes {signs}. --class chooses the task"
    )


def _label(one: GraphSet, k: int, target: Target) -> str | None:
    """The true class, or value of task k, as text; None if it is not known."""
    if one.target.kind != target.kind or one.target.tasks != target.tasks:
        return None
    columns = list(task_of(one.target).labels(one.y, one.target).values())
    return columns[min(k, len(columns) - 1)][0] or None


def _descriptor_names(one: GraphSet, count: int) -> list[str]:
    """The columns of descriptors, then those that RDKit computes; numbers if the recipe does not know them."""
    known = one.recipe.get("descriptors") or {}
    names = [*known.get("columns", ()), *known.get("rdkit", ())]
    return names if len(names) == count else [f"descriptor {k}" for k in range(count)]


def _unit(target: Target, k: int) -> str:
    return target.units[k] if target.kind == "regression" else ""


def _class(target: str | int | None, classes: tuple[str, ...], probability: Floats, meaning: Target) -> int:
    if target is None:
        return int(probability.argmax()) if meaning.kind == "classification" else 0
    if isinstance(target, int) and 0 <= target < len(classes):
        return target
    return classes.index(choose("target", str(target), classes))


def _names(one: GraphSet, text: str | None, row: Ints) -> tuple[str, ...]:
    """Atom symbols of a molecule; otherwise the names of one-hot features, if they have names."""
    mol = None if text is None else molecule(text, len(one.x), one.col, row)
    if mol is not None:
        return tuple(atom.GetSymbol() for atom in mol.GetAtoms())
    hot = one.x.shape[1] > 1 and bool((np.count_nonzero(one.x, axis=1) == 1).all())
    if not hot or len(one.feature_names) != one.x.shape[1]:
        return ()
    return tuple(one.feature_names[k] for k in one.x.argmax(axis=1).tolist())
