"""Tasks: masked losses and scores worked by hand, scaling by the training part, and every kind from file to answer."""

import csv
import io
import json

import numpy as np
import pytest
import torch

from asapool import load_model
from asapool.data import load
from asapool.data.targets import Target
from asapool.errors import AsapoolError, CheckpointError, ConfigError, DataError
from asapool.models import ModelConfig, build, checkpoint
from asapool.training import RunSettings, TrainConfig, fit, predict, resolve_reading, run
from asapool.training.tasks import TASKS

NAN = float("nan")
SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCCC", "c1ccncc1", "CCS"] * 4
REGRESSION, MULTILABEL = TASKS["regression"], TASKS["multilabel"]
TWO = Target(kind="regression", names=("a", "b"))
LABELS = Target(kind="multilabel", names=("a", "b"), classes=("0", "1"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One table of molecules with a measured column, a second with gaps, and two yes/no columns with gaps."""
    path = tmp_path_factory.mktemp("tasks")
    rows = []
    for k, smiles in enumerate(SMILES):
        carbons = smiles.lower().count("c")
        gap = "" if k % 4 == 0 else f"{100 * carbons + k}"
        label = "" if k % 5 == 0 else carbons % 2
        rows.append([f"m{k}", smiles, f"{carbons + 0.01 * k:.2f}", gap, label, int(k % 3 == 0)])
    with open(path / "all.csv", "w", newline="") as out:
        csv.writer(out).writerows([["id", "smiles", "logS", "mg", "tox", "bind"], *rows])
    with open(path / "one.csv", "w", newline="") as out:
        csv.writer(out).writerows([["id", "smiles", "logS [mol/l]"], *[row[:3] for row in rows]])
    return path


def settings(source, **data):
    tables = {"data": {"source": str(source), **data}, "model": {"method": "asap", "hidden": 8, "levels": 1}}
    return resolve_reading(tables | {"train": {"epochs": 2, "batch_size": 16, "threads": 1}})


@pytest.fixture(scope="module")
def runs(folder):
    """A trained run of every kind."""
    made = {}
    for kind, source, data in (
        ("regression", "one.csv", {}),
        ("several", "all.csv", {"target": ["logS", "mg"], "task": "regression"}),
        ("multilabel", "all.csv", {"target": ["tox", "bind"]}),
    ):
        chosen, reading = settings(folder / source, **data)
        metrics = run.start(chosen, reading.graphs, folder / kind, reading=reading)
        made[kind] = (folder / kind, reading, json.loads(json.dumps(metrics)))
    return made


def test_a_masked_loss_is_the_weighted_mean_of_the_entries_that_are_there():
    graphs = load("synthetic:cycles?graphs=3").with_fields(
        y=np.array([[1.0, NAN], [3.0, 10.0], [5.0, 30.0]]), target=TWO, class_names=()
    )
    target = REGRESSION.scaled(TWO, graphs.y, "three")
    assert target.mean == (3.0, 20.0)
    assert target.scale == pytest.approx((np.sqrt(8 / 3), 10.0))
    train, z = np.arange(3), torch.zeros(3, 2)
    loss = REGRESSION.loss(graphs, train, target, TrainConfig(), None)
    # scaled values: a: −2/s, 0, 2/s with s² = 8/3, so squares 1.5, 0, 1.5; b: 1, 1 → 5 / 5 entries
    assert float(loss(z, torch.zeros(3), train)) == pytest.approx(1.0)
    config = TrainConfig(task_weights={"b": 3.0})
    weighted = REGRESSION.loss(graphs, train, target, config, torch.tensor([1.0, 1.0, 0.0]))
    # graph 2 counts nothing: (1.5 + 0 + 3·1) / (1 + 1 + 3)
    assert float(weighted(z, torch.zeros(3), train)) == pytest.approx(0.9)
    assert weighted.size(train) == 5  # entries that count: two of a, and one of b three times
    assert float(weighted.plain()(z, torch.zeros(3), train)) == pytest.approx(0.9)
    huber = REGRESSION.loss(graphs, train, target, TrainConfig(loss="huber"), None)
    assert float(huber(z, torch.zeros(3), train)) == pytest.approx((2 * (np.sqrt(1.5) - 0.5) + 0 + 0.5 + 0.5) / 5)


def test_a_yes_no_loss_masks_gaps_and_balances_each_task():
    graphs = load("synthetic:cycles?graphs=4").with_fields(
        y=np.array([[1, 0], [0, NAN], [0, NAN], [0, 1.0]]), target=LABELS, class_names=()
    )
    train, z = np.arange(4), torch.tensor([[2.0, 0], [0, 0], [0, 0], [0, 0]])
    plain = MULTILABEL.loss(graphs, train, LABELS, TrainConfig(), None)
    half, sure = np.log(2), np.log1p(np.exp(-2))
    assert float(plain(z, torch.zeros(4), train)) == pytest.approx((sure + 5 * half) / 6)
    balanced = MULTILABEL.loss(graphs, train, LABELS, TrainConfig(class_weights="balanced"), None)
    # task a: yes 4/(2·1) = 2, no 4/(2·3) = 2/3; task b: 1 and 1
    assert float(balanced(z, torch.zeros(4), train)) == pytest.approx((2 * sure + 2 * half + 2 * half) / 6)
    with pytest.raises(ConfigError, match="class_weights"):
        MULTILABEL.loss(graphs, train, LABELS, TrainConfig(class_weights={"maybe": 2.0}), None)
    with pytest.raises(ConfigError, match="no task 'c'"):
        MULTILABEL.loss(graphs, train, LABELS, TrainConfig(task_weights={"c": 2.0}), None)


def test_scores_of_tasks_leave_gaps_out_and_say_what_is_undefined():
    y, p = np.array([[1.0, 5.0], [2.0, NAN], [4.0, NAN]]), np.array([[1.0, 4.0], [2.0, 0.0], [1.0, 0.0]])
    scores = REGRESSION.score(y, p, TWO)
    assert scores["tasks"]["a"]["rmse"] == pytest.approx(np.sqrt(3))
    assert scores["tasks"]["b"]["rmse"] == 1.0
    assert scores["rmse"] == pytest.approx((np.sqrt(3) + 1) / 2)
    assert scores["r2"] == pytest.approx(1 - 9 / (14 / 3))
    assert scores["entries"] == 4
    assert "undefined for 1 of 2 tasks ('b'): only one graph" in scores["notes"]["r2"]
    y, p = np.array([[1, 0], [0, 0], [0, NAN]]), np.array([[0.9, 0.2], [0.1, 0.3], [0.8, 0.1]])
    labels = MULTILABEL.score(y, p, LABELS)
    assert labels["tasks"]["a"]["roc_auc"] == 1.0
    assert labels["tasks"]["b"]["roc_auc"] is None
    assert labels["roc_auc"] == 1.0
    assert "all 2 values of 'b' are equal" in labels["notes"]["roc_auc"]
    assert labels["accuracy"] == pytest.approx((2 / 3 + 1) / 2)


def test_the_scale_comes_from_the_training_part_and_goes_into_the_file(runs):
    path, reading, metrics = runs["regression"]
    split = json.loads((path / "split.json").read_text())
    y = reading.graphs.y[split["train"], 0]
    loaded = checkpoint.load(path)
    assert loaded.target.mean == (pytest.approx(y.mean()),)
    assert loaded.target.scale == (pytest.approx(y.std()),)
    assert loaded.target.units == ("mol/l",)
    assert metrics["target"]["kind"] == "regression"
    assert "measured values (regression)" in reading.notes[0]
    assert 'task = "regression"' in (path / "config.toml").read_text()


@pytest.mark.parametrize("kind", ["regression", "several", "multilabel"])
def test_every_kind_is_trained_saved_and_predicted(runs, kind, folder, tmp_path):
    path, reading, metrics = runs[kind]
    graphs = reading.graphs
    task = TASKS[graphs.target.kind]
    model = load_model(path)
    assert metrics["selected_by"] == {"regression": "rmse", "several": "loss", "multilabel": "roc_auc"}[kind]
    assert metrics["test"][task.headline] is not None
    assert set(metrics["trivial"]["scores"]) == set(task.metrics)
    assert len(metrics["test_intervals"][task.headline]) == 2
    answers = predict(model.module, graphs)
    assert answers.shape == (len(graphs), graphs.target.tasks)
    again = model.predict(folder / ("one.csv" if kind == "regression" else "all.csv"))
    assert np.allclose(again, task.predicted(answers, graphs.target), atol=1e-5)
    split = json.loads((path / "split.json").read_text())
    rows = list(csv.DictReader(io.StringIO((path / "predictions.csv").read_text())))
    assert len(rows) == len(split["test"])
    name = graphs.target.names[0]
    column = f"p({name})" if kind == "multilabel" else f"predicted({name})"
    assert float(rows[0][column]) == pytest.approx(answers[split["test"][0], 0], abs=1e-5)


def test_a_run_resumes_to_the_same_bytes(runs, tmp_path):
    path, reading, _ = runs["several"]

    def stop(epoch, progress):
        raise KeyboardInterrupt

    chosen = RunSettings.from_file(path / "config.toml")
    with pytest.raises(KeyboardInterrupt):
        run.start(chosen, reading.graphs, tmp_path / "stopped", on_epoch=stop)
    run.resume(tmp_path / "stopped")
    assert (tmp_path / "stopped" / "model.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()


def test_models_of_classes_are_written_as_before_and_others_are_refused_by_old_versions(runs):
    graphs = load("synthetic:cycles?graphs=6")
    model = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 2, seed=0)
    assert b'"format":1' in checkpoint.to_bytes(model, classes=("a", "b"), recipe={}).replace(b"\\", b"")
    path, _, _ = runs["regression"]
    assert b'"format":2' in (path / "model.safetensors").read_bytes().replace(b"\\", b"")
    with pytest.raises(CheckpointError, match="not trained"):
        checkpoint.to_bytes(model, recipe={})


def test_values_that_overflow_and_settings_that_do_not_fit_are_refused(folder):
    graphs = load("synthetic:cycles?graphs=8").with_fields(
        y=np.array([[1e308], [-1e308]] * 4), target=Target(kind="regression", names=("a",)), class_names=()
    )
    model = build(ModelConfig(hidden=8, levels=1), graphs.num_features, 1, seed=0)
    parts = type("Parts", (), {"train": np.arange(6), "val": np.arange(6, 8)})
    with pytest.raises(DataError, match="'a' cannot be scaled"):
        fit(model, graphs, parts, TrainConfig(epochs=1))
    good = graphs.with_fields(y=np.arange(8.0)[:, None])
    for config, text in ((TrainConfig(class_weights="balanced"), "for classes"), (TrainConfig(select_by="f1"), "'f1'")):
        with pytest.raises(ConfigError, match=text):
            fit(model, good, parts, config)
    with pytest.raises(ConfigError, match="outputs"):
        fit(build(ModelConfig(hidden=8), graphs.num_features, 2, seed=0), good, parts, TrainConfig(epochs=1))
    with pytest.raises(ConfigError, match="not probabilities"):
        load_model(folder / "regression").predict_proba("CCO")
    with pytest.raises(AsapoolError, match="above 0"):
        TrainConfig(task_weights={"a": -1})
