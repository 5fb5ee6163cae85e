"""The table: means and the two deviations by hand, the pairs matched by seed and fold."""

import pytest

from asapool.experiments.comparison import FoldResult, compare, holm
from asapool.experiments.significance import paired_test


def result(method, seed, fold, accuracy, **more):
    test = dict.fromkeys(("balanced_accuracy", "roc_auc", "pr_auc", "calibration_error"))
    return FoldResult(
        method=method,
        seed=seed,
        fold=fold,
        test={**test, "accuracy": accuracy},
        validation={"accuracy": 0.5},
        seconds=1.0,
        **more,
    )


def test_deviations_over_seeds_and_over_folds_are_kept_apart():
    results = [result("a", 1, 0, 0.6), result("a", 1, 1, 0.8), result("a", 2, 0, 0.5), result("a", 2, 1, 0.5)]
    row = compare(results, folds=2).rows[0]
    assert row.mean == pytest.approx(0.6)
    assert row.over_seeds == pytest.approx(0.1 * 2**0.5)  # means 0.7 and 0.5: ±0.1 around 0.6, with n − 1
    assert row.over_folds == pytest.approx((0.1 * 2**0.5 + 0) / 2)  # 0.6 and 0.8; 0.5 and 0.5
    assert (row.seeds, row.folds, row.validation, row.scores["roc_auc"]) == (2, 4, 0.5, None)


def test_a_part_of_a_seed_has_no_say_in_the_deviation_over_seeds():
    whole = [result("a", seed, fold, accuracy) for seed, accuracy in ((1, 0.6), (2, 0.8)) for fold in range(3)]
    row = compare([*whole, result("a", 3, 0, 0.1)], folds=3).rows[0]
    assert row.over_seeds == pytest.approx(0.1 * 2**0.5)  # of 0.6 and 0.8
    assert row.mean == pytest.approx((3 * 0.6 + 3 * 0.8 + 0.1) / 7)
    assert (row.seeds, row.folds) == (3, 7)
    assert compare([*whole[:3], result("a", 3, 0, 0.1)], folds=3).rows[0].over_seeds is None


def test_one_seed_has_no_deviation_over_seeds():
    row = compare([result("a", 1, 0, 0.6), result("a", 1, 1, 0.8)], folds=10).rows[0]
    assert row.over_seeds is None
    assert row.over_folds is not None


def test_pairs_are_matched_by_fold_and_a_failed_one_drops_out():
    a = [result("a", 1, f, s) for f, s in enumerate((0.9, 0.8, 0.7, 0.6))]
    b = [result("b", 1, f, s) for f, s in enumerate((0.5, 0.6, 0.5))]
    lost = FoldResult(method="b", seed=1, fold=3, failure="the process was ended by signal 9")
    answer = compare([*reversed(a), *b, lost], folds=10)
    expected = paired_test([0.9, 0.8, 0.7], [0.5, 0.6, 0.5], test_share=1 / 8)
    assert answer.reference == "a"
    assert answer.tests["b"]["n"] == 3
    assert answer.tests["b"]["p_corrected_t"] == pytest.approx(expected.p_corrected_t)
    assert answer.failures == ["b, seed 1, fold 3: the process was ended by signal 9"]
    assert [row.method for row in answer.rows] == ["a", "b"]
    assert answer.rows[1].failed == 1


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])  # 3·0.01; 2·0.03; max(1·0.04, 0.06)
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
