"""`asapool info`: what a model file says about itself, for every kind of target."""

import json

import numpy as np
import pytest

import asapool
from asapool.errors import CheckpointError
from tests.cli.commands import call

pytest.importorskip("rdkit")
SMILES = [f"{'C' * k}{end}" for k in range(1, 11) for end in ("O", "N")]
LOGP = np.linspace(-1, 2, 20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a class, a measured value, yes/no tasks and a descriptor."""
    path = tmp_path_factory.mktemp("info")
    lines = [f"{s},{'ab'[k % 2]},{LOGP[k]},{k % 2},{k % 3 % 2},{k / 2}" for k, s in enumerate(SMILES)]
    (path / "m.csv").write_text("smiles,kind,logP,t1,t2,pH\n" + "\n".join(lines) + "\n")
    return path


def rows(*words):
    """The rows of text, name → value."""
    lines = call("info", *words).stdout.splitlines()
    return {name: value.strip() for name, _, value in (line.partition("  ") for line in lines)}


def test_a_model_of_classes(folder):
    out = folder / "classes"
    call("train", folder / "m.csv", "--target", "kind", "--epochs", 1, "--hidden", 8, "--out", out, "--no-report")
    shown, metrics = rows(out), json.loads((out / "metrics.json").read_text())
    assert shown["method"] == f"asap+ ({metrics['parameters']:,} parameters)"
    assert shown["predicts"] == "one of 2 classes: a, b"
    assert shown["reads"] == "SMILES (36 node features, 6 edge features)"
    assert shown["trained on"].startswith(f"m ({folder / 'm.csv'}), fingerprint ")
    assert shown["epoch"] == "1 of 1"
    assert shown["test accuracy"] == f"{metrics['test']['accuracy']:.4f} (2 graphs)"
    assert shown["uncertainty"] == "calibrated on 2 validation graphs"
    assert shown["written by"].startswith(f"asapool {asapool.__version__}, torch ")
    card = json.loads(call("info", out, "--json").stdout)
    assert card == {"file": str(out / "model.safetensors"), **asapool.load_model(out).card}
    assert (card["parameters"], card["scores"]["test"]["graphs"]) == (metrics["parameters"], 2)


def test_an_ensemble_with_descriptors(folder):
    out = folder / "ensemble"
    call("train", folder / "m.csv", "--target", "logP", "--descriptors", "pH", "--rdkit-descriptors", "--ensemble", 2,
         "--epochs", 1, "--hidden", 8, "--out", out, "--no-report")  # fmt: skip
    shown = rows(out)
    assert shown["method"].startswith("ensemble of 2 × asap+ (")
    assert shown["predicts"] == "1 measured value: logP"
    assert shown["reads"].startswith("SMILES (36 node features, 6 edge features), the column pH, ")
    assert shown["reads"].endswith(" descriptors that RDKit computes")
    assert "test RMSE" in shown


def test_tasks_of_a_model_without_validation_graphs(folder):
    out = folder / "tasks"
    call("train", folder / "m.csv", "--target", "t1", "--target", "t2", "--task", "multilabel", "--method", "histogram",
         "--final", "--out", out, "--no-report")  # fmt: skip
    shown = rows(out)
    assert shown["predicts"] == "2 yes/no tasks: t1, t2"
    assert shown["uncertainty"].startswith("distance from the training graphs; no calibration")
    assert not [name for name in shown if name.startswith(("test", "validation"))]


def test_a_model_of_an_estimator_and_a_file_that_is_none(folder, tmp_path):
    graphs = asapool.load("synthetic:cycles?graphs=20")
    asapool.ASAPClassifier("asap", hidden=8, epochs=1, random_state=0).fit(graphs).save(tmp_path / "m.safetensors")
    shown = rows(tmp_path / "m.safetensors")
    assert shown["trained on"] == "unknown data"
    assert shown["reads"] == "graphs (3 node features)"
    with pytest.raises(CheckpointError):
        call("info", folder / "m.csv")
