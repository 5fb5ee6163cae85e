"""asapool.load_model: whatever holds graphs goes in, the command line's numbers come out."""

import csv
import io

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import asapool
from asapool.errors import CheckpointError, DataError
from tests.cli.commands import call

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCCC", "C1CCC1", "CO", "CN", "CS"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained")
    rows = "".join(f"m{k},{s},{'ab'[k % 2]}\n" for k, s in enumerate(SMILES))
    (path / "m.csv").write_text(f"id,Smiles,label\n{rows}")
    words = ("--epochs", 1, "--hidden", 8, "--val", 0.2, "--test", 0.2, "--no-report", "--smiles", "Smiles")
    assert call("train", path / "m.csv", *words, "--out", path / "run").exit_code == 0
    return path


@pytest.fixture(scope="module")
def model(folder):
    return asapool.load_model(folder / "run")


def test_every_way_to_give_molecules_is_the_same(folder, model):
    printed = csv.DictReader(io.StringIO(call("predict", folder / "run", folder / "m.csv").stdout))
    expected = np.array([[float(row["p(a)"]), float(row["p(b)"])] for row in printed])
    table = pd.read_csv(folder / "m.csv")
    for X in (
        SMILES,
        tuple(SMILES),
        folder / "m.csv",
        str(folder / "m.csv"),
        table,
        table["Smiles"],
        model.read(SMILES),
    ):
        p = model.predict_proba(X)
        assert p.shape == (12, 2)
        np.testing.assert_allclose(p, expected, atol=5.1e-7)
    np.testing.assert_allclose(model.predict_proba("CCO"), expected[:1], atol=5.1e-7)
    assert model.predict(SMILES).tolist() == [model.classes[k] for k in expected.argmax(axis=1)]
    assert asapool.load_model(folder / "run" / "model.safetensors").predict("CCO").shape == (1,)
    assert model.read(folder / "m.csv").ids == tuple(f"m{k}" for k in range(12))


def test_it_explains_what_it_predicts(model):
    hierarchy = model.explain("c1ccccc1O", importance=["attention"])
    assert hierarchy.nodes == 7
    assert hierarchy.answer == model.predict("c1ccccc1O")[0]
    assert model.explain(SMILES, 1, target="a", importance=["gradient"]).nodes == 6
    with pytest.raises(DataError, match="index must lie in 0 to 11, got 12"):
        model.explain(SMILES, 12)


def test_graphs_of_other_libraries(tmp_path):
    source = "synthetic:cycles?graphs=20&nodes=6"
    run = ("--epochs", 1, "--hidden", 4, "--method", "mlp", "--no-report", "--out", tmp_path / "r")
    assert call("train", source, *run).exit_code == 0
    model, graphs = asapool.load_model(tmp_path / "r"), asapool.load(source)
    expected = model.predict_proba(graphs)
    assert np.array_equal(model.predict_proba(source), expected)
    data = [graphs.to_pyg(i) for i in range(len(graphs))]
    assert np.array_equal(model.predict_proba(data), expected)
    assert np.array_equal(model.predict_proba(data[3]), expected[3:4])
    with pytest.raises(DataError, match="was not trained on SMILES"):
        model.predict(["CCO"])


def test_networkx_graphs_get_the_features_of_the_training(tmp_path):
    rings = [nx.cycle_graph(4 + k % 4) for k in range(10)] + [nx.path_graph(4 + k % 4) for k in range(10)]
    for k, graph in enumerate(rings):
        graph.graph["label"] = "ring" if k < 10 else "path"
    made = asapool.load(rings, features="degree", labels="required")
    from asapool.models import ModelConfig, build, checkpoint

    network = build(ModelConfig(method="mlp", hidden=4), made.num_features, 2, seed=0)
    checkpoint.save(tmp_path / "m.safetensors", network, classes=made.class_names, recipe=made.recipe)
    model = asapool.load_model(tmp_path / "m.safetensors")
    assert np.array_equal(model.predict_proba(rings), model.predict_proba(made))
    assert np.array_equal(model.predict_proba(rings[2]), model.predict_proba(made)[2:3])


def test_what_does_not_fit_is_one_sentence(model, tmp_path):
    for bad, error, says in (
        (["CCO", "C1CC"], DataError, r"X\[1\]: 'C1CC' is not SMILES"),
        (asapool.load("synthetic:cycles?graphs=4"), CheckpointError, "nodes have 3 features"),
        ([], DataError, "an empty list"),
        (3, DataError, "got int"),
        ("gone.csv", DataError, "no such file"),
    ):
        with pytest.raises(error, match=says):
            model.predict(bad)
    with pytest.raises(DataError, match="skip_invalid: an option for reading a file"):
        model.predict(["CCO"], skip_invalid=True)
    with pytest.raises(CheckpointError, match=r"contains no model\.safetensors"):
        asapool.load_model(tmp_path)
