"""Direct models of measured values and yes/no tasks: gaps are left out, weights count, files give the same answers."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from asapool.data import load
from asapool.data.targets import Target
from asapool.models import ModelConfig, build, checkpoint, fitters
from asapool.models.counting import CountForest
from asapool.models.fitters import FITTERS, forest_answers

NAN = float("nan")
VALUES = np.array([[1.0, NAN], [3.0, 10.0], [5.0, 30.0]])


def test_constants_are_weighted_means_of_the_entries_present():
    values, yes_no = FITTERS["regression"], FITTERS["multilabel"]
    assert values.constant(VALUES, None, 2).tolist() == [3.0, 20.0]
    assert values.constant(VALUES, np.array([1.0, 1.0, 2.0]), 2).tolist() == pytest.approx([3.5, 70 / 3])
    assert yes_no.constant(np.array([[1, NAN], [0, 1], [0, 1.0]]), None, 2).tolist() == pytest.approx([1 / 3, 1.0])


def test_forests_of_several_tasks_answer_as_scikit_learns_forests():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(30, 3)).astype(np.float32)
    y = np.stack([z[:, 0] * 2, z[:, 1]], axis=1).astype(np.float64)
    y[:10, 1] = NAN
    arrays = FITTERS["regression"].forest(z, y, None, 2, 5, 7)
    answers = forest_answers(arrays, z)
    for t, rows in ((0, np.arange(30)), (1, np.arange(10, 30))):
        theirs = RandomForestRegressor(5, max_features=1 / 3, random_state=7).fit(z[rows], y[rows, t]).predict(z)
        assert np.allclose(answers[:, t], theirs)


def test_forests_of_yes_no_tasks_are_scikit_learns_classifiers():
    z = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    y = np.stack([z[:, 0] + z[:, 1] > 0, np.ones(30), z[:, 2] > 0, np.full(30, NAN)], axis=1).astype(np.float64)
    y[:10, 2] = NAN
    p = forest_answers(FITTERS["multilabel"].forest(z, y, None, 4, 5, 7), z)
    for t, rows in ((0, np.arange(30)), (2, np.arange(10, 30))):
        theirs = RandomForestClassifier(5, random_state=7).fit(z[rows], y[rows, t]).predict_proba(z)[:, 1]
        assert np.allclose(p[:, t], theirs)
    assert (p[:, 1] == 1).all()  # a task with a single value
    assert (p[:, 3] == 0).all()  # a task without values


def test_compiled_forests_answer_to_the_last_bit(monkeypatch):
    rng = np.random.default_rng(3)
    z = rng.poisson(0.4, size=(700, 20)).astype(np.float32)
    y = np.stack([z[:, 0] * 2 + z[:, 1], z[:, 2]], axis=1).astype(np.float64)
    arrays = FITTERS["regression"].forest(z, y, None, 2, 9, 0)
    plain = forest_answers(arrays, z)
    monkeypatch.setattr(fitters, "COMPILED", 0)
    assert np.array_equal(forest_answers(arrays, z), plain)


def test_linear_models_find_a_linear_rule_in_every_task():
    z = np.random.default_rng(1).normal(size=(60, 4))
    y = np.stack([z @ [1, 2, 0, 0] + 5, z @ [0, 0, 3, -1]], axis=1)
    y[::3, 1] = NAN
    coef, bias = FITTERS["regression"].linear(z, y, None, 2, 1e6, 0)
    assert coef[0] == pytest.approx([1, 2, 0, 0], abs=1e-3)
    assert bias == pytest.approx([5, 0], abs=1e-3)
    decision = z @ coef.T + bias
    assert FITTERS["regression"].quality(decision, y) == pytest.approx(0, abs=1e-4)
    yes = np.where(np.isnan(y), NAN, (y > 0).astype(float))
    yes[:, 1] = np.where(np.isnan(yes[:, 1]), NAN, 1.0)  # a task with a single value
    coef, bias = FITTERS["multilabel"].linear(z, yes, None, 2, 1.0, 0)
    decision = z @ coef.T + bias
    assert FITTERS["multilabel"].quality(decision, yes) == pytest.approx(1.0, abs=0.02)
    p = FITTERS["multilabel"].answers(FITTERS["multilabel"].scale(decision, yes) * decision)
    assert ((p[:, 0] > 0.5) == (yes[:, 0] == 1)).mean() > 0.9
    assert (p[:, 1] > 0.5).all()


@pytest.mark.parametrize("method", ["ecfp", "histogram", "wl", "majority"])
@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_direct_models_are_saved_with_their_answers(method, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(CountForest, "trees", 4)
    smiles = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl"] * 3
    read = load(smiles)
    carbons = np.array([text.lower().count("c") for text in smiles], np.float64)
    y = np.stack([carbons, np.where(np.arange(18) % 4 == 0, NAN, carbons)], axis=1)
    classes = ("0", "1") if kind == "multilabel" else ()
    y = np.where(np.isnan(y), NAN, (y > 2).astype(float)) if classes else y
    graphs = read.with_fields(y=y, target=Target(kind=kind, names=("a", "b"), classes=classes), class_names=())
    model = build(ModelConfig(method=method), graphs.num_features, 2, seed=0)
    model.target = graphs.target
    model.fit_graphs(graphs, np.arange(12), np.arange(12, 15), seed=1)
    answers = model.predict_graphs(graphs, np.arange(18))
    assert answers.shape == (18, 2)
    if kind == "multilabel":
        assert ((answers >= 0) & (answers <= 1)).all()
    if method != "majority":  # the counts of atoms decide the answer
        assert np.corrcoef(answers[:, 0], y[:, 0])[0, 1] > 0.5
    checkpoint.save(tmp_path / "m.safetensors", model, recipe={})
    again = checkpoint.load(tmp_path / "m.safetensors")
    assert np.array_equal(again.model.predict_graphs(graphs, np.arange(18)), answers)


def test_a_forest_does_not_depend_on_the_unit():
    """2⁻³⁰ mol/l is about 1 nmol/l, where scikit-learn's own trees stop at the root."""
    z = np.arange(40, dtype=np.float32).reshape(20, 2)
    v = np.sin(np.arange(20.0))[:, None]
    plain, small = (FITTERS["regression"].forest(z, v * unit, None, 1, 5, 0) for unit in (1.0, 2.0**-30))
    assert len(plain["value"]) > 50
    np.testing.assert_array_equal(small["value"] * 2.0**30, plain["value"])
    np.testing.assert_array_equal(small["threshold"], plain["threshold"])


@pytest.mark.parametrize("kind", FITTERS)
def test_a_forest_is_the_same_with_any_number_of_threads(kind):
    rng = np.random.default_rng(0)
    z, y = rng.random((60, 5), np.float32), rng.integers(0, 2, 60)
    forests = []
    for threads in (1, 3):
        torch.set_num_threads(threads)  # tests/conftest.py restores it
        y_ = y if kind == "classification" else y[:, None].astype(np.float64)
        forests.append(FITTERS[kind].forest(z, y_, None, 2 if kind == "classification" else 1, 10, 0))
    for name, values in forests[0].items():
        np.testing.assert_array_equal(values, forests[1][name])
