"""The paired tests: worked out by hand, equal to scipy's where it has them, honest about what cannot be tested."""

import numpy as np
import pytest
from scipy import stats

from asapool.errors import InputError
from asapool.experiments.significance import paired_test


def test_the_corrected_t_by_hand():
    # d = 1, 2, 3: mean 2, variance 1, n = 3; n_test/n_train = 1/8: t = 2 / √(1/3 + 1/8)
    test = paired_test([1, 2, 3], [0, 0, 0], test_share=1 / 8)
    assert test.t == pytest.approx(2 / np.sqrt(1 / 3 + 1 / 8))
    assert test.p_corrected_t == pytest.approx(2 * stats.t.sf(test.t, 2))
    assert test.difference == 2
    assert test.margin == pytest.approx(stats.t.ppf(0.975, 2) * np.sqrt(1 / 3 + 1 / 8))


def test_the_interval_of_a_difference_contains_zero_exactly_if_it_is_not_significant():
    d = np.array([1.0, 2.0, 4.0, 3.0])
    test = paired_test(d, np.zeros(4), test_share=1e-12)
    assert test.margin == pytest.approx(d.mean() - stats.ttest_1samp(d, 0).confidence_interval(0.95).low)
    for shift, significant in ((0.99, True), (1.01, False)):
        moved = paired_test(d - shift * (test.difference - test.margin), np.zeros(4), test_share=1e-12)
        assert (moved.p_corrected_t < 0.05) == (moved.margin < moved.difference) == significant


def test_the_correction_makes_the_test_more_careful_and_vanishes_with_the_test_part():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, 10), rng.normal(0, 1, 10)
    plain = stats.ttest_rel(a, b).pvalue
    assert paired_test(a, b, test_share=1 / 8).p_corrected_t > plain
    assert paired_test(a, b, test_share=1e-12).p_corrected_t == pytest.approx(plain)


def test_exchanging_the_methods_changes_the_sign_only():
    a, b = [0.7, 0.8, 0.75, 0.9], [0.72, 0.7, 0.7, 0.8]
    one, two = paired_test(a, b, test_share=0.1), paired_test(b, a, test_share=0.1)
    assert (one.t, one.p_corrected_t, one.p_wilcoxon) == pytest.approx((-two.t, two.p_corrected_t, two.p_wilcoxon))


def test_wilcoxon_is_scipys_and_leaves_out_folds_without_a_difference():
    a, b = np.array([0.1, 0.22, 0.35, 0.41, 0.5]), np.zeros(5)
    assert paired_test(a, b, test_share=0.1).p_wilcoxon == pytest.approx(stats.wilcoxon(a).pvalue)
    with_zero = paired_test(np.append(a, 0.0), np.append(b, 0.0), test_share=0.1)
    assert with_zero.p_wilcoxon == pytest.approx(stats.wilcoxon(a).pvalue)


def test_rounding_does_not_order_equal_differences():
    # 0.3 − 0.2 and 0.2 − 0.1 differ in the last bit; as accuracies they are one and the same difference
    rough = paired_test([0.3, 0.2, 0.9], [0.2, 0.1, 0.5], test_share=0.1).p_wilcoxon
    assert rough == pytest.approx(paired_test([3, 2, 9], [2, 1, 5], test_share=0.1).p_wilcoxon)


def test_what_cannot_be_tested_says_so():
    same = paired_test([0.5, 0.6], [0.5, 0.6], test_share=0.1)
    assert same.p_corrected_t is None
    assert same.margin is None
    assert same.note == "no fold differs"
    steady = paired_test([0.6, 0.7], [0.5, 0.6], test_share=0.1)
    assert steady.t is None
    assert "same amount" in steady.note
    assert steady.p_wilcoxon is not None
    assert paired_test([0.5], [0.4], test_share=0.1).note == "fewer than two folds"


def test_lists_that_do_not_match_are_refused():
    with pytest.raises(InputError, match="same length"):
        paired_test([1, 2], [1], test_share=0.1)
    with pytest.raises(InputError, match="test_share"):
        paired_test([1, 2], [1, 3], test_share=0)
