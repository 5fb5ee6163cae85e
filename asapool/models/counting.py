"""Baselines on counts: WL subtrees with a linear SVM, ECFP and node labels with a random forest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.models.direct import DirectModel, Floats, Ints
from asapool.models.fitters import check_forest, fitter_of, forest_answers

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from asapool.data import GraphSet

DEPTHS = (1, 2, 3, 4, 5)
PENALTIES = (0.001, 0.01, 0.1, 1.0)  # C of the SVM


class WLSubtree(DirectModel):
    """Weisfeiler-Lehman subtree counts and a linear SVM.

    p = softmax(a (K z̃ + b)), z̃ = log(1 + counts of the labels up to a depth). The depth and the SVM's C have the
    highest validation accuracy (ties: the smaller), a has the lowest validation log loss; without a validation part
    they are 3, 0.01 and 1. Each yes/no task has its own SVM; measured values use ridge regression. Labels that do not
    occur in the training graphs are ignored.
    """

    def fit_graphs(self, graphs: GraphSet, train: Ints, val: Ints, seed: int, weight: Floats | None = None) -> None:
        """Choose depth and C on the validation part, and keep the SVM of the training part."""
        fitter = fitter_of(graphs.target)
        best: tuple[float, dict[str, Any]] | None = None
        grid = [(depth, C) for depth in DEPTHS for C in PENALTIES] if len(val) else [(3, 0.01)]
        known, columns = np.zeros(0, np.int64), None
        for depth, C in grid:
            if columns is None or depth != columns[0]:
                labels = _labels(graphs, np.concatenate([train, val]), depth)
                known = np.unique(labels[0][labels[1] < len(train)])
                columns = (depth, _counts(labels, known, len(train) + len(val)))
            z = columns[1]
            coef, bias = fitter.linear(z[: len(train)], graphs.y[train], weight, self.num_classes, C, seed % 2**32)
            decision = z[len(train) :] @ coef.T + bias
            quality = fitter.quality(decision, graphs.y[val])
            if best is None or quality > best[0]:
                scale = fitter.scale(decision, graphs.y[val])
                best = quality, {"label": known, "coef": coef, "bias": bias, "depth": depth, "C": C, "scale": scale}
        assert best is not None
        chosen = {name: np.atleast_1d(np.asarray(value)) for name, value in best[1].items()}
        used = (chosen["coef"] != 0).any(axis=0)
        self.set_arrays(**chosen | {"label": chosen["label"][used], "coef": chosen["coef"][:, used]})

    def predict_graphs(self, graphs: GraphSet, indices: Ints) -> Floats:
        """Predictions from the scaled decision values: their softmax for classification."""
        if not len(indices):
            return np.zeros((0, self.num_classes))
        labels = _labels(graphs, indices, int(self.array("depth")[0]))
        z = _counts(labels, self.array("label"), len(indices))
        decision = z @ self.array("coef").T + self.array("bias")
        return fitter_of(self.target).answers(self.array("scale") * decision)

    def check_arrays(self) -> None:
        """Check the arrays: one row of coefficients per class, one column per label, labels ascending."""
        label, coef, bias, depth = (self.array(name) for name in ("label", "coef", "bias", "depth"))
        if coef.shape != (self.num_classes, len(label)) or bias.shape != (self.num_classes,):
            raise ValueError(f"{self.num_classes} classes and {len(label)} labels do not fit coef of {coef.shape}")
        if label.dtype != np.int64 or (np.diff(label.astype(object)) <= 0).any():
            raise ValueError("the labels must be int64 and ascending")
        if depth.dtype.kind != "i" or depth.shape != (1,) or not 0 <= depth[0] <= max(DEPTHS):
            raise ValueError(f"depth must be a whole number from 0 to {max(DEPTHS)}")


class CountForest(DirectModel):
    """A random forest of 500 trees per task on counts; a subclass defines what is counted."""

    trees = 500

    def counts(self, graphs: GraphSet) -> csr_matrix | npt.NDArray[np.float32]:
        """The features of each graph, (G, D) float32."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """D, the number of features."""
        raise NotImplementedError

    def fit_graphs(self, graphs: GraphSet, train: Ints, val: Ints, seed: int, weight: Floats | None = None) -> None:
        """Grow the forest on the training part; nothing is chosen on the validation part."""
        z, fitter = self.counts(graphs.subset(train)), fitter_of(graphs.target)
        self.set_arrays(**fitter.forest(z, graphs.y[train], weight, self.num_classes, self.trees, seed % 2**32))

    def predict_graphs(self, graphs: GraphSet, indices: Ints) -> Floats:
        """The mean prediction of the trees."""
        arrays = {name: self.array(name) for name in self._buffers}
        parts = [np.zeros((0, self.num_classes))]
        for start in range(0, len(indices), 4096):
            z = self.counts(graphs.subset(indices[start : start + 4096]))
            parts.append(forest_answers(arrays, z if isinstance(z, np.ndarray) else z.toarray()))
        return np.concatenate(parts)

    def check_arrays(self) -> None:
        """Check that the arrays are those of a forest."""
        check_forest({name: self.array(name) for name in self._buffers}, self.num_classes, self.width)


class Ecfp(CountForest):
    """ECFP4 counts in 2,048 buckets; molecules only."""

    @property
    def width(self) -> int:
        """2,048 buckets."""
        return 2048

    def counts(self, graphs: GraphSet) -> csr_matrix:
        """ECFP counts."""
        from asapool.data.descriptors import ecfp_counts

        return ecfp_counts(graphs, radius=2, buckets=self.width)


class Histogram(CountForest):
    """The sum of the node features of a graph: with one-hot labels, how often each label occurs."""

    @property
    def width(self) -> int:
        """One column per node feature."""
        return self.in_channels

    def counts(self, graphs: GraphSet) -> npt.NDArray[np.float32]:
        """z_b = Σ_i x_i."""
        out = np.zeros((len(graphs), graphs.num_features), np.float64)
        np.add.at(out, np.repeat(np.arange(len(graphs)), np.diff(graphs.ptr)), graphs.x)
        return out.astype(np.float32)


def _labels(graphs: GraphSet, indices: Ints, depth: int) -> tuple[Ints, Ints]:
    """The WL labels of some graphs up to a depth, and for each label the position of its graph in indices."""
    import torch

    from asapool.kernels import subtree_labels

    part = graphs.subset(indices)
    x, rowptr, col = (torch.from_numpy(array.copy()) for array in (part.x, part.rowptr, part.col))
    edge = None if part.edge_attr is None else torch.from_numpy(part.edge_attr.copy())
    labels: Ints = subtree_labels(x, rowptr, col, depth, edge, backend="reference").numpy()
    owner = np.repeat(np.arange(len(part)), np.diff(part.ptr))
    return labels.ravel(), np.tile(owner, len(labels))


def _counts(labels: tuple[Ints, Ints], known: Ints, G: int) -> csr_matrix:
    """log(1 + count) of every known label, (G, K)."""
    from scipy.sparse import csr_matrix

    place = np.searchsorted(known, labels[0])
    hit = np.zeros(len(place), bool) if not len(known) else known[np.minimum(place, len(known) - 1)] == labels[0]
    counts = csr_matrix((np.ones(int(hit.sum())), (labels[1][hit], place[hit])), shape=(G, len(known)))
    counts.sum_duplicates()
    counts.data = np.log1p(counts.data)
    return counts
