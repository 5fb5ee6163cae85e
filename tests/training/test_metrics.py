"""Scores: worked out by hand, equal to scikit-learn's where it has them, None with a reason where they mean nothing."""

import numpy as np
import pytest
from sklearn import metrics as sk

from asapool.errors import InputError
from asapool.training.metrics import METRICS, calibration_error, score
from asapool.training.selection import ALL_METRICS

NAMES = ["no", "yes"]


def test_a_table_small_enough_to_check_by_hand():
    y = [0, 0, 0, 1, 1]
    p = np.array([0.1, 0.2, 0.7, 0.4, 0.9])  # probability of "yes": one "no" is taken for "yes", one "yes" for "no"
    s = score(y, np.stack([1 - p, p], 1), NAMES)
    assert s.confusion == [[2, 1], [1, 1]]
    assert s.accuracy == pytest.approx(3 / 5)
    assert s.balanced_accuracy == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert s.roc_auc == pytest.approx(5 / 6)  # of 3·2 pairs only (0.7, 0.4) is in the wrong order
    assert s.pr_auc == pytest.approx((1 + 2 / 3) / 2)  # precision where each "yes" is found: 1/1 and 2/3
    assert s.majority == pytest.approx(3 / 5)
    assert s.notes == {}
    assert s.pr_auc_class == s.to_dict()["pr_auc_class"] == "yes"


@pytest.mark.parametrize("C", [2, 4])
def test_scores_are_those_of_scikit_learn(C):
    rng = np.random.default_rng(C)
    y, p = rng.integers(C, size=200), rng.dirichlet(np.ones(C), size=200)
    s = score(y, p, [str(c) for c in range(C)])
    auc = sk.roc_auc_score(y, p[:, 1]) if C == 2 else sk.roc_auc_score(y, p, multi_class="ovr", average="macro")
    precision = sk.average_precision_score(y if C == 2 else np.eye(C)[y], p[:, 1] if C == 2 else p, average="macro")
    assert s.accuracy == pytest.approx(sk.accuracy_score(y, p.argmax(1)))
    assert s.balanced_accuracy == pytest.approx(sk.balanced_accuracy_score(y, p.argmax(1)))
    assert s.roc_auc == pytest.approx(auc)
    assert s.pr_auc == pytest.approx(precision)
    assert s.confusion == sk.confusion_matrix(y, p.argmax(1)).tolist()


def test_one_class_only_gives_none_and_says_why():
    s = score([1, 1, 1], [[0.2, 0.8], [0.9, 0.1], [0.4, 0.6]], NAMES)
    assert (s.balanced_accuracy, s.roc_auc, s.pr_auc) == (None, None, None)
    assert s.accuracy == pytest.approx(2 / 3)
    assert s.calibration_error is not None
    assert set(s.notes) == {"balanced_accuracy", "roc_auc", "pr_auc", "mcc", "f1"}
    assert "'yes'" in s.notes["roc_auc"]


def test_an_absent_class_of_several_is_left_out_of_the_mean_and_named():
    p = np.array([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    s = score([0, 1, 0], p, ["a", "b", "c"])
    assert s.balanced_accuracy == 1.0
    assert s.roc_auc == 1.0
    assert s.pr_auc_class is None  # of more than two it is a mean
    assert "'c'" in s.notes["roc_auc"]


def test_graphs_without_a_label_do_not_count_and_none_at_all_is_no_crash():
    s = score([0, -1, 1], [[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]], NAMES)
    assert (s.graphs, s.accuracy) == (2, 1.0)
    empty = score([-1], [[0.5, 0.5]], NAMES)
    assert empty.graphs == 0
    assert empty.accuracy is None
    assert "no graph" in empty.notes["accuracy"]
    assert score([], np.zeros((0, 2)), NAMES).graphs == 0


def test_the_calibration_error_by_hand():
    # two bins of two: (0.9, 0.9) half right, gap 0.4; (0.6, 0.6) all right, gap 0.4
    assert calibration_error([0.9, 0.9, 0.6, 0.6], [True, False, True, True], bins=10) == pytest.approx(0.4)
    assert calibration_error([1.0, 0.0], [True, False]) == 0.0
    # a bin has its upper bound: 0.6 and 0.5 share (0.4, 0.6], where 1.1 was expected and 1 was right
    assert calibration_error([0.6, 0.5], [True, False], bins=5) == pytest.approx(0.05)


def test_a_wrong_shape_is_refused():
    with pytest.raises(InputError, match=r"shape \(2, 2\)"):
        score([0, 1], [[1.0], [1.0]], NAMES)


def test_every_metric_by_hand():
    """Four graphs, one error: class 1 found once of twice, and ranked above one of two others in the other case."""
    y, p = np.array([0, 0, 1, 1]), np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]])
    value = {name: metric.compute(y, p, None) for name, metric in METRICS.items()}
    assert value["accuracy"] == 0.75
    assert value["balanced_accuracy"] == 0.75
    assert value["roc_auc"] == 0.75  # of four pairs, 0.3 against 0.4 is wrong
    assert value["pr_auc"] == pytest.approx(1 / 2 + 1 / 2 * 2 / 3)
    assert value["f1"] == pytest.approx(2 / 3)
    assert value["mcc"] == pytest.approx((4 * 3 - (2 * 3 + 2 * 1)) / np.sqrt((16 - 8) * (16 - 10)))
    assert value["log_loss"] == pytest.approx(-np.log([0.9, 0.6, 0.8, 0.3]).mean())


@pytest.mark.parametrize("C", [2, 4])
def test_metrics_are_sklearns_and_counts_repeat_graphs(C):
    from sklearn import metrics as sk

    draw = np.random.default_rng(C)
    for _ in range(30):
        y = np.append(np.arange(C), draw.integers(0, C, 20))
        p = draw.integers(1, 6, (len(y), C)).astype(float)  # ties are common
        p /= p.sum(axis=1, keepdims=True)
        s = score(y, p, [str(c) for c in range(C)])
        assert s.mcc == pytest.approx(sk.matthews_corrcoef(y, p.argmax(axis=1)))
        assert s.f1 == pytest.approx(sk.f1_score(y, p.argmax(axis=1), average="binary" if C == 2 else "macro"))
        assert METRICS["roc_auc"].compute(y, p, None) == pytest.approx(s.roc_auc)
        assert METRICS["pr_auc"].compute(y, p, None) == pytest.approx(s.pr_auc)
        w = draw.integers(0, 4, len(y)) + (np.arange(len(y)) < C)
        for metric in METRICS.values():
            repeated = metric.compute(np.repeat(y, w), np.repeat(p, w, axis=0), None)
            assert metric.compute(y, p, w) == pytest.approx(repeated)


def test_only_scores_with_a_unit_are_written_with_an_exponent_when_tiny():
    assert METRICS["mcc"].text(2.203e-15) == METRICS["mcc"].text(-8.617e-06) == "0.0000"
    assert [ALL_METRICS["r2"].text(v) for v in (-8.617e-06, 0.5, -123456.0)] == ["0.0000", "0.5000", "-1.235e+05"]
    assert [ALL_METRICS["rmse"].text(v) for v in (2e-9, 0.0, None)] == ["2e-09", "0.0000", "–"]  # mol/l


def test_a_single_graph_is_not_called_all_graphs():
    assert score([1], [[0.2, 0.8]], NAMES).notes["roc_auc"].startswith("the only graph is of class 'yes', but")
