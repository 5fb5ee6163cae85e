"""Whether importance is faithful to the model: the effect of removing the most important nodes, or all others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from asapool.data import GraphSet
from asapool.data.csr import pointer
from asapool.data.targets import Target
from asapool.errors import ConfigError, choose
from asapool.insight.aspects import Aspect
from asapool.insight.copies import answers_of, answers_without, target_of
from asapool.insight.importance import KINDS, Question, frozen
from asapool.insight.inputs import model_and_set
from asapool.insight.levels import Floats, Ints, levels_of
from asapool.kernels.ratio import kept_count
from asapool.models import GraphModel
from asapool.models.batches import cut

STEPS = tuple(k / 10 for k in range(1, 10))  # shares of the nodes that are removed, or kept
TOP = 0.2  # share of the nodes used by fidelity
RANDOM = "random"


@dataclass(frozen=True, kw_only=True)
class Faithful:
    """How faithful one kind of importance is; means over graphs.

    p is the probability of the predicted class, or of the predicted yes or no. For a measured value, deletion,
    insertion and both fidelities are absolute changes of the value in its unit.
    """

    kind: str
    deletion: float  # area under p while the most important nodes are removed; lower is better (values: higher)
    insertion: float  # area under p while only the most important nodes are kept; higher is better (values: lower)
    fidelity_plus: float  # p − p without the top 20% of the nodes; higher is better
    fidelity_minus: float  # p − p of the top 20% alone; lower is better
    sparsity: float | None  # 1 − the smallest share of the nodes that alone yield the same class; None for values
    precision: float | None  # share of true nodes among the k most important, k = number of true nodes, if known
    stability: float | None  # rank correlation with the importance from other models, if given
    errors: dict[str, float]  # standard errors of these means
    deletion_curve: tuple[float, ...]
    insertion_curve: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Faithfulness:
    """All kinds of importance of one model on the same graphs, with a random order beside them."""

    data: str
    method: str
    graphs: int
    steps: tuple[float, ...]
    rows: tuple[Faithful, ...]
    target_kind: str = "classification"
    target: str | None = None  # the class or task; None = the predicted class of each graph
    unit: str = ""  # of a measured value

    def to_json(self) -> str:
        """All fields under their names as one JSON object."""
        return json.dumps({"format": "asapool.faithfulness", "version": 1, **asdict(self)}, ensure_ascii=False)


def check_importance(
    model: Any,
    graphs: Any,
    *,
    target: str | int | None = None,
    importance: Sequence[str] = tuple(KINDS),
    indices: Sequence[int] | None = None,
    sample: int = 50,
    others: Sequence[Any] = (),
    seed: int = 0,
    **options: Any,
) -> Faithfulness:
    """Measure how faithful each kind of importance is to a model.

    For each graph and kind, the most important 10%, …, 90% of the nodes are removed (deletion), or kept (insertion).
    This changes the probability of a class or of an answer, or a value by |ŷ − ŷ without the nodes|, in its unit.

    Args:
        model: A trained model, or the path of its file or run folder.
        graphs: A GraphSet, or a source that `asapool.load` reads.
        target: The class or task, by name or number; by default the predicted class, or the first task.
        importance: The kinds to check.
        indices: Graphs to check; by default a sample.
        sample: Number of graphs to draw if no indices are given.
        others: Other models of the same classes, such as those of other seeds, for the stability.
        seed: Of the sample and of the random order.
        **options: Other options of asapool.load for a source.

    Returns:
        One row per kind, and one for a random order.

    >>> from asapool.data import load
    >>> from asapool.models import ModelConfig, build
    >>> graphs = load("synthetic:motifs?graphs=6&nodes=7")
    >>> checked = check_importance(build(ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0), graphs)
    >>> [row.kind for row in checked.rows], checked.graphs
    (['attention', 'gradient', 'occlusion', 'neighbourhood', 'substitution', 'random'], 6)
    """
    for kind in importance:
        choose("importance", kind, tuple(KINDS))
    network, names, graphs = model_and_set(model, graphs, **options)
    output = _output(target, names)
    rng = np.random.default_rng(seed)
    chosen = np.asarray(
        indices if indices is not None else np.sort(rng.permutation(len(graphs))[:sample]), dtype=np.int64
    )
    chosen = chosen[np.diff(graphs.ptr)[chosen] > 1]
    if not len(chosen):
        raise ConfigError(f"{graphs.name}: expected graphs of at least two nodes to check, got none")
    data = graphs.subset(chosen)
    with frozen(network):
        aspect = Aspect.of(answers_of(network, data), target_of(network, names), output)
        scores = importance_of(network, data, importance, aspect.output)
        scores[RANDOM] = [rng.random(int(n)) for n in np.diff(data.ptr)]
        rankings = {kind: aspect.ranking(kind, values) for kind, values in scores.items()}
        measured = {kind: faithful(network, data, ranking, aspect) for kind, ranking in rankings.items()}
    meaning = aspect.target
    k = 0 if output is None and meaning.noun == "tasks" else output
    agreement = _agreement(scores, data, others, importance, None if k is None else names[k])
    rows = [_row(kind, values, rankings[kind], data, agreement.get(kind)) for kind, values in measured.items()]
    return Faithfulness(
        data=graphs.name, method=network.config.method, graphs=len(data), steps=STEPS, rows=tuple(rows),
        target_kind=meaning.kind, target=None if k is None else names[k],
        unit=meaning.units[k] if aspect.is_value and k is not None else "",
    )  # fmt: skip


def _output(target: str | int | None, names: tuple[str, ...]) -> int | None:
    """The number of a class or task given by its number or name."""
    if target is None or (isinstance(target, int) and 0 <= target < len(names)):
        return target
    return names.index(choose("target", str(target), names))


def importance_of(
    model: GraphModel, graphs: GraphSet, kinds: Sequence[str], classes: Ints | None = None
) -> dict[str, list[Floats]]:
    """Every kind of importance of every graph, for the predicted class unless `classes` or tasks (G,) are given."""
    values: dict[str, list[Floats]] = {}
    about = answers_of(model, graphs).argmax(axis=1) if classes is None else classes
    for g in range(len(graphs)):
        batch = cut(model, graphs, np.array([g]))
        levels, _ = levels_of(model, batch)
        question = Question(model, batch, levels, int(about[g]), "remove")
        for kind in kinds:
            if levels or not KINDS[kind].needs_levels:
                values.setdefault(kind, []).append(KINDS[kind].compute(question))
    return values


def faithful(
    model: GraphModel, graphs: GraphSet, scores: Sequence[Floats], aspect: Aspect | None = None
) -> dict[str, Floats]:
    """Deletion and insertion curves (G, steps), fidelities and sparsity (G,) of one importance of every graph.

    Args:
        model: In evaluation mode.
        graphs: The graphs.
        scores: An array per graph, the most important node has the largest number.
        aspect: The quantity; by default the probability of the predicted class.
    """
    base = answers_of(model, graphs)
    aspect = aspect or Aspect.of(base, Target())
    whole = aspect.measure(base, np.arange(len(base)))[0][:, None]
    steps = sorted({*STEPS, TOP})
    (removed, _), (kept, same) = (_curve(model, graphs, scores, steps, aspect, keep=keep) for keep in (False, True))
    at, grid = steps.index(TOP), [steps.index(s) for s in STEPS]
    changes = [np.abs(whole - curve) if aspect.is_value else whole - curve for curve in (removed, kept)]
    removed, kept = changes if aspect.is_value else (removed, kept)
    values = {
        "deletion_curve": removed[:, grid], "insertion_curve": kept[:, grid],
        "deletion": removed[:, grid].mean(axis=1), "insertion": kept[:, grid].mean(axis=1),
        "fidelity_plus": changes[0][:, at], "fidelity_minus": changes[1][:, at],
    }  # fmt: skip
    if aspect.is_value:
        return values
    return values | {"sparsity": 1 - np.where(same.any(axis=1), np.array(steps)[same.argmax(axis=1)], 1.0)}


def _curve(
    model: GraphModel, graphs: GraphSet, scores: Sequence[Floats], steps: Sequence[float], aspect: Aspect, *, keep: bool
) -> tuple[Floats, Any]:
    """The quantity of each graph, and whether the prediction is still the same, both (G, steps)."""
    owner, sets = [], []
    for g, values in enumerate(scores):
        order = np.argsort(-values, kind="stable") + graphs.ptr[g]
        N = len(values)
        for share in steps:
            owner.append(g)
            sets.append(np.sort(order[: min(N - 1, kept_count(N, share))]))
    graph = np.array(owner, np.int64)
    ptr = pointer(np.array([len(s) for s in sets], np.int64))
    value, same = aspect.measure(answers_without(model, graphs, graph, ptr, np.concatenate(sets), keep=keep), graph)
    shape = (len(scores), len(steps))
    return value.reshape(shape), same.reshape(shape)


def _agreement(
    scores: dict[str, list[Floats]], graphs: GraphSet, others: Sequence[Any], kinds: Sequence[str], name: str | None
) -> dict[str, Floats]:
    """Mean rank correlation (G,) of each kind with that of other models, for `name` or the class that those predict."""
    correlations: dict[str, list[Floats]] = {}
    for other in others:
        network, names, _ = model_and_set(other, graphs)
        output = _output(name, names)
        with frozen(network):
            same = None if output is None else np.full(len(graphs), output)
            for kind, values in importance_of(network, graphs, kinds, same).items():
                if kind in scores:
                    pairs = zip(scores[kind], values, strict=True)
                    correlations.setdefault(kind, []).append(np.array([rank_correlation(a, b) for a, b in pairs]))
    return {kind: np.mean(values, axis=0) for kind, values in correlations.items()}


def rank_correlation(a: Floats, b: Floats) -> float:
    """Spearman's correlation; 0 if one of the two is constant.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.5, 0.7]))
    1.0
    """
    from scipy.stats import rankdata

    x, y = rankdata(a), rankdata(b)
    if len(a) < 2 or x.std() == 0 or y.std() == 0:
        return 0.0
    return round(float(np.corrcoef(x, y)[0, 1]), 12)


def precision_at(truth: Ints, scores: Floats) -> float:
    """Share of true nodes among the k most important, k = number of true nodes."""
    k = int(truth.sum())
    return float(truth[np.argsort(-scores, kind="stable")[:k]].mean())


def _row(
    kind: str, values: dict[str, Floats], scores: Sequence[Floats], graphs: GraphSet, agreement: Floats | None
) -> Faithful:
    means: dict[str, Any] = {"sparsity": None, "precision": None, "stability": None}
    columns = {name: v for name, v in values.items() if v.ndim == 1}
    if graphs.truth is not None:
        truths = [graphs.truth[a:b].astype(np.int64) for a, b in zip(graphs.ptr[:-1], graphs.ptr[1:], strict=True)]
        known = [(t, s) for t, s in zip(truths, scores, strict=True) if 0 < t.sum() < len(t)]
        if known:
            columns["precision"] = np.array([precision_at(t, s) for t, s in known])
    if agreement is not None:
        columns["stability"] = agreement
    means |= {name: float(v.mean()) for name, v in columns.items()}
    errors = {name: float(v.std(ddof=1) / np.sqrt(len(v))) if len(v) > 1 else 0.0 for name, v in columns.items()}
    curves: dict[str, Any] = {name: tuple(v.mean(axis=0).tolist()) for name, v in values.items() if v.ndim == 2}
    return Faithful(kind=kind, errors=errors, **means, **curves)
