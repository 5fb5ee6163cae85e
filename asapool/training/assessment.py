"""How far scores can be trusted: bootstrap intervals, the trivial answer beside them, and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.training.metrics import METRICS, roc_auc

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
RESAMPLES = 1000
LEVEL = 0.05  # of tests; intervals cover 1 − LEVEL


def intervals(
    y: npt.ArrayLike, probability: npt.ArrayLike, *, resamples: int | None = None, seed: int = 0
) -> dict[str, list[float] | None]:
    """Percentile bootstrap intervals over graphs, 95 %, for every metric; None where a metric is undefined.

    Args:
        y: class numbers, (G,); graphs without a label (-1) are left out.
        probability: (G, C).
        resamples: how often G graphs are drawn with replacement; 1000 by default, 200 for more than 2000 graphs.
        seed: of the draws.

    Returns:
        Metric name → [lower, upper].

    >>> intervals([0, 1, 0, 1], np.eye(2)[[0, 1, 0, 1]])["accuracy"]
    [1.0, 1.0]
    """
    truth, p = _with_labels(y, probability)
    G, draw = len(truth), np.random.default_rng(seed)
    resamples = resamples or (RESAMPLES if G <= 2000 else RESAMPLES // 5)
    values: dict[str, list[float]] = {name: [] for name in METRICS}
    for _ in range(resamples if G else 0):
        w = draw.multinomial(G, np.full(G, 1 / G))
        for name, metric in METRICS.items():
            value = metric.compute(truth, p, w)
            if value is not None:
                values[name].append(value)
    # a small part may miss a class in some draws; where most draws do, there is nothing to report
    enough = {name: v for name, v in values.items() if len(v) > resamples / 2}
    ends = [LEVEL / 2, 1 - LEVEL / 2]
    return {name: np.quantile(enough[name], ends).tolist() if name in enough else None for name in METRICS}


def against_trivial(y: npt.ArrayLike, probability: npt.ArrayLike, answer: int) -> dict[str, Any]:
    """Compare a model with the trivial one that always answers with one class.

    Accuracy is compared by McNemar's exact test on the graphs that only one of the two gets right, the ranking of two
    classes by the Mann-Whitney test of ROC-AUC = 0.5; both are one-sided.

    Args:
        y: class numbers, (G,).
        probability: (G, C).
        answer: the class that the trivial model answers with, the most frequent one of the training part.

    Returns:
        accuracy of the trivial model; p_accuracy and p_roc_auc (None where undefined); better: whether one of the tests
        says so at 5 %, corrected for there being two (Holm).

    >>> against_trivial([0] * 8 + [1] * 8, np.eye(2)[[0] * 8 + [1] * 8], 0)["p_accuracy"]
    0.00390625
    """
    from scipy.stats import binomtest, mannwhitneyu

    truth, p = _with_labels(y, probability)
    if len(truth) == 0:
        return {"accuracy": None, "p_accuracy": None, "p_roc_auc": None, "better": None}
    right, trivial = p.argmax(axis=1) == truth, truth == answer
    won, lost = int((right & ~trivial).sum()), int((trivial & ~right).sum())
    p_accuracy = float(binomtest(won, won + lost, alternative="greater").pvalue) if won + lost else 1.0
    p_roc = None
    if p.shape[1] == 2 and roc_auc(truth, p) is not None:
        p_roc = float(mannwhitneyu(p[truth == 1, 1], p[truth == 0, 1], alternative="greater").pvalue)
    tests = [value for value in (p_accuracy, p_roc) if value is not None]
    better = min(tests) * len(tests) < LEVEL
    return {"accuracy": float(trivial.mean()), "p_accuracy": p_accuracy, "p_roc_auc": p_roc, "better": better}


def warnings_for(
    y: npt.ArrayLike, probability: npt.ArrayLike, class_names: Sequence[str], part: str, trivial: dict[str, Any]
) -> list[str]:
    """What a user should know before trusting the scores of a part, one sentence each.

    >>> warnings_for([0, 1], [[0.9, 0.1], [0.8, 0.2]], ["no", "yes"], "test", {"better": True})
    ["the model answers 'no' for all 2 test graphs"]
    """
    truth, p = _with_labels(y, probability)
    if len(truth) == 0:
        return []
    texts = []
    present, answers = np.unique(truth), np.unique(p.argmax(axis=1))
    if len(present) == 1:
        texts.append(f"all {len(truth)} {part} graphs are of the class {class_names[present[0]]!r}")
    if len(answers) == 1:
        texts.append(f"the model answers {class_names[answers[0]]!r} for all {len(truth)} {part} graphs")
    if trivial.get("better") is False:
        tests = [f"p = {trivial[k]:.2g} for {label}" for k, label in _TESTS if trivial.get(k) is not None]
        texts.append(
            f"on the {part} part the model is not shown to be better than always answering with the most frequent "
            f"class of the training graphs ({', '.join(tests)})"
        )
    return texts


_TESTS = (("p_accuracy", "accuracy"), ("p_roc_auc", "ROC AUC"))


def _with_labels(y: npt.ArrayLike, probability: npt.ArrayLike) -> tuple[Ints, Floats]:
    truth, p = np.asarray(y, np.int64), np.asarray(probability, np.float64)
    return truth[truth >= 0], p[truth >= 0]
