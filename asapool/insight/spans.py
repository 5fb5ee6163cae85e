"""How far a network sees: the span of the receptive field of its nodes, level by level, before any training.

As in `forecast`, the nodes that pooling keeps are drawn at random, because the fitness is not known yet.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from asapool.errors import choose
from asapool.insight.forecasting import check_graphs, cut, pool_at_random
from asapool.kernels.ratio import check_ratio, kept_count
from asapool.theory.graphs import positive

Array = np.ndarray[Any, np.dtype[Any]]


def receptive_spans(
    rowptr: Array, col: Array, ptr: Array, *, method: Literal["asap", "topk", "none"] = "asap",
    ratio: float | int = 0.5, levels: int = 2, first_convs: int = 2, level_convs: int = 1, samples: int = 4,
    max_graphs: int = 64, seed: int = 0,
) -> list[float]:  # fmt: skip
    """The largest distance between two input nodes that one node depends on, before pooling and after each level.

    R = (A + I)^first_convs; at every level R ← Ŝᵀ R, then R ← (A^p + I)^level_convs R; node p sees {v : R_pv ≠ 0}

    The default numbers of convolutions are those of `asap+`. A task that depends on two parts of a graph which are
    further apart than this is hard for the network: no node sees both.

    Args:
        rowptr: (N+1,) rows of all graphs, concatenated.
        col: (E,) their columns.
        ptr: (B+1,) first node of each graph.
        method: "asap", "topk", or "none" for the same convolutions without pooling.
        ratio: share of nodes kept.
        levels: number of poolings.
        first_convs: convolutions before the first pooling.
        level_convs: convolutions after each pooling.
        samples: random selections.
        max_graphs: graphs per selection.
        seed: of the selections.

    Returns:
        levels + 1 means over graphs, in hops.

    >>> path = np.array([[v - 1, v + 1] for v in range(1, 19)])
    >>> col, rowptr = np.concatenate([[1], path.ravel(), [18]]), np.concatenate([[0], np.arange(1, 38, 2), [38]])
    >>> receptive_spans(rowptr, col, np.array([0, 20]), method="none")  # two hops to both sides, then three, then four
    [4.0, 6.0, 8.0]
    """
    rowptr, col, ptr = (np.asarray(a, dtype=np.int64) for a in (rowptr, col, ptr))
    check_graphs(rowptr, col, ptr)
    choose("method", method, ("asap", "topk", "none"))
    ratio = check_ratio(ratio)
    for name, value in (("levels", levels), ("first_convs", first_convs), ("level_convs", level_convs)):
        positive(name, value)
    rng, B = np.random.default_rng(seed), len(ptr) - 1
    rows = []
    for _ in range(positive("samples", samples)):
        for graph in np.sort(rng.choice(B, min(B, positive("max_graphs", max_graphs)), replace=False)):
            A, size = cut(rowptr, col, ptr, np.array([graph]))
            rows.append(_spans(A, size, method, ratio, [first_convs] + [level_convs] * levels, rng))
    return [float(mean) for mean in np.mean(rows, axis=0)]


def _spans(
    A: Any, size: Array, method: str, ratio: float | int, convs: list[int], rng: np.random.Generator
) -> list[float]:
    """The spans of one graph."""
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.csgraph import shortest_path

    D = shortest_path(A, unweighted=True)
    R, row = csr_array(np.eye(len(D), dtype=np.float32)), list[float]()
    for level, count in enumerate(convs):
        if level > 0 and method != "none":
            A, size, S = pool_at_random(A, size, kept_count(size, ratio), method, 1, rng)
            R = S @ R
        hat = A + eye_array(A.shape[0], dtype=np.float32, format="csr")
        for _ in range(count):
            R = (hat @ R > 0).astype(np.float32)
        seen = (np.flatnonzero(one) for one in R.toarray())
        row.append(float(max(D[np.ix_(nodes, nodes)].max() for nodes in seen)))
    return row
