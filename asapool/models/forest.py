"""A random forest as plain arrays: scikit-learn grows it, a few gathers read it, and no pickle stores it.

All trees lie end to end. Node n goes to child[n, 0] where z[feature[n]] ≤ threshold[n] and else to child[n, 1]; a leaf
has itself as both children. value[n] holds the class shares of a node, root[t] is the first node of tree t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]
NAMES = ("feature", "threshold", "child", "value", "root")
ROWS = 256  # samples that go down the trees at once


def forest_arrays(grown: Any, num_classes: int) -> Arrays:
    """The trees of a fitted scikit-learn forest of classes or values; classes that it has not seen get the share 0."""
    trees = [estimator.tree_ for estimator in grown.estimators_]
    first = np.cumsum([0] + [tree.node_count for tree in trees])
    child, value = [], []
    classes = getattr(grown, "classes_", None)  # a forest of values has none
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
    >>> grown = RandomForestClassifier(5, random_state=0).fit(z, y)
    >>> bool(np.allclose(forest_probability(forest_arrays(grown, 2), z), grown.predict_proba(z)))
    True
    """
    feature, threshold, child, value = (arrays[name] for name in NAMES[:4])
    out = np.empty((len(z), value.shape[1]))
    for start in range(0, len(z), ROWS):
        part = z[start : start + ROWS]
        row = np.arange(len(part))[:, None]
        node = np.broadcast_to(arrays["root"], (len(part), len(arrays["root"])))
        while True:
            below = child[node, (part[row, feature[node]] > threshold[node]).astype(np.int8)]
            if np.array_equal(below, node):
                break
            node = below
        out[start : start + ROWS] = value[node].mean(axis=1)
    return out


def join_forests(forests: Sequence[Arrays]) -> Arrays:
    """The forests of several tasks end to end; task[t] is the number of tree t's task."""
    first = np.cumsum([0, *(len(forest["feature"]) for forest in forests)])
    joined = {name: np.concatenate([forest[name] for forest in forests]) for name in ("feature", "threshold", "value")}
    for name in ("child", "root"):
        moved = [forest[name] + n for forest, n in zip(forests, first.tolist(), strict=False)]
        joined[name] = np.concatenate(moved).astype(np.int32)
    counts = [len(forest["root"]) for forest in forests]
    return joined | {"task": np.repeat(np.arange(len(forests)), counts).astype(np.int32)}


def forest_answers(arrays: Mapping[str, npt.NDArray[Any]], z: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The answers of a forest of classes, (B, C), or of one forest per task, (B, T)."""
    if "task" not in arrays:
        return forest_probability(arrays, z)
    task = arrays["task"]
    each = [forest_probability({**arrays, "root": arrays["root"][task == t]}, z) for t in range(int(task.max()) + 1)]
    return np.concatenate(each, axis=1)


def check_forest(arrays: Mapping[str, npt.NDArray[Any]], num_classes: int, width: int) -> None:
    """Raise a ValueError where the arrays cannot be a forest over `width` features."""
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
    if not (leaf | (child > here).all(axis=1)).all():  # children come after their parent, so every walk ends
        raise ValueError("a node of the forest has a child that comes before it")
    if not np.isfinite(threshold).all() or not np.isfinite(value).all():
        raise ValueError("a forest needs finite thresholds and shares")
