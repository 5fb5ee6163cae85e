"""What descriptors add to a prediction: against predictions with a missing value, by hand, and on the page."""

import numpy as np
import pytest
import torch

import asapool
from asapool.insight import Hierarchy, explain
from asapool.insight.importance import descriptor_importance, frozen
from asapool.models import ModelConfig, build
from asapool.models.batches import cut
from asapool.reports.explain_page import explain_page

pd = pytest.importorskip("pandas")
pytest.importorskip("rdkit")
SMILES = [f"{'C' * k}{end}" for k in range(1, 11) for end in ("O", "N")]
FRAME = pd.DataFrame({"smiles": SMILES, "pH": np.linspace(2, 9, 20), "dose": np.linspace(0, 1, 20) ** 2})
QUICK = {"hidden": 8, "epochs": 8, "validation_fraction": 0, "random_state": 0}


def test_a_linear_head_worked_out_by_hand():
    """z = 3 d₁ with d₁ = (5 − 1)/2 = 2: missing, it is 0, so it adds 6; the other descriptor adds nothing."""
    graphs = asapool.load(FRAME.assign(y=[0, 1] * 10), target="y", descriptors=["pH", "dose"])
    model = build(ModelConfig(hidden=4, levels=1), graphs.num_features, 1, seed=0, graph_channels=2)
    model.descriptors.mean[:] = torch.tensor([1.0, 0.0])
    model.descriptors.deviation[:] = torch.tensor([2.0, 1.0])
    first, last = model.head.lin1, model.head.lin2
    with torch.no_grad():
        for layer in (first, last):
            layer.weight.zero_()
            layer.bias.zero_()
        first.weight[0, -2], last.weight[0, 0] = 1.0, 3.0
    graphs = graphs.with_fields(descriptors=np.full((20, 2), [5.0, 7.0], np.float32))
    with frozen(model):
        added = descriptor_importance(model, cut(model, graphs, np.array([0])), 0)
    np.testing.assert_allclose(added, [6.0, 0.0])


def test_the_log_odds_are_those_of_predictions_without_the_value():
    model = asapool.ASAPClassifier("asap+", **QUICK | {"epochs": 30}, lr=0.02).fit(FRAME, [0] * 10 + [1] * 10)
    hierarchy = explain(model, FRAME, 19, target="1", importance=())
    whole = log_odds(model.predict_proba(FRAME)[19, 1])
    for name in ("pH", "dose"):
        missing = log_odds(model.predict_proba(FRAME.assign(**{name: np.nan}))[19, 1])
        assert hierarchy.descriptors[name] == pytest.approx(whole - missing, abs=1e-4)
    assert hierarchy.descriptors["pH"] > 0.1  # a high pH speaks for 1
    strongest = max(hierarchy.descriptors, key=lambda name: abs(hierarchy.descriptors[name]))
    assert hierarchy.descriptor_note.startswith(f"Descriptors, compared with their training means: {strongest} ")
    assert hierarchy.descriptor_note.endswith(" (log odds of 1)")
    assert Hierarchy.from_json(hierarchy.to_json()).descriptors == hierarchy.descriptors
    assert hierarchy.descriptor_note in hierarchy._repr_html_()


def log_odds(p):
    return np.log(p) - np.log1p(-p)


def test_a_measured_value_has_its_unit_and_rdkit_descriptors_are_named(tmp_path):
    table = tmp_path / "m.csv"
    FRAME.assign(logS=np.linspace(-3, 1, 20)).drop(columns="dose").to_csv(table, index=False)
    graphs = asapool.load(table, target="logS", task="regression", descriptors="pH", rdkit_descriptors=True)
    model = asapool.ASAPRegressor("asap+", **QUICK).fit(graphs)
    hierarchy = explain(model, graphs, 0, importance=())
    names = graphs.recipe["descriptors"]
    assert list(hierarchy.descriptors) == names["columns"] + names["rdkit"]
    missing = np.where(np.arange(graphs.descriptors.shape[1]) == 0, np.float32("nan"), graphs.descriptors)
    added = model.predict(graphs)[0] - model.predict(graphs.with_fields(descriptors=missing))[0]
    assert hierarchy.descriptors["pH"] == pytest.approx(added, abs=1e-5)
    assert hierarchy.descriptor_note.endswith(f", {len(hierarchy.descriptors) - 5} more (in the unit of the target)")
    assert hierarchy.descriptor_note in explain_page([hierarchy])


def test_without_descriptors_there_is_no_line():
    hierarchy = explain(asapool.ASAPClassifier("asap+", **QUICK).fit(SMILES, [0, 1] * 10), SMILES, 0, importance=())
    assert (hierarchy.descriptors, hierarchy.descriptor_note) == ({}, "")
