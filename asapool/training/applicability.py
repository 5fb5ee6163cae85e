"""How far a graph is from the training graphs, measured between their embeddings.

d(g) = mean distance of g's embedding to the 5 nearest embeddings of training graphs, in at most 32 directions of
greatest variance, each scaled to deviation 1. A graph is unlike the training set if d(g) is greater than that of 99 %
of the training graphs, each measured against the others.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.errors import CheckpointError

Floats = npt.NDArray[np.float64]
DIRECTIONS, NEIGHBOURS, MOST, GRID = 32, 5, 4096, 1000
UNLIKE = 0.99  # a graph beyond this quantile is flagged


def sample(count: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """Which of so many graphs a reference is made of, ascending: all, or some drawn at random.

    >>> sample(3).tolist(), len(sample(10_000))
    ([0, 1, 2], 4096)
    """
    if count <= MOST:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, MOST, replace=False))


class Reference:
    """The embeddings of training graphs, few enough to be part of a model file.

    Args:
        mean: of the embeddings, (W,).
        axes: directions, each divided by its deviation, (W, D).
        points: training graphs in these directions, (R, D).
        quantiles: distances of the training graphs, from the smallest to the largest, (GRID + 1,).

    >>> line = Reference.fit(np.arange(50.0)[:, None])
    >>> quantile = line.quantile(np.array([[25.0], [500.0]]))
    >>> bool(quantile[0] < 0.5), quantile[1]
    (True, np.float64(1.0))
    """

    def __init__(self, mean: Floats, axes: Floats, points: Floats, quantiles: Floats) -> None:
        self.mean, self.axes, self.points, self.quantiles = mean, axes, points, quantiles

    @classmethod
    def fit(cls, vectors: npt.NDArray[Any], seed: int = 0) -> Reference | None:
        """The reference of training vectors (G, W); None for fewer than two graphs or vectors that are all equal."""
        v = vectors.astype(np.float64)
        if len(v) < 2:
            return None
        from threadpoolctl import threadpool_limits

        v = v[sample(len(v), seed)]
        mean = _rounded(v.mean(axis=0))
        with threadpool_limits(1, user_api="blas"):  # the model file must not depend on the number of threads
            variance, directions = np.linalg.eigh((v - mean).T @ (v - mean) / len(v))
        order = np.argsort(variance)[::-1][:DIRECTIONS]
        order = order[variance[order] > 1e-9 * max(variance.max(), 1e-30)]
        if not len(order) or variance.max() <= 0:
            return None
        axes = directions[:, order]
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])  # the sign is arbitrary
        axes = _rounded(axes / np.sqrt(variance[order]))
        points = _rounded((v - mean) @ axes)
        reference = cls(mean, axes, points, np.zeros(GRID + 1))
        distances = reference._nearest(points, leave_out=True)
        reference.quantiles = _rounded(np.quantile(distances, np.linspace(0, 1, GRID + 1)))
        return reference

    def project(self, vectors: npt.NDArray[Any]) -> Floats:
        """Vectors (G, W) in the directions in which distances are measured, (G, D)."""
        points: Floats = (vectors.astype(np.float64) - self.mean) @ self.axes
        return points

    def distance(self, vectors: npt.NDArray[Any]) -> Floats:
        """d of every graph, (G,)."""
        return self._nearest(self.project(vectors))

    def quantile(self, vectors: npt.NDArray[Any]) -> Floats:
        """The share of training graphs that are closer to the others than this graph is, (G,)."""
        share: Floats = np.searchsorted(self.quantiles, self.distance(vectors), side="left") / (GRID + 1)
        return np.minimum(share, 1.0)

    @cached_property
    def _index(self) -> Any:
        from sklearn.neighbors import NearestNeighbors

        return NearestNeighbors(algorithm="brute").fit(self.points)

    def _nearest(self, points: Floats, leave_out: bool = False) -> Floats:
        if not len(points):
            return np.zeros(0)
        k = min(NEIGHBOURS, len(self.points) - leave_out)
        return self._index.kneighbors(None if leave_out else points, k)[0].mean(axis=1)  # type: ignore[no-any-return]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a model file."""
        arrays = {"mean": self.mean, "axes": self.axes, "points": self.points, "quantiles": self.quantiles}
        return {name: _packed(array) for name, array in arrays.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reference:
        """The reference that to_dict was called on."""
        try:
            mean, axes, points, quantiles = (_unpacked(values[n]) for n in ("mean", "axes", "points", "quantiles"))
            fits = axes.shape == (len(mean), points.shape[1]) and quantiles.shape == (GRID + 1,) and len(points) > 1
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CheckpointError(f"the training vectors of the model are damaged ({error}). Train again") from None
        if not fits or not all(np.isfinite(a).all() for a in (mean, axes, points, quantiles)):
            raise CheckpointError("the training vectors of the model are damaged (shapes or values). Train again")
        return cls(mean, axes, points, quantiles)


def _rounded(values: Floats) -> Floats:
    """Rounded to float32, so that distances are the same before and after saving."""
    return values.astype(np.float32).astype(np.float64)


def _packed(values: Floats) -> dict[str, Any]:
    data = np.ascontiguousarray(values, "<f4").tobytes()
    return {"shape": list(values.shape), "float32": base64.b64encode(data).decode("ascii")}


def _unpacked(value: Mapping[str, Any]) -> Floats:
    data = np.frombuffer(base64.b64decode(value["float32"], validate=True), "<f4")
    return data.reshape([int(n) for n in value["shape"]]).astype(np.float64)
