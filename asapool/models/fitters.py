"""Fits the direct models for each kind of target: constants, linear models, and forests stored as plain arrays.

All trees are concatenated. Node n goes to child[n, 0] if z[feature[n]] ≤ threshold[n] and else to child[n, 1]; a leaf
has itself as both children. value[n] has the class shares of a node, root[t] is the first node of tree t.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import get_num_threads

if TYPE_CHECKING:
    from asapool.data.targets import Target


Arrays = dict[str, npt.NDArray[Any]]
NAMES = ("feature", "threshold", "child", "value", "root")
ROWS = 256  # samples that are evaluated at once
COMPILED = 200_000  # samples × trees from which compiling the loop pays


def forest_arrays(forest: Any, num_classes: int) -> Arrays:
    """The trees of a fitted scikit-learn classifier or regressor; classes that it has not seen get the share 0."""
    trees = [estimator.tree_ for estimator in forest.estimators_]
    first = np.cumsum([0] + [tree.node_count for tree in trees])
    child, value = [], []
    classes = getattr(forest, "classes_", None)  # a regressor has none
    for start, tree in zip(first[:-1], trees, strict=True):
        both = np.stack([tree.children_left, tree.children_right], axis=1)
        itself = np.arange(start, start + tree.node_count)[:, None]
        child.append(np.where(both < 0, itself, both + start))
        seen = tree.value[:, 0, :]
        if classes is None:
            value.append(seen)
            continue
        shares = np.zeros((tree.node_count, num_classes))
        shares[:, classes.astype(np.int64)] = seen / seen.sum(axis=1, keepdims=True)
        value.append(shares)
    return {
        "feature": np.maximum(np.concatenate([tree.feature for tree in trees]), 0).astype(np.int32),
        "threshold": np.concatenate([tree.threshold for tree in trees]),
        "child": np.concatenate(child).astype(np.int32),
        "value": np.concatenate(value),
        "root": first[:-1].astype(np.int32),
    }


def forest_probability(arrays: Mapping[str, npt.NDArray[Any]], z: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The mean of the trees' leaf shares, p_b = 1/T Σ_t leaf_t(z_b).

    Args:
        arrays: what forest_arrays returned.
        z: features (B, D).

    Returns:
        Probabilities (B, C).

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> z, y = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32), np.array([0, 0, 1, 1])
    >>> forest = RandomForestClassifier(5, random_state=0).fit(z, y)
    >>> bool(np.allclose(forest_probability(forest_arrays(forest, 2), z), forest.predict_proba(z)))
    True
    """
    out = np.empty((len(z), arrays["value"].shape[1]))
    leaves = _leaves if len(z) * len(arrays["root"]) < COMPILED else _compiled_leaves
    for start in range(0, len(z), ROWS):
        out[start : start + ROWS] = arrays["value"][leaves(arrays, z[start : start + ROWS])].mean(axis=1)
    return out


def _leaves(arrays: Mapping[str, npt.NDArray[Any]], z: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """The leaf of every sample in every tree, (B, T)."""
    feature, threshold, child = (arrays[name] for name in NAMES[:3])
    row = np.arange(len(z))[:, None]
    node: npt.NDArray[np.int32] = np.broadcast_to(arrays["root"], (len(z), len(arrays["root"])))
    while True:
        below: npt.NDArray[np.int32] = child[node, (z[row, feature[node]] > threshold[node]).astype(np.int8)]
        if np.array_equal(below, node):
            return below
        node = below


def _compiled_leaves(arrays: Mapping[str, npt.NDArray[Any]], z: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """The same by a compiled loop."""
    from asapool.kernels.fused.forest import forest_leaves  # imports numba, so not at the top

    return forest_leaves(arrays["feature"], arrays["threshold"], arrays["child"], arrays["root"], z)


def join_forests(forests: Sequence[Arrays]) -> Arrays:
    """The forests of several tasks, concatenated; task[t] is the task of tree t."""
    first = np.cumsum([0, *(len(forest["feature"]) for forest in forests)])
    joined = {name: np.concatenate([forest[name] for forest in forests]) for name in ("feature", "threshold", "value")}
    for name in ("child", "root"):
        shifted = [forest[name] + n for forest, n in zip(forests, first.tolist(), strict=False)]
        joined[name] = np.concatenate(shifted).astype(np.int32)
    counts = [len(forest["root"]) for forest in forests]
    return joined | {"task": np.repeat(np.arange(len(forests)), counts).astype(np.int32)}


def forest_answers(arrays: Mapping[str, npt.NDArray[Any]], z: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The predictions of a forest of classes, (B, C), or of one forest per task, (B, T)."""
    if "task" not in arrays:
        return forest_probability(arrays, z)
    task = arrays["task"]
    each = [forest_probability({**arrays, "root": arrays["root"][task == t]}, z) for t in range(int(task.max()) + 1)]
    return np.concatenate(each, axis=1)


def check_forest(arrays: Mapping[str, npt.NDArray[Any]], num_classes: int, width: int) -> None:
    """Raise a ValueError if the arrays are not a valid forest over `width` features."""
    missing = [name for name in NAMES if name not in arrays]
    if missing:
        raise ValueError(f"a forest needs the array {missing[0]}")
    feature, threshold, child, value, root = (arrays[name] for name in NAMES)
    nodes = len(feature)
    if "task" in arrays:
        task = arrays["task"]
        if task.shape != root.shape or task.dtype.kind != "i" or set(np.unique(task)) != set(range(num_classes)):
            raise ValueError(f"task must hold the number of every tree's task, 0 to {num_classes - 1}")
        num_classes = 1
    if threshold.shape != (nodes,) or child.shape != (nodes, 2) or value.shape != (nodes, num_classes) or not nodes:
        raise ValueError(f"a forest of {nodes} nodes and {num_classes} classes does not have arrays of these shapes")
    for name, array, most in (("feature", feature, width), ("child", child, nodes), ("root", root, nodes)):
        if not array.size or array.dtype.kind != "i" or array.min() < 0 or array.max() >= most:
            raise ValueError(f"{name} must hold whole numbers from 0 to {most - 1}")
    here = np.arange(nodes)[:, None]
    leaf = (child == here).all(axis=1)
    if not (leaf | (child > here).all(axis=1)).all():  # children come after their parent, so evaluation always ends
        raise ValueError("a node of the forest has a child that comes before it")
    if not np.isfinite(threshold).all() or not np.isfinite(value).all():
        raise ValueError("a forest needs finite thresholds and shares")


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Values = npt.NDArray[Any]
SCALES = np.geomspace(0.1, 30, 60)  # candidate factors of the decision values, to turn them into probabilities


class Fitter:
    """Fits one kind of target; w: the weight of each row, (n,), None = all equal."""

    def constant(self, y: Values, w: Floats | None, K: int) -> Floats:
        """The constant prediction, the same for every graph, (K,)."""
        raise NotImplementedError

    def forest(self, z: Any, y: Values, w: Floats | None, K: int, trees: int, seed: int) -> Arrays:
        """A random forest as arrays."""
        raise NotImplementedError

    def linear(self, z: Any, y: Values, w: Floats | None, K: int, C: float, seed: int) -> tuple[Floats, Floats]:
        """Coefficients (K, D) and biases (K,) of a linear model whose penalty is 1 / C."""
        raise NotImplementedError

    def quality(self, decision: Floats, y: Values) -> float:
        """The quality of decision values (n, K) on the validation part; higher is better."""
        raise NotImplementedError

    def scale(self, decision: Floats, y: Values) -> Floats:
        """The factors of the decision values with the lowest loss on the validation part, (1,) or (K,)."""
        return np.ones(1)

    def answers(self, decision: Floats) -> Floats:
        """The predictions for scaled decision values, (n, K)."""
        return decision


class ClassFitter(Fitter):
    """One of C classes."""

    def constant(self, y: Values, w: Floats | None, K: int) -> Floats:
        """The share of every class."""
        total = np.bincount(y, weights=w, minlength=K).astype(np.float64)
        shares: Floats = total / total.sum()
        return shares

    def forest(self, z: Any, y: Values, w: Floats | None, K: int, trees: int, seed: int) -> Arrays:
        """A forest of classification trees."""
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(trees, random_state=seed, n_jobs=get_num_threads())
        return forest_arrays(forest.fit(z, y, sample_weight=w), K)

    def linear(self, z: Any, y: Values, w: Floats | None, K: int, C: float, seed: int) -> tuple[Floats, Floats]:
        """A linear SVM; a class that does not occur is never predicted."""
        svm = _svm(z, y, w, C, seed)
        coef, bias = svm.coef_, svm.intercept_
        if len(svm.classes_) == 2:  # scikit-learn keeps only the row of the second class
            coef, bias = np.concatenate([-coef, coef]), np.concatenate([-bias, bias])
        rows, biases = np.zeros((K, coef.shape[1])), np.full(K, -1e3)
        rows[svm.classes_], biases[svm.classes_] = coef, bias
        return rows, biases

    def quality(self, decision: Floats, y: Values) -> float:
        """Accuracy."""
        return float((decision.argmax(axis=1) == y).mean()) if len(y) else 0.0

    def scale(self, decision: Floats, y: Values) -> Floats:
        """One factor for all classes."""
        if not len(y):
            return np.ones(1)
        losses = [-np.log(np.maximum(_softmax(a * decision)[np.arange(len(y)), y], 1e-12)).mean() for a in SCALES]
        return SCALES[[int(np.argmin(losses))]]

    def answers(self, decision: Floats) -> Floats:
        """Softmax."""
        return _softmax(decision)


class ValueFitter(Fitter):
    """Measured values; each task is fitted on the graphs that have a value for it."""

    def constant(self, y: Values, w: Floats | None, K: int) -> Floats:
        """The mean of every task."""
        return np.array([float(np.average(v, weights=u)) if len(v) else 0.0 for _, v, u in _tasks(y, w)])

    def forest(self, z: Any, y: Values, w: Floats | None, K: int, trees: int, seed: int) -> Arrays:
        """One forest per task; a task without values always predicts 0."""
        forests = []
        for rows, v, u in _tasks(y, w):
            rows, v, u = (rows, v, u) if len(rows) else (np.arange(1), np.zeros(1), None)
            forests.append(self.task_forest(z[rows], v, u, trees, seed))
        return join_forests(forests)

    def task_forest(self, z: Any, v: Floats, u: Floats | None, trees: int, seed: int) -> Arrays:
        """Regression trees with a third of the features per split."""
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(trees, max_features=1 / 3, random_state=seed, n_jobs=get_num_threads())
        factor = _enlarge(v)
        arrays = forest_arrays(forest.fit(z, v * factor, sample_weight=u), 1)
        return arrays | {"value": arrays["value"] / factor}

    def linear(self, z: Any, y: Values, w: Floats | None, K: int, C: float, seed: int) -> tuple[Floats, Floats]:
        """Ridge regression."""
        from sklearn.linear_model import Ridge

        coef, bias = np.zeros((K, z.shape[1])), np.zeros(K)
        for t, (rows, v, u) in enumerate(_tasks(y, w)):
            if len(rows):
                ridge = Ridge(alpha=1 / C, solver="sparse_cg", tol=1e-6).fit(z[rows], v, sample_weight=u)
                coef[t], bias[t] = ridge.coef_, ridge.intercept_
        return coef, bias

    def quality(self, decision: Floats, y: Values) -> float:
        """Minus the mean squared error, each task in units of its variance."""
        tasks = enumerate(_tasks(y, None))
        errors = [np.mean((decision[r, t] - v) ** 2) / (np.var(v) or 1.0) for t, (r, v, _) in tasks if len(r)]
        return -float(np.mean(errors)) if errors else 0.0


def _enlarge(v: Floats) -> float:
    """The power of two that brings small values to a deviation of about 1; 1 for others.

    scikit-learn's trees do not split a node whose variance is below 2e-16, such as concentrations of 1e-9 mol/l.
    """
    deviation = float(np.std(v))
    return 1.0 if deviation == 0 or deviation > 1e-3 else float(2.0 ** -np.round(np.log2(deviation)))


class YesNoFitter(ValueFitter):
    """Yes/no tasks: forests of classification trees, and SVMs as linear models."""

    def task_forest(self, z: Any, v: Floats, u: Floats | None, trees: int, seed: int) -> Arrays:
        """Classification trees; the value of a leaf is its share of yes, (nodes, 1)."""
        arrays = ClassFitter().forest(z, v.astype(np.int64), u, 2, trees, seed)
        return arrays | {"value": arrays["value"][:, 1:]}

    def linear(self, z: Any, y: Values, w: Floats | None, K: int, C: float, seed: int) -> tuple[Floats, Floats]:
        """One linear SVM per task; a task with a single value always predicts it."""
        coef, bias = np.zeros((K, z.shape[1])), np.zeros(K)
        for t, (rows, v, u) in enumerate(_tasks(y, w)):
            if len(np.unique(v)) < 2:
                bias[t] = 0.0 if not len(v) else 3.0 if v[0] else -3.0
                continue
            svm = _svm(z[rows], v.astype(np.int64), u, C, seed)
            coef[t], bias[t] = svm.coef_[0], svm.intercept_[0]
        return coef, bias

    def quality(self, decision: Floats, y: Values) -> float:
        """The mean ROC-AUC."""
        from sklearn.metrics import roc_auc_score

        tasks = enumerate(_tasks(y, None))
        areas = [roc_auc_score(v, decision[rows, t]) for t, (rows, v, _) in tasks if len(np.unique(v)) > 1]
        return float(np.mean(areas)) if areas else 0.0

    def scale(self, decision: Floats, y: Values) -> Floats:
        """One factor per task."""
        factors = np.ones(decision.shape[1])
        for t, (rows, v, _) in enumerate(_tasks(y, None)):
            if len(rows):
                d = decision[rows, t] * np.where(v == 1, 1, -1)
                factors[t] = SCALES[int(np.argmin([np.logaddexp(0, -a * d).mean() for a in SCALES]))]
        return factors

    def answers(self, decision: Floats) -> Floats:
        """Sigmoid."""
        p: Floats = 1 / (1 + np.exp(-np.clip(decision, -500, 500)))
        return p


FITTERS: dict[str, Fitter] = {
    "classification": ClassFitter(), "regression": ValueFitter(), "multilabel": YesNoFitter()
}  # fmt: skip


def fitter_of(target: Target | None) -> Fitter:
    """The fitter of a target; None = classification."""
    return FITTERS["classification" if target is None else target.kind]


def _tasks(y: Values, w: Floats | None) -> list[tuple[Ints, Floats, Floats | None]]:
    """Rows, values and weights of every task, without missing values."""
    rows = [np.flatnonzero(~np.isnan(column)) for column in y.T]
    return [(r, y[r, t], None if w is None else w[r]) for t, r in enumerate(rows)]


def _svm(z: Any, y: Ints, w: Floats | None, C: float, seed: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    svm = LinearSVC(C=C, random_state=seed, max_iter=2000)
    with warnings.catch_warnings():  # a nearly converged SVM is good enough to choose C on the validation part
        warnings.simplefilter("ignore", ConvergenceWarning)
        return svm.fit(z, y, sample_weight=w)


def _softmax(logits: Floats) -> Floats:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p: Floats = e / e.sum(axis=1, keepdims=True)
    return p
