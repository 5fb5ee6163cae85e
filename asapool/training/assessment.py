"""How far scores can be trusted: bootstrap intervals, the trivial baseline beside them, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from asapool.training.metrics import METRICS, Metric, roc_auc
from asapool.training.task_scores import Part, mean_score

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Intervals = dict[str, list[float] | None]  # metric → [lower, upper]
RESAMPLES = 1000
SHOWN = 5  # tasks that a warning names
LEVEL = 0.05  # of tests; intervals cover 1 − LEVEL


def intervals(
    y: npt.ArrayLike, probability: npt.ArrayLike, *, resamples: int | None = None, seed: int = 0
) -> dict[str, list[float] | None]:
    """Percentile bootstrap intervals over graphs, 95 %, for every metric; None if a metric is undefined.

    Args:
        y: class numbers, (G,); graphs without a label (-1) are left out.
        probability: (G, C).
        resamples: how often G graphs are drawn with replacement; 1000 by default, 200 for more than 2000 graphs.
        seed: of the resampling.

    Returns:
        Metric name → [lower, upper].

    >>> intervals([0, 1, 0, 1], np.eye(2)[[0, 1, 0, 1]])["accuracy"]
    [1.0, 1.0]
    """
    truth, p = _with_labels(y, probability)
    part = Part("", np.arange(len(truth)), truth, p)
    return intervals_of([part], METRICS, len(truth), resamples=resamples, seed=seed)


def intervals_of(
    parts: Sequence[Part], metrics: Mapping[str, Metric], G: int, *, resamples: int | None = None, seed: int = 0
) -> Intervals:
    """Like intervals, for the mean over tasks of any kind.

    Args:
        parts: the entries of each task.
        metrics: the scores.
        G: graphs, which are drawn with replacement.
        resamples: how often; fewer by default for many graphs or tasks.
        seed: of the resampling.
    """
    return intervals_by_task(parts, metrics, G, resamples=resamples, seed=seed)[0]


def intervals_by_task(
    parts: Sequence[Part], metrics: Mapping[str, Metric], G: int, *, resamples: int | None = None, seed: int = 0
) -> tuple[Intervals, dict[str, Intervals]]:
    """The intervals of the mean over tasks, and of each task; arguments as in intervals_of."""
    usual = RESAMPLES if G <= 2000 and len(parts) <= 2 else RESAMPLES // 5
    return intervals_over_runs([parts], metrics, G, resamples=resamples or usual, seed=seed)


def intervals_over_runs(
    runs: Sequence[Sequence[Part]], metrics: Mapping[str, Metric], G: int, *, resamples: int, seed: int = 0
) -> tuple[Intervals, dict[str, Intervals]]:
    """Intervals of the mean over training runs that were tested on parts of the same G graphs.

    A resample draws G graphs with replacement, and every run is scored on those of its test part.

    Args:
        runs: the entries of each task, in the same order for every run; Part.rows are numbers of graphs.
        metrics: the scores.
        G: graphs.
        resamples: how often they are drawn.
        seed: of the resampling.

    Returns:
        the intervals of the mean over tasks and runs, and those of the mean over runs of each task.
    """
    draw = np.random.default_rng(seed)
    names = [part.name for part in runs[0]]
    values: dict[str, list[list[float]]] = {name: [[] for _ in range(1 + len(names))] for name in metrics}  # mean first
    for _ in range(resamples if G else 0):
        w = draw.multinomial(G, np.full(G, 1 / G))
        for name, metric in metrics.items():
            if not metric.resampled:
                continue
            each = [[mean_score([part], metric, w) for part in parts] for parts in runs]
            means = [_mean_of(scores) for scores in each]
            of_tasks = [_mean_of(scores) for scores in zip(*each, strict=True)]
            for kept, value in zip(values[name], [_mean_of(means), *of_tasks], strict=True):
                if value is not None:
                    kept.append(value)
    ends = [LEVEL / 2, 1 - LEVEL / 2]

    def of(k: int) -> Intervals:
        # a small part may miss a class in some resamples; if it does in most, there is nothing to report
        enough = {name: lists[k] for name, lists in values.items() if len(lists[k]) > resamples / 2}
        return {name: np.quantile(enough[name], ends).tolist() if name in enough else None for name in metrics}

    return of(0), {name: of(k) for k, name in enumerate(names, start=1)}


def _mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None  # a bootstrap needs thousands; np.mean takes ten times as long


def against_trivial(y: npt.ArrayLike, probability: npt.ArrayLike, answer: int) -> dict[str, Any]:
    """Compare a model with the trivial one that always predicts the same class.

    Accuracy is compared by McNemar's exact test on the graphs that only one of the two gets right, the ranking of two
    classes by the Mann-Whitney test of ROC-AUC = 0.5; both are one-sided.

    Args:
        y: class numbers, (G,).
        probability: (G, C).
        answer: the class that the trivial model predicts, the most frequent one of the training part.

    Returns:
        accuracy of the trivial model; p_accuracy and p_roc_auc (None if undefined); better: whether one of the tests
        is significant at 5 %, corrected for two tests (Holm).

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
    ["the model predicts 'no' for all 2 test graphs"]
    """
    truth, p = _with_labels(y, probability)
    if len(truth) == 0:
        return []
    texts = []
    present, answers = np.unique(truth), np.unique(p.argmax(axis=1))
    if len(truth) == 1:
        texts.append(f"there is only one {part} graph, of class {class_names[present[0]]!r}")
    elif len(present) == 1:
        texts.append(f"all {len(truth)} {part} graphs are of class {class_names[present[0]]!r}")
    if len(answers) == 1 and len(truth) > 1:
        texts.append(f"the model predicts {class_names[answers[0]]!r} for all {len(truth)} {part} graphs")
    if trivial.get("better") is False:
        tests = [f"p = {trivial[k]:.2g} for {label}" for k, label in _TESTS if trivial.get(k) is not None]
        texts.append(
            f"on the {part} graphs the model is not significantly better than always predicting the most frequent "
            f"class of the training graphs ({', '.join(tests)})"
        )
    return texts


def against_mean(parts: Sequence[Part], means: npt.ArrayLike) -> dict[str, Any]:
    """Compare predicted values with the trivial prediction, the mean of the training graphs.

    Every task is tested by Wilcoxon's signed-rank test of the squared errors of the same graphs, one-sided.

    Args:
        parts: measured and predicted values of each task.
        means: of the training graphs, one per task.

    Returns:
        tasks: name → p_error (None without values); better: whether a test is significant at 5 %, corrected for the
        number of tasks.

    >>> part = Part("logS", np.arange(8), np.arange(8.0), np.arange(8.0))
    >>> against_mean([part], [3.5])["better"]
    True
    """
    from scipy.stats import wilcoxon

    tests: dict[str, float | None] = {}
    for part, mean in zip(parts, np.asarray(means, np.float64).tolist(), strict=True):
        gain = (part.y - mean) ** 2 - (part.y - part.p) ** 2
        p = None if not len(gain) else 1.0
        if len(gain) and gain.any():
            p = float(wilcoxon(gain, alternative="greater").pvalue)
        tests[part.name] = p
    return {"tasks": {name: {"p_error": p} for name, p in tests.items()}, "better": _better(tests)}


def against_shares(parts: Sequence[Part]) -> dict[str, Any]:
    """Compare the ranking of yes/no tasks with no ranking at all, ROC-AUC = 0.5, by one-sided Mann-Whitney tests.

    Args:
        parts: class numbers (n,) and probabilities (n, 2) of each task.

    Returns:
        tasks: name → p_roc_auc (None if a class is missing); better: whether a test is significant at 5 %, corrected
        for the number of tasks.
    """
    from scipy.stats import mannwhitneyu

    tests: dict[str, float | None] = {}
    for part in parts:
        yes, no = part.p[part.y == 1, 1], part.p[part.y == 0, 1]
        both = len(yes) > 0 and len(no) > 0
        tests[part.name] = float(mannwhitneyu(yes, no, alternative="greater").pvalue) if both else None
    return {"tasks": {name: {"p_roc_auc": p} for name, p in tests.items()}, "better": _better(tests)}


def warnings_of_tasks(parts: Sequence[Part], part: str, trivial: Mapping[str, Any]) -> list[str]:
    """Like warnings_for, for tasks of any kind: equal values, equal predictions, and no better than trivial.

    >>> flat = Part("logS", np.arange(3), np.array([1.0, 2.0, 4.0]), np.ones(3))
    >>> warnings_of_tasks([flat], "test", {})
    ["the model predicts the same value of 'logS' for all 3 test graphs"]
    """
    equal = [one for one in parts if len(one.y) and len(np.unique(one.y)) == 1]
    flat = [one for one in parts if len(one.y) > 1 and _flat(one.p)]
    texts = [
        f"all {len(one.y)} {part} values of {one.name!r} are equal"
        if len(one.y) > 1
        else f"there is only one {part} value of {one.name!r}"
        for one in equal[:SHOWN]
    ]
    texts += [
        f"the model predicts the same value of {one.name!r} for all {len(one.y)} {part} graphs" for one in flat[:SHOWN]
    ]
    if trivial.get("better") is False:
        tests = list(p_of_tasks(trivial).items())
        numbers = ", ".join(f"p = {p:.2g} for {name!r}" for name, p in tests[:SHOWN]) + ", …" * (len(tests) > SHOWN)
        texts.append(
            f"on the {part} graphs the model is not significantly better than the trivial baseline, which predicts the "
            f"mean of the training graphs for every graph ({numbers})"
        )
    return texts


def constant_tasks(y: npt.NDArray[Any], names: Sequence[str]) -> list[str]:
    """A sentence for every task that cannot be learned, because all its training values are equal or missing.

    >>> constant_tasks(np.array([[0.0, 1.0], [np.nan, 0.0], [0.0, 1.0]]), ["a", "b"])
    ["all 2 training values of 'a' are equal (0), so the model cannot learn it"]
    """
    texts = []
    for name, column in zip(names, y.T, strict=True):
        known = column[~np.isnan(column)]
        if len(known) == 0:
            texts.append(f"no training graph has a value of {name!r}, so the model cannot learn it")
        elif len(np.unique(known)) == 1:
            same = f"all {len(known)} training values of {name!r} are equal"
            one = f"there is only one training value of {name!r}"
            texts.append(f"{one if len(known) == 1 else same} ({known[0]:g}), so the model cannot learn it")
    return texts[:SHOWN] + [f"and {len(texts) - SHOWN} more tasks like these"] * (len(texts) > SHOWN)


def win_text(trivial: Mapping[str, Any], baseline: str) -> str:
    """A phrase with the p value if the model is significantly better than the trivial baseline, else "".

    Args:
        trivial: as against_trivial, against_mean or against_shares return it.
        baseline: what the trivial baseline predicts.

    Returns:
        The phrase; p is corrected for the number of tests (Bonferroni).

    >>> win_text({"tasks": {"logS": {"p_error": 1e-5}}, "better": True}, "the mean value")
    'better than the mean value, p < 0.001'
    >>> tests = {"a": {"p_error": 1e-5}, "b": {"p_error": 0.4}, "c": {"p_error": None}}
    >>> win_text({"tasks": tests, "better": True}, "the mean value")
    'better than the mean value for 1 of 3 tasks, each p < 0.05 after correction'
    """
    if not trivial.get("better"):
        return ""
    if "tasks" in trivial:
        tests = p_of_tasks(trivial)
    else:
        tests = {f" for {label}": trivial[key] for key, label in _TESTS if trivial.get(key) is not None}
    known = {name: min(1.0, p * len(tests)) for name, p in tests.items()}
    if len(trivial.get("tasks", ())) > 1:
        won = sum(p < LEVEL for p in known.values())
        tasks = f"{won} of {len(trivial['tasks'])} tasks"
        return f"better than {baseline} for {tasks}, each p < {LEVEL:g} after correction"
    name, p = min(known.items(), key=lambda item: item[1])
    return f"better than {baseline}, {p_text(p)}{'' if 'tasks' in trivial else name}"


def p_of_tasks(trivial: Mapping[str, Any]) -> dict[str, float]:
    """The p value of every task that was tested, not corrected."""
    return {name: p for name, test in trivial.get("tasks", {}).items() for p in test.values() if p is not None}


def p_text(p: float) -> str:
    """A p value as text.

    >>> p_text(0.0004), p_text(0.0312)
    ('p < 0.001', 'p = 0.031')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _better(tests: Mapping[str, float | None]) -> bool | None:
    """Whether one of several tests is significant after Bonferroni's correction; None without any."""
    known = [p for p in tests.values() if p is not None]
    return bool(min(known) * len(known) < LEVEL) if known else None


def _flat(p: Floats) -> bool:
    """Whether all predictions are equal to rounding; for yes/no tasks, also on the same side."""
    if p.ndim == 2:
        return len(np.unique(p.argmax(axis=1))) == 1 and bool(np.ptp(p[:, 1]) < 1e-3)
    return bool(np.ptp(p) <= 1e-6 * max(1e-300, float(np.abs(p).max())))


_TESTS = (("p_accuracy", "accuracy"), ("p_roc_auc", "ROC AUC"))


def _with_labels(y: npt.ArrayLike, probability: npt.ArrayLike) -> tuple[Ints, Floats]:
    truth, p = np.asarray(y, np.int64), np.asarray(probability, np.float64)
    return truth[truth >= 0], p[truth >= 0]
