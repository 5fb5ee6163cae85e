"""A worthless model is called one, and a good one is not; intervals cover what they say."""

import numpy as np
import pytest

from asapool.data.targets import Target
from asapool.training.assessment import (
    against_trivial,
    constant_tasks,
    intervals,
    intervals_by_task,
    intervals_of,
    intervals_over_runs,
    warnings_for,
    warnings_of_tasks,
    win_text,
)
from asapool.training.metrics import METRICS
from asapool.training.task_scores import Part
from asapool.training.tasks import task_of


def test_intervals_have_the_width_of_the_binomial_distribution():
    y = np.zeros(400, int)
    y[200:] = 1
    p = np.tile([0.9, 0.1], (400, 1))
    p[200:] = [0.1, 0.9]
    p[:40] = [0.1, 0.9]  # 40 of 400 are wrong: 0.9 ± 1.96·√(0.9·0.1/400)
    low, high = intervals(y, p)["accuracy"]
    assert (low, high) == (pytest.approx(0.8706, abs=0.006), pytest.approx(0.9294, abs=0.006))
    assert set(intervals(y, p, resamples=10)) == set(METRICS)


def test_intervals_are_none_where_a_metric_is():
    result = intervals([1, 1, 1], [[0.2, 0.8], [0.9, 0.1], [0.4, 0.6]], resamples=20)
    assert result["roc_auc"] is None
    assert result["accuracy"] is not None
    assert intervals([-1], [[0.5, 0.5]]) == dict.fromkeys(METRICS)


def test_the_trivial_answer_by_hand():
    """Six of class 0, four of class 1; the model gets all but one: better on 4 graphs, worse on 1, p = 6/32."""
    y = np.array([0] * 6 + [1] * 4)
    p = np.eye(2)[[1, 0, 0, 0, 0, 0, 1, 1, 1, 1]]
    result = against_trivial(y, p, 0)
    assert (result["accuracy"], result["p_accuracy"]) == (0.6, pytest.approx(6 / 32))
    assert result["better"]  # by its ranking: ROC-AUC 11/12
    guess = np.full((10, 2), 0.5)
    assert against_trivial(y, guess, 0) == {"accuracy": 0.6, "p_accuracy": 1.0, "p_roc_auc": 1.0, "better": False}
    assert against_trivial([], np.zeros((0, 2)), 0)["better"] is None


def test_warnings_name_what_is_wrong():
    y, p = np.array([0, 0, 1]), np.array([[0.9, 0.1]] * 3)
    texts = warnings_for(y, p, ["no", "yes"], "test", against_trivial(y, p, 0))
    assert texts[0] == "the model predicts 'no' for all 3 test graphs"
    assert texts[1].startswith(
        "on the test graphs the model is not significantly better than always predicting the most "
    )
    assert warnings_for([1, 1], np.eye(2), ["no", "yes"], "validation", {}) == [
        "all 2 validation graphs are of class 'yes'"
    ]
    good = np.arange(40) % 2
    assert warnings_for(good, np.eye(2)[good], ["no", "yes"], "test", against_trivial(good, np.eye(2)[good], 0)) == []


def test_the_interval_of_a_task_among_others_is_its_interval_alone():
    draw = np.random.default_rng(0)
    y, rows = draw.normal(size=(2, 30)), np.arange(30)
    one, two = (Part(name, rows, v, v + draw.normal(size=30)) for name, v in zip("ab", y, strict=True))
    metrics = task_of(Target(kind="regression", names=("a", "b"))).metrics
    mean, each = intervals_by_task([one, two], metrics, 30)
    assert each == {"a": intervals_of([one], metrics, 30), "b": intervals_of([two], metrics, 30)}
    low, high = mean["mae"]
    assert min(each[task]["mae"][0] for task in "ab") < low < high < max(each[task]["mae"][1] for task in "ab")


def test_the_interval_of_a_mean_over_folds_draws_the_same_graphs_for_all_of_them():
    """Two models tested on the same four graphs, one always right and one always wrong: the mean is 1/2 in any draw."""
    y, rows = np.array([0, 1, 0, 1]), np.arange(4)
    right, wrong = Part("a", rows, y, np.eye(2)[y]), Part("a", rows, y, np.eye(2)[1 - y])
    accuracy = {"accuracy": METRICS["accuracy"]}
    whole, tasks = intervals_over_runs([[right], [wrong]], accuracy, 4, resamples=50)
    assert whole == {"accuracy": [0.5, 0.5]}
    assert tasks == {"a": {"accuracy": [0.5, 0.5]}}
    half = Part("a", rows, y, np.eye(2)[[0, 1, 1, 0]])
    assert intervals_over_runs([[half]], accuracy, 4, resamples=50) == intervals_by_task(
        [half], accuracy, 4, resamples=50
    )


def test_folds_that_share_no_graph_of_a_draw_are_left_out_of_it():
    """Graph 0 is in one fold, graph 1 in the other; a draw of two graphs misses one of them half of the time."""
    parts = [Part("a", np.array([g]), np.array([g]), np.eye(2)[[0]]) for g in (0, 1)]  # right for graph 0 only
    whole, _ = intervals_over_runs([[part] for part in parts], {"accuracy": METRICS["accuracy"]}, 2, resamples=200)
    assert whole["accuracy"] == [0.0, 1.0]


def test_the_p_value_of_a_win_is_corrected_for_the_number_of_tests():
    won = {"better": True, "p_accuracy": 0.03, "p_roc_auc": 0.002}
    assert win_text(won, "the most frequent class") == "better than the most frequent class, p = 0.004 for ROC AUC"
    only = {"better": True, "p_accuracy": 0.0004, "p_roc_auc": None}  # more than two classes
    assert win_text(only, "the most frequent class") == "better than the most frequent class, p < 0.001 for accuracy"
    # 0.02 × 3 is above 0.05; the task without a test does not count
    tasks = {"a": {"p": 0.001}, "b": {"p": 0.02}, "c": {"p": 0.004}, "d": {"p": None}}
    assert win_text({"better": True, "tasks": tasks}, "the mean value") == (
        "better than the mean value for 2 of 4 tasks, each p < 0.05 after correction"
    )
    assert win_text({"better": False, "tasks": tasks}, "the mean value") == win_text({}, "the mean value") == ""


def test_warnings_of_one_value_say_that_there_is_one():
    texts = warnings_for([1], [[0.9, 0.1]], ["no", "yes"], "test", {})
    assert texts == ["there is only one test graph, of class 'yes'"]
    one = Part("logS", np.zeros(1, int), np.ones(1), np.ones(1))
    assert warnings_of_tasks([one], "validation", {}) == ["there is only one validation value of 'logS'"]
    assert constant_tasks(np.array([[2.0], [np.nan]]), ["logS"]) == [
        "there is only one training value of 'logS' (2), so the model cannot learn it"
    ]
