"""The model card of a run: front matter that model hubs can read, scores with intervals, and no markup from names."""

import json

import yaml

from asapool.training.results import model_card, write_card
from tests.cli.commands import call

METRICS = {
    "data": {"name": "a|b <b>", "source": "x.csv", "graphs": 30, "fingerprint": "ff"},
    "parts": {"train": 20, "val": 5, "test": 5, "split": "stratified-split"},
    "method": "asap+",
    "test": {"accuracy": 0.8, "roc_auc": None},
    "test_intervals": {"accuracy": [0.5, 1.0]},
    "warnings": ["Few graphs"],
}


def test_a_card_worked_by_hand():
    text = model_card(METRICS, {"model": {"hidden": 8}, "data": {"source": "x.csv"}}, ("yes", "<i>"))
    _, front, body = text.split("---\n", 2)
    held = yaml.safe_load(front)
    assert held["library_name"] == "asapool"
    assert held["model-index"][0]["results"][0]["dataset"]["name"] == "a|b <b>"
    assert held["model-index"][0]["results"][0]["metrics"] == [{"type": "accuracy", "value": 0.8}]
    assert "| accuracy | 0.8000 | 0.5000 to 1.0000 |" in body
    assert "hidden = 8" in body
    assert "<b>" not in body
    assert "<i>" not in body


def test_the_card_of_values_has_the_baseline_and_the_p_value():
    metrics = METRICS | {
        "target": {"kind": "regression", "names": ["logS"]}, "test": {"rmse": 0.5}, "warnings": [],
        "trivial": {"scores": {"rmse": 2.0}, "tasks": {"logS": {"p_error": 1e-9}}, "better": True},
        "conformal": {"validation": 5, "levels": [{"coverage": 0.9, "covered": 1.0, "size": None}]},
    }  # fmt: skip
    text = model_card(metrics, {}, ("logS",))
    assert yaml.safe_load(text.split("---\n")[1])["tags"] == ["graph-regression", "asap+"]
    assert "| rmse | 0.5000 | – | 2.0000 |" in text
    assert "The model is better than the mean value, p < 0.001." in text
    assert "90 % intervals need at least 9 validation graphs, there are 5." in text
    enough = {"validation": 20, "levels": [{"coverage": 0.9, "covered": 0.925, "size": 3.0}]}
    text = model_card(metrics | {"conformal": enough, "trivial": {"better": False}}, {}, ("logS",))
    assert "Conformal intervals at 90 % contain 92.5 % of the test values (calibrated on 20 validation graphs)." in text
    assert "The model is better" not in text
    assert yaml.safe_load(model_card(METRICS, {}, ("yes",)).split("---\n")[1])["tags"][0] == "graph-classification"


def test_a_readme_of_the_user_stays(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    write_card(tmp_path / "README.md", METRICS, {}, ("yes",))
    assert (tmp_path / "README.md").read_text() == "mine"


def test_every_run_folder_has_one(tmp_path):
    words = ("--epochs", 1, "--hidden", 8, "--method", "topk", "--no-report", "--out", tmp_path / "run")
    assert call("train", "synthetic:cycles?graphs=30", *words).exit_code == 0
    text = (tmp_path / "run" / "README.md").read_text()
    held = yaml.safe_load(text.split("---\n")[1])
    accuracy = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]["accuracy"]
    assert {"type": "accuracy", "value": accuracy} == held["model-index"][0]["results"][0]["metrics"][0]
    assert "asapool.load_model" in text


def test_the_card_does_not_round_small_values_to_zero():
    scores = {"rmse": 2e-9, "r2": -8.6e-6}
    target = {"kind": "regression", "names": ["c [mol/l]"]}
    intervals = {"rmse": [1e-9, 3e-9]}
    text = model_card(METRICS | {"target": target, "test": scores, "test_intervals": intervals}, {}, ("c [mol/l]",))
    assert "| rmse | 2e-09 | 1e-09 to 3e-09 | – |" in text
    assert "| r2 | 0.0000 | – | – |" in text
