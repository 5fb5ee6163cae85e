"""Conformal answers, calibration and distance from the training graphs: values worked out by hand, then guarantees."""

import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from asapool.errors import CheckpointError, ConfigError
from asapool.training.applicability import Reference
from asapool.training.calibration import (
    calibrate,
    class_sets,
    conformal_quantile,
    covered,
    fit_calibration,
    needed_graphs,
    nonconformity,
    set_texts,
    temperature,
    tempered,
)


@pytest.mark.parametrize(
    ("n", "coverage", "k"),
    [(9, 0.9, 9), (10, 0.9, 10), (19, 0.9, 18), (99, 0.9, 90), (99, 0.7, 70), (4, 0.5, 3), (8, 0.9, None)],
)
def test_the_quantile_is_the_kth_smallest_score(n, coverage, k):
    """k = ⌈(n + 1) · coverage⌉: of 9 scores at 90 % the 9th, of 19 the 18th; 8 are too few, as ⌈8.1⌉ = 9."""
    scores = np.random.default_rng(0).permutation(np.arange(1.0, n + 1))
    assert conformal_quantile(scores, coverage) == (math.inf if k is None else k)


def test_how_many_graphs_a_coverage_takes():
    for coverage in (0.5, 0.8, 0.9, 0.95, 0.99):
        n = needed_graphs(coverage)
        assert math.isfinite(conformal_quantile(np.zeros(n), coverage))
        assert math.isinf(conformal_quantile(np.zeros(n - 1), coverage))


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 90, math.nan])
def test_what_is_no_coverage_is_refused(coverage):
    with pytest.raises(ConfigError, match="coverage must lie between 0 and 1"):
        conformal_quantile([1.0], coverage)


def test_sets_and_intervals_by_hand():
    """Scores 0.1, 0.4, 0.6 of three graphs: at 50 % k = ⌈4 · 0.5⌉ = 2, so q = 0.4 and classes need p ≥ 0.6."""
    p = np.array([[0.9, 0.1], [0.4, 0.6], [0.4, 0.6]])
    s = nonconformity(np.array([0, 1, 0]), p)
    np.testing.assert_allclose(s, [0.1, 0.4, 0.6])
    q = conformal_quantile(s, 0.5)
    assert q == pytest.approx(0.4)
    new = np.array([[0.7, 0.3], [0.55, 0.45], [0.6, 0.4]])
    assert set_texts(class_sets(new, q), ["no", "yes"]) == ["no", "", "no"]
    assert covered(np.array([0, 0, 1]), new, q).tolist() == [True, False, False]
    assert set_texts(class_sets(new, math.inf), ["no", "yes"]) == ["no | yes"] * 3
    assert nonconformity(np.array([1.0, -2.0]), np.array([1.5, 1.0])).tolist() == [0.5, 3.0]


def test_the_quantile_is_that_of_mapie():
    mapie = pytest.importorskip("mapie.regression", reason="NOT TESTED: mapie as a peer is not installed")
    from sklearn.dummy import DummyRegressor

    draw = np.random.default_rng(1)
    y = draw.normal(size=120)
    zero = DummyRegressor(strategy="constant", constant=0.0).fit(np.zeros((1, 1)), [0.0])
    peer = mapie.SplitConformalRegressor(zero, confidence_level=[0.8, 0.9], prefit=True)
    peer.conformalize(np.zeros((120, 1)), y)
    _, ends = peer.predict_interval(np.zeros((1, 1)))
    ours = [conformal_quantile(nonconformity(y, np.zeros(120)), c) for c in (0.8, 0.9)]
    np.testing.assert_allclose(ends[0, 1], ours, rtol=1e-12)


@pytest.mark.parametrize("kind", ["values", "classes"])
@pytest.mark.parametrize("n", [20, 100])
def test_coverage_on_exchangeable_data(kind, n):
    """Over many draws the mean coverage is k / (n + 1), between 90 % and 90 % + 1 / (n + 1)."""
    draw, hits = np.random.default_rng(2), []
    for _ in range(2000):
        if kind == "values":
            y, p = draw.standard_t(3, size=n + 1), np.zeros(n + 1)
        else:
            p = draw.dirichlet([1.0, 1.0, 1.0], size=n + 1)
            y = (p.cumsum(axis=1) < draw.random((n + 1, 1)) ** 2).sum(axis=1)  # a model that is far from calibrated
        q = conformal_quantile(nonconformity(y[:n], p[:n]), 0.9)
        hits.append(covered(y[n:], p[n:], q)[0])
    expected = math.ceil((n + 1) * 0.9) / (n + 1)
    assert abs(np.mean(hits) - expected) < 4 * math.sqrt(0.09 / 2000)


def test_temperature_by_hand():
    """Answers of 90 % that are right three times out of four: p^(1/2) gives 3 : 1, so T = 2."""
    p = np.array([[0.9, 0.1]] * 4)
    assert temperature(np.array([0, 0, 0, 1]), p) == pytest.approx(2.0, abs=1e-4)
    np.testing.assert_allclose(tempered(p, 2.0)[0], [0.75, 0.25])
    np.testing.assert_allclose(tempered(np.array([[0.2, 0.3, 0.5]]), 1.0), [[0.2, 0.3, 0.5]])


def test_isotonic_by_hand():
    """p of yes 0.2, 0.4, 0.6, 0.8 with answers 0, 1, 0, 1: the middle two are pooled to 1/2."""
    yes = np.array([0.2, 0.4, 0.6, 0.8])
    fitted = fit_calibration(np.array([0, 1, 0, 1]), np.stack([1 - yes, yes], axis=1))
    new = np.array([0.0, 0.2, 0.5, 0.8, 1.0])
    q = calibrate(fitted, np.stack([1 - new, new], axis=1), "isotonic")
    np.testing.assert_allclose(q[:, 1], [0, 0, 0.5, 1, 1])
    np.testing.assert_allclose(q.sum(axis=1), 1)


def test_calibration_lowers_the_log_loss_of_answers_that_are_too_sure():
    draw = np.random.default_rng(3)
    truth = draw.random(2000)
    y = (draw.random(2000) < truth).astype(np.int64)
    odds = (truth / (1 - truth)) ** 3  # three times too sure
    p = np.stack([1 / (1 + odds), odds / (1 + odds)], axis=1)
    fitted = fit_calibration(y[:1000], p[:1000])
    assert fitted["temperature"] == pytest.approx(3, rel=0.15)

    def loss(q):
        return -np.log(np.clip(q[np.arange(1000), y[1000:]], 1e-3, 1)).mean()

    for kind in ("temperature", "isotonic"):
        assert loss(calibrate(fitted, p[1000:], kind)) < loss(p[1000:]) - 0.1


def test_where_nothing_can_be_calibrated_probabilities_stay():
    p = np.array([[0.3, 0.7], [0.6, 0.4]])
    assert fit_calibration(np.array([1, 1]), p) is None
    assert fit_calibration(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
    np.testing.assert_array_equal(calibrate(None, p), p)
    with pytest.raises(ConfigError, match="calibration must be"):
        calibrate(None, p, "platt")


def test_distances_by_hand():
    """Points −2, −1, 0, 1, 2 (deviation √2): the mean distance from 0 to the four others is 1.5 / √2."""
    line = Reference.fit(np.arange(-2.0, 3.0)[:, None])
    np.testing.assert_allclose(line.quantiles[[0, -1]], np.array([1.5, 2.5]) / math.sqrt(2), rtol=1e-6)
    np.testing.assert_allclose(line.distance(np.array([[10.0]])), 10 / math.sqrt(2), rtol=1e-6)
    assert line.quantile(np.array([[10.0], [0.0]])).tolist() == [1.0, 0.0]


def test_as_many_new_graphs_are_flagged_as_the_quantile_says():
    draw = np.random.default_rng(4)
    v = draw.normal(size=(1500, 6)) @ draw.normal(size=(6, 40))
    reference = Reference.fit(v[:500])
    quantile = reference.quantile(v[500:])
    assert abs((quantile > 0.9).mean() - 0.1) < 0.04
    assert (reference.quantile(v[500:] + 20) > 0.99).mean() > 0.95
    again = Reference.from_dict(reference.to_dict())
    np.testing.assert_array_equal(again.quantile(v[500:]), quantile)


def test_what_has_no_distances():
    assert Reference.fit(np.ones((5, 3))) is None
    assert Reference.fit(np.ones((1, 3))) is None
    damaged = Reference.fit(np.random.default_rng(0).normal(size=(9, 3))).to_dict()
    for broken in ({}, damaged | {"mean": 3}, damaged | {"points": damaged["mean"]}, damaged | {"axes": {"shape": []}}):
        with pytest.raises(CheckpointError, match="training vectors of the model are damaged"):
            Reference.from_dict(broken)


def test_the_reference_does_not_depend_on_the_threads_of_blas():
    directions = np.linalg.qr(np.random.default_rng(0).normal(size=(400, 400)))[0]
    vectors = np.concatenate([directions, -directions])  # all variances are equal: rounding chooses the axes
    made = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            made.append(Reference.fit(vectors).to_dict())
    assert made[0] == made[1]
