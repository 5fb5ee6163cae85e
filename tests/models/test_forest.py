"""A forest as arrays predicts the same as scikit-learn's, and invalid arrays are refused."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from asapool.models.fitters import check_forest, forest_arrays, forest_probability


@pytest.fixture(scope="module")
def grown():
    rng = np.random.default_rng(0)
    z = rng.poisson(1.5, (600, 7)).astype(np.float32)
    y = (z[:, 0] + z[:, 3] > 3).astype(int) + 2 * (z[:, 5] > 3)
    y[y == 1] = 4  # classes 0, 2, 3, 4: class 1 does not occur
    return RandomForestClassifier(20, random_state=1).fit(z, y), z


def test_probabilities_are_those_of_scikit_learn(grown):
    forest, z = grown
    p = forest_probability(forest_arrays(forest, 5), z)
    expected = np.zeros((len(z), 5))
    expected[:, forest.classes_] = forest.predict_proba(z)
    np.testing.assert_allclose(p, expected, atol=1e-12)
    assert (p[:, 1] == 0).all()


def test_one_split_by_hand():
    arrays = {
        "feature": np.array([1, 0, 0], np.int32),
        "threshold": np.array([0.5, 0.0, 0.0]),
        "child": np.array([[1, 2], [1, 1], [2, 2]], np.int32),
        "value": np.array([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]),
        "root": np.array([0], np.int32),
    }
    check_forest(arrays, 2, 2)
    z = np.array([[9.0, 0.5], [0.0, 0.6]], np.float32)  # at the threshold it goes left
    assert forest_probability(arrays, z).tolist() == [[0.9, 0.1], [0.2, 0.8]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.pop("root"), "needs the array root"),
        (lambda a: a["child"].__setitem__((0, 0), -1), "child must hold whole numbers from 0"),
        (lambda a: a["child"].__setitem__((5, 0), 0), "comes before it"),
        (lambda a: a["feature"].__setitem__(0, 7), "feature must hold whole numbers from 0 to 6"),
        (lambda a: a["value"].__setitem__((0, 0), np.nan), "finite"),
        (lambda a: a.update(value=a["value"][:, :2]), "arrays of these shapes"),
    ],
)
def test_arrays_that_are_not_a_forest_are_refused(grown, change, words):
    arrays = forest_arrays(grown[0], 5)
    check_forest(arrays, 5, 7)
    change(arrays)
    with pytest.raises(ValueError, match=words):
        check_forest(arrays, 5, 7)
