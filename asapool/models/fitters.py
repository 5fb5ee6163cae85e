"""What the direct models fit for each kind of target: constants, forests and linear models, in one table."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asapool.models.forest import Arrays, forest_arrays, join_forests

if TYPE_CHECKING:
    from asapool.data.targets import Target

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Values = npt.NDArray[Any]
SCALES = np.geomspace(0.1, 30, 60)  # of the decision values, on the way to probabilities


class Fitter:
    """Fits one kind of target; w: how much each row counts, (n,), None = all the same."""

    def constant(self, y: Values, w: Floats | None, K: int) -> Floats:
        """The same answer for every graph, (K,)."""
        raise NotImplementedError

    def forest(self, z: Any, y: Values, w: Floats | None, K: int, trees: int, seed: int) -> Arrays:
        """A random forest as arrays."""
        raise NotImplementedError

    def linear(self, z: Any, y: Values, w: Floats | None, K: int, C: float, seed: int) -> tuple[Floats, Floats]:
        """Coefficients (K, D) and biases (K,) of a linear model whose penalty is 1 / C."""
        raise NotImplementedError

    def quality(self, decision: Floats, y: Values) -> float:
        """How good decision values (n, K) are on the validation part; greater is better."""
        raise NotImplementedError

    def scale(self, decision: Floats, y: Values) -> Floats:
        """The factors of the decision values with the lowest loss on the validation part, (1,) or (K,)."""
        return np.ones(1)

    def answers(self, decision: Floats) -> Floats:
        """What scaled decision values mean, (n, K)."""
        return decision


class ClassFitter(Fitter):
    """One of C classes."""

    def constant(self, y: Values, w: Floats | None, K: int) -> Floats:
        """The share of every class."""
        total = np.bincount(y, weights=w, minlength=K).astype(np.float64)
        shares: Floats = total / total.sum()
        return shares

    def forest(self, z: Any, y: Values, w: Floats | None, K: int, trees: int, seed: int) -> Arrays:
        """Trees of classes."""
        from sklearn.ensemble import RandomForestClassifier

        grown = RandomForestClassifier(trees, random_state=seed, n_jobs=1)
        return forest_arrays(grown.fit(z, y, sample_weight=w), K)

    def linear(self, z: Any, y: Values, w: Floats | None, K: int, C: float, seed: int) -> tuple[Floats, Floats]:
        """A linear SVM; a class that was not seen never wins."""
        svm = _svm(z, y, w, C, seed)
        coef, bias = svm.coef_, svm.intercept_
        if len(svm.classes_) == 2:  # scikit-learn keeps the second class's row only
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
    """Measured values, each task on the graphs that have a value of it."""

    def constant(self, y: Values, w: Floats | None, K: int) -> Floats:
        """The mean of every task."""
        return np.array([float(np.average(v, weights=u)) if len(v) else 0.0 for _, v, u in _tasks(y, w)])

    def forest(self, z: Any, y: Values, w: Floats | None, K: int, trees: int, seed: int) -> Arrays:
        """Trees of values, a third of the features per split; those of a task are marked by its number."""
        from sklearn.ensemble import RandomForestRegressor

        forests = []
        for rows, v, u in _tasks(y, w):
            rows, v, u = (rows, v, u) if len(rows) else (np.arange(1), np.zeros(1), None)
            grown = RandomForestRegressor(trees, max_features=1 / 3, random_state=seed, n_jobs=1)
            forests.append(forest_arrays(grown.fit(z[rows], v, sample_weight=u), 1))
        return join_forests(forests)

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


class YesNoFitter(ValueFitter):
    """Yes/no tasks: the trees of values 0 and 1 give shares; the linear models are SVMs."""

    def linear(self, z: Any, y: Values, w: Floats | None, K: int, C: float, seed: int) -> tuple[Floats, Floats]:
        """One linear SVM per task; a task with one answer only has that answer."""
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
    """The entry of a target; None = classification."""
    return FITTERS["classification" if target is None else target.kind]


def _tasks(y: Values, w: Floats | None) -> list[tuple[Ints, Floats, Floats | None]]:
    """Rows, values and weights of every task, without what is missing."""
    rows = [np.flatnonzero(~np.isnan(column)) for column in y.T]
    return [(r, y[r, t], None if w is None else w[r]) for t, r in enumerate(rows)]


def _svm(z: Any, y: Ints, w: Floats | None, C: float, seed: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    svm = LinearSVC(C=C, random_state=seed, max_iter=2000)
    with warnings.catch_warnings():  # a few steps short of the optimum is as good for a choice on validation
        warnings.simplefilter("ignore", ConvergenceWarning)
        return svm.fit(z, y, sample_weight=w)


def _softmax(logits: Floats) -> Floats:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p: Floats = e / e.sum(axis=1, keepdims=True)
    return p
