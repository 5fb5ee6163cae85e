"""Pages and explanations of measured values and yes/no tasks: what an atom adds, and which charts a run has."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from asapool.data import load
from asapool.data.targets import Target
from asapool.errors import DataError
from asapool.experiments.crossval import cross_validate, methods_plan
from asapool.insight import Hierarchy, explain
from asapool.models import ModelConfig, build, checkpoint
from asapool.reports import write_report
from asapool.reports.explorer import about_words, explorer_view
from asapool.training import TrainConfig, predict, resolve_reading, run

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCCC", "c1ccncc1", "CCS"] * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages")
    rows = [f"{s},{len(s) + 0.1 * k:.2f},{'' if k % 5 == 0 else k % 2},{int(k % 3 == 0)}" for k, s in enumerate(SMILES)]
    (path / "all.csv").write_text("smiles,logS [log units],tox,bind\n" + "\n".join(rows) + "\n")
    for name, target in (("values", ["logS [log units]"]), ("labels", ["tox", "bind"])):
        tables = {"data": {"source": str(path / "all.csv"), "target": target}, "train": {"epochs": 1, "threads": 1}}
        chosen, reading = resolve_reading(tables | {"model": {"method": "asap", "hidden": 8, "levels": 1}})
        run.start(chosen, reading.graphs, path / name)
    return path


def test_an_atom_adds_what_the_prediction_loses_without_it(folder):
    loaded = checkpoint.load(folder / "values")
    graphs = load(["CCO"], recipe=loaded.recipe, labels="ignored")
    made = explain(loaded, graphs, 0)
    value = predict(loaded.model, graphs)[0, 0]
    assert made.answer == f"logS [log units] = {value:.4g}"
    assert made.confidence is None
    # without the oxygen, the last of the three atoms, an edge of two carbons with their features is left
    batch = graphs.batch([0])
    x, ptr = batch.x[:2], torch.tensor([0, 2])
    outputs = loaded.model(x, ptr, torch.tensor([0, 1, 2]), torch.tensor([1, 0])).detach()
    rest = float(outputs[0, 0]) * loaded.target.scale[0] + loaded.target.mean[0]
    assert made.importance["occlusion"][2] == pytest.approx(value - rest, abs=1e-4)
    words = about_words(made)
    assert words.effect(0.8123) == "adds 0.812 log units to logS [log units]"
    assert words.effect(-2.0) == "subtracts 2 log units from logS [log units]"
    again = Hierarchy.from_json(made.to_json())
    assert (again.kind, again.unit, again.answer) == ("regression", "log units", made.answer)
    assert (again.classes, again.target, again.label) == (made.classes, 0, None)
    assert again.probability.tolist() == made.probability.tolist()
    assert explorer_view(made, "m0")["bars"] == []


def test_the_json_of_a_value_has_the_keys_of_a_value():
    graphs = load(SMILES[:3]).with_fields(
        y=np.array([[1.5, np.nan], [2.0, 3.0], [0.0, 4.25]]), class_names=(), name="numbers",
        target=Target(kind="regression", names=("a", "b [m]")),
    )  # fmt: skip
    model = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0)
    model.target = Target(kind="regression", names=("a", "b [m]"), mean=(1.0, 2.0), scale=(3.0, 4.0))
    plain = json.loads(explain(model, graphs, 2, target="b [m]").to_json())
    assert (plain["target"], plain["unit"], plain["measured"], plain["kind"]) == ("b [m]", "m", 4.25, "regression")
    value = predict(model, graphs)[2]
    assert plain["prediction"] == pytest.approx(value[1], rel=1e-5)
    assert plain["predictions"] == pytest.approx({"a": value[0], "b [m]": value[1]}, rel=1e-5)
    assert not {"classes", "probability", "label", "against"} & set(plain)
    again = Hierarchy.from_json(json.dumps(plain))
    assert (again.classes, again.target, again.label) == (("a", "b [m]"), 1, "4.25")
    assert json.loads(again.to_json()) == plain
    view = explorer_view(replace(again, label="23.099999999999998"), "m0")
    assert (view["label"], again.label) == ("23.1", "4.25")  # the page has the digits of the prediction, JSON all
    assert json.loads(explain(model, graphs, 0, target="b [m]").to_json())["measured"] is None
    # files written before these keys are still read
    old = {"classes": ["a", "b [m]"], "probability": value.tolist(), "target": 1, "label": "4.25", "against": None}
    kept = {key: v for key, v in plain.items() if key not in ("prediction", "predictions", "measured")}
    assert Hierarchy.from_json(json.dumps(kept | old)).answer == again.answer
    damaged = {"predictions": {"a": 1.0}}
    with pytest.raises(DataError, match="the hierarchy is damaged"):
        Hierarchy.from_json(json.dumps(plain | damaged))


def test_a_yes_no_task_is_explained_by_name_with_its_own_answer(folder):
    loaded = checkpoint.load(folder / "labels")
    graphs = load(folder / "all.csv", recipe=loaded.recipe)
    p = predict(loaded.model, graphs)[1]
    made = explain(loaded, graphs, 1, target="bind")
    assert made.answer == f"bind: {int(p[1] >= 0.5)}"
    assert made.confidence == pytest.approx(max(p[1], 1 - p[1]), abs=1e-5)
    assert made.label == "0"
    assert explorer_view(made, "m0")["correct"] == (p[1] < 0.5)
    first = explain(loaded, graphs, 1)
    assert not np.allclose(first.importance["gradient"], made.importance["gradient"])


def test_runs_have_the_charts_of_their_kind(folder):
    values = write_report(folder / "values").read_text()
    expected = "Measured and predicted: logS", "Residuals: logS", "Largest errors", "trivial baseline", "raises logS"
    for text in expected:
        assert text in values
    labels = write_report(folder / "labels").read_text()
    for text in ("ROC curves", "Calibration of all tasks together", "Scores of every task", "Most confident errors"):
        assert text in labels


def test_a_comparison_of_values_has_a_page(tmp_path):
    graphs = load(SMILES[:12]).with_fields(
        y=np.arange(12.0)[:, None], target=Target(kind="regression", names=("a",)), class_names=(), name="numbers"
    )
    models = {name: ModelConfig(method=name, hidden=8) for name in ("mlp", "majority")}
    cross_validate(graphs, methods_plan(graphs, models, train=TrainConfig(epochs=1), folds=3), tmp_path)
    page = write_report(tmp_path).read_text()
    for text in ("mean test RMSE", "trivial baseline", "Measured and predicted: a", "By seed<"):
        assert text in page
    assert "accuracy, %" not in page


def test_a_model_with_a_target_is_built_for_its_outputs():
    model = build(ModelConfig(method="asap", hidden=8, levels=1), 3, 2, seed=0)
    model.target = Target(kind="regression", names=("a", "b"), mean=(1.0, 2.0), scale=(3.0, 4.0))
    graphs = load("synthetic:cycles?graphs=2")
    raw = model.eval()(*graphs.batch([0, 1]).inputs).detach().double().numpy()
    assert np.allclose(predict(model, graphs), raw * [3, 4] + [1, 2], atol=1e-5)
