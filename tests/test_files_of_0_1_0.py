"""Models, stopped runs and stores that asapool 0.1.0 wrote are used by this version, and give the same numbers."""

import csv
import json
import shutil
from pathlib import Path

import pytest

import asapool
from asapool.training.run import resume
from tests.cli.commands import call

GOLDEN = Path(__file__).parent / "golden" / "0.1.0"
SOURCE = "synthetic:motifs?graphs=40&nodes=12"


def rows(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture
def folder(tmp_path):
    """A copy that may be written to."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "files"))


def test_a_model_predicts_what_it_predicted():
    model, graphs = asapool.load_model(GOLDEN / "finished" / "model.safetensors"), asapool.load(SOURCE)
    before = rows(GOLDEN / "finished" / "predictions.csv")
    p = model.predict_proba(graphs.subset([int(row["graph"]) for row in before]))
    assert len(before) == 4
    assert p.tolist() == [pytest.approx([float(row["p(house)"]), float(row["p(ring)"])], abs=2e-6) for row in before]


def test_a_run_folder_is_a_model():
    assert asapool.load_model(GOLDEN / "finished").classes == ("house", "ring")
    scores = json.loads(call("evaluate", GOLDEN / "finished", SOURCE, "--json").stdout)
    assert scores["graphs"] == 40


def test_a_stopped_run_resumes_to_the_same_numbers(folder):
    with pytest.warns(UserWarning, match="started by asapool 0.1.0 and is continued by"):
        resume(folder / "stopped")
    before, after = (rows(folder / name / "history.csv") for name in ("finished", "stopped"))
    names = ("epoch", "lr", "loss", "val_loss", "val_accuracy")
    assert len(after) == 6
    for old, new in zip(before, after, strict=True):
        assert [float(new[name]) for name in names] == pytest.approx([float(old[name]) for name in names], rel=1e-5)
    old, new = (rows(folder / name / "predictions.csv") for name in ("finished", "stopped"))
    assert [row["predicted"] for row in new] == [row["predicted"] for row in old]
    assert [float(row["p(ring)"]) for row in new] == pytest.approx([float(row["p(ring)"]) for row in old], abs=2e-6)


def test_a_store_goes_on_and_gives_the_same_table(folder):
    store = folder / "cv" / "runs.jsonl"
    lines = store.read_text().splitlines()
    assert len(lines) == 3
    store.write_text("\n".join(lines[:2]) + "\n")  # the last training is missing
    words = ("cv", SOURCE, "--method", "mlp", "--hidden", 8, "--epochs", 2, "--folds", 3, "--seeds", 1)
    result = call(*words, "--engine", "inline", "--out", folder / "cv", "--mix-versions", "--no-report")
    assert result.exit_code == 0, result.output
    accuracy = [float(row["test_accuracy"]) for row in rows(GOLDEN / "cv" / "results.csv")]
    mean = next(float(row["mean"]) for row in rows(folder / "cv" / "cv.csv") if row["row"] == "mlp")
    assert mean == pytest.approx(100 * sum(accuracy) / 3, abs=0.01)
    finished = [json.loads(line) for line in store.read_text().splitlines()]
    was, now = json.loads(lines[2]), finished[2]
    assert now["key"] == was["key"]
    assert now["test"]["accuracy"] == was["test"]["accuracy"]
    assert now["history"]["loss"] == pytest.approx(was["history"]["loss"], rel=1e-5)
