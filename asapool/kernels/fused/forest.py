"""The leaves that samples reach in the trees of a forest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.kernels.fused.compiled import Loop, run_rows


@Loop
def _leaf_rows(start, stop, feature, threshold, child, root, z, leaf):  # type: ignore[no-untyped-def]
    """The leaf of every tree for rows start … stop of z; a leaf is its own child."""
    for b in range(start, stop):
        for t in range(len(root)):
            node = root[t]
            while child[node, 0] != node:
                node = child[node, 1] if z[b, feature[node]] > threshold[node] else child[node, 0]
            leaf[b, t] = node


def forest_leaves(
    feature: npt.NDArray[np.int32], threshold: npt.NDArray[np.float64], child: npt.NDArray[np.int32],
    root: npt.NDArray[np.int32], z: npt.NDArray[np.float32],
) -> npt.NDArray[np.int32]:  # fmt: skip
    """The leaf of every sample in every tree, (B, T).

    Args:
        feature: which feature a node compares, (nodes,).
        threshold: a greater value goes to the second child, (nodes,).
        child: both children of a node, (nodes, 2); a leaf is its own child.
        root: the first node of every tree, (T,).
        z: features (B, D).

    >>> child = np.array([[1, 2], [1, 1], [2, 2]], np.int32)  # one tree: z > 5 goes to node 2
    >>> z = np.array([[4.0], [6.0]], np.float32)
    >>> forest_leaves(np.zeros(3, np.int32), np.full(3, 5.0), child, np.zeros(1, np.int32), z).tolist()
    [[1], [2]]
    """
    leaf = np.empty((len(z), len(root)), np.int32)
    arrays: list[Any] = [np.ascontiguousarray(a) for a in (feature, threshold, child, root, z)]
    run_rows(_leaf_rows, len(z), 1000 * leaf.size, *arrays, leaf)
    return leaf
