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
