"""Means and the two deviations by hand, and pairs matched by seed and fold."""

from dataclasses import replace

import pytest

from asapool.experiments.significance import holm, paired_test
from asapool.experiments.summary import fold_values, paired_tests, summarise
from tests.experiments.made_up import plan_of, records_of

ONE = next(iter(records_of(plan_of(("a",)), {("a", "NCI1"): [0.5]}).values()))


def record(seed, fold, accuracy):
    run = replace(ONE.run, seed=seed, fold=fold, folds=10)
    return replace(ONE, run=run, test={**ONE.test, "accuracy": accuracy, "roc_auc": None})


def test_deviations_over_seeds_and_over_folds_are_kept_apart():
    total = summarise([record(1, 0, 0.6), record(1, 1, 0.8), record(2, 0, 0.5), record(2, 1, 0.5)], folds=2)
    assert total.mean == pytest.approx(0.6)
    assert total.over_seeds == pytest.approx(0.1 * 2**0.5)  # means 0.7 and 0.5: ±0.1 around 0.6, with n − 1
    assert total.over_folds == pytest.approx((0.1 * 2**0.5 + 0) / 2)  # 0.6 and 0.8; 0.5 and 0.5
    assert (total.seeds, total.folds, total.validation, total.scores["roc_auc"]) == (2, 4, 0.5, None)


def test_a_part_of_a_seed_does_not_count_in_the_deviation_over_seeds():
    whole = [record(seed, fold, accuracy) for seed, accuracy in ((1, 0.6), (2, 0.8)) for fold in range(3)]
    total = summarise([*whole, record(3, 0, 0.1)], folds=3)
    assert total.over_seeds == pytest.approx(0.1 * 2**0.5)  # of 0.6 and 0.8
    assert total.mean == pytest.approx((3 * 0.6 + 3 * 0.8 + 0.1) / 7)
    assert (total.seeds, total.folds) == (3, 7)
    assert summarise([*whole[:3], record(3, 0, 0.1)], folds=3).over_seeds is None


def test_one_seed_has_no_deviation_over_seeds():
    total = summarise([record(1, 0, 0.6), record(1, 1, 0.8)], folds=10)
    assert total.over_seeds is None
    assert total.over_folds is not None


def test_pairs_are_matched_by_fold_and_a_failed_one_drops_out():
    a = [record(1, f, s) for f, s in enumerate((0.9, 0.8, 0.7, 0.6))]
    b = [record(1, f, s) for f, s in enumerate((0.5, 0.6, 0.5))]
    lost = replace(record(1, 3, None), test=None, validation=None, failure="the process was ended by signal 9")
    tests = paired_tests({"a": fold_values(a[::-1]), "b": fold_values([*b, lost])}, "a", folds=10)
    expected = paired_test([0.5, 0.6, 0.5], [0.9, 0.8, 0.7], test_share=1 / 8)
    assert list(tests) == ["b"]
    assert (tests["b"]["n"], tests["b"]["difference"]) == (3, pytest.approx(-0.8 / 3))
    assert tests["b"]["p_corrected_t"] == pytest.approx(expected.p_corrected_t)
    assert summarise([*b, lost], folds=10).failed == 1


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])  # 3·0.01; 2·0.03; max(1·0.04, 0.06)
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
