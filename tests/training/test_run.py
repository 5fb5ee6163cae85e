"""A run: its folder says everything, it can be repeated and resumed to the byte, nothing is overwritten by accident."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from asapool.data import GraphSet, load
from asapool.errors import CheckpointError, ConfigError, DataError, TrainingError
from asapool.models import checkpoint
from asapool.training import resolve, resolve_reading, resume, run, start
from asapool.training.settings import RunSettings
from tests.children import run_python

TABLES = {
    "data": {"source": "synthetic:motifs?graphs=40&nodes=8"},
    "model": {"hidden": 8},
    "train": {"epochs": 4, "batch_size": 16},
}


@pytest.fixture(scope="module")
def prepared():
    return resolve(TABLES)


@pytest.fixture(scope="module")
def finished(prepared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "one"
    return folder, start(*prepared, folder)


def test_the_folder_says_everything(prepared, finished):
    (_, graphs), (folder, metrics) = prepared, finished
    names = {p.name for p in folder.iterdir()}
    assert names == {
        ".lock", "config.toml", "split.json", "model.safetensors", "history.csv", "predictions.csv", "metrics.json",
        "README.md",
    }  # fmt: skip
    assert json.loads((folder / "metrics.json").read_text()) == metrics
    assert metrics["test"]["graphs"] == metrics["parts"]["test"] == 4
    with open(folder / "history.csv") as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == ["1", "2", "3", "4"]
    split = json.loads((folder / "split.json").read_text())
    with open(folder / "predictions.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [graphs.ids[i] for i in split["test"]]
    assert [int(row["graph"]) for row in rows] == split["test"]
    right = sum(row["label"] == row["predicted"] for row in rows) / len(rows)
    assert right == metrics["test"]["accuracy"]


def test_the_model_file_knows_how_it_came_to_be(prepared, finished):
    (settings, graphs), (folder, metrics) = prepared, finished
    loaded = checkpoint.load(folder / "model.safetensors")
    assert loaded.classes == graphs.class_names
    assert loaded.fingerprint == graphs.fingerprint
    assert loaded.summary["test"] == metrics["test"]
    assert loaded.summary["best_epoch"] == metrics["best_epoch"]
    assert loaded.config == replace(settings.model, backend="reference")  # the job is a small one


def test_what_a_run_leaves_is_on_the_disk_before_it_counts_as_finished(prepared, tmp_path, monkeypatch):
    synced, named, sync, rename = set(), {}, os.fsync, os.replace

    def note_sync(handle):
        synced.add(os.fstat(handle).st_ino)
        sync(handle)

    def note_name(old, new):
        named[Path(new).name] = os.stat(old).st_ino in synced
        rename(old, new)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_name)
    start(*prepared, tmp_path / "run")
    assert list(named) == [
        "split.json", "config.toml", "state.safetensors", "model.safetensors", "README.md", "history.csv",
        "predictions.csv", "metrics.json",
    ]  # fmt: skip
    assert not named.pop("state.safetensors")  # after every epoch that would cost too much
    assert all(named.values())


def test_the_same_settings_give_the_same_model_byte_for_byte(finished, tmp_path):
    folder, _ = finished
    again = RunSettings.from_file(folder / "config.toml")
    start(again, again.data.load(), tmp_path / "again")
    for name in ("model.safetensors", "config.toml", "split.json", "predictions.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes(), name


@pytest.mark.parametrize("kills", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_kills_at_random_moments_change_no_byte(kills, tmp_path):
    done = run_python(f"from tests.training.killing import main; main({str(tmp_path)!r}, {kills})", seconds=280)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= kills  # all of them died, some in the middle of the training
    for name in ("model.safetensors", "predictions.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()
    assert {p.name for p in (tmp_path / "killed").iterdir()} == {p.name for p in (tmp_path / "undisturbed").iterdir()}


def test_a_finished_run_is_only_read_by_resume(finished):
    folder, metrics = finished
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir() if p.name != ".lock"}
    assert resume(folder) == metrics
    assert before == {p.name: p.stat().st_mtime_ns for p in folder.iterdir() if p.name != ".lock"}


def test_a_run_is_not_overwritten_by_accident(prepared, finished, tmp_path):
    folder, _ = finished
    with pytest.raises(ConfigError, match="already contains a run"):
        start(*prepared, folder)
    start(*prepared, tmp_path)
    (tmp_path / "mine.txt").write_text("stays")
    start(*prepared, tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "stays"


def test_there_is_nothing_to_resume_where_nothing_began(tmp_path):
    with pytest.raises(CheckpointError, match="contains no run"):
        resume(tmp_path)


def test_other_graphs_under_the_same_name_are_refused(tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    load("synthetic:motifs?graphs=40&nodes=8").save(tmp_path / "graphs.npz")
    settings, graphs = resolve({**TABLES, "data": {"source": str(tmp_path / "graphs.npz")}})
    with pytest.raises(KeyboardInterrupt):
        start(settings, graphs, tmp_path / "run", on_epoch=stop)
    load("synthetic:motifs?graphs=40&nodes=8&seed=1").save(tmp_path / "graphs.npz")
    with pytest.raises(DataError, match="fingerprint"):
        resume(tmp_path / "run")


def test_a_diverged_run_keeps_its_best_weights_and_says_where(tmp_path):
    leaping = {"epochs": 4, "lr_step": 1, "lr_gamma": 1e25}  # the second epoch steps a little far
    settings, graphs = resolve({**TABLES, "model": {"hidden": 8, "method": "mlp"}, "train": leaping})
    with pytest.raises(
        TrainingError, match=r"epoch [23]; the best weights before that, of epoch 1, are in .*model.safetensors"
    ):
        start(settings, graphs, tmp_path)
    loaded = checkpoint.load(tmp_path / "model.safetensors")
    assert all(torch.isfinite(p).all() for p in loaded.model.parameters())


def test_graphs_without_a_label_are_left_out(tmp_path):
    whole = load("synthetic:cycles?graphs=30")
    y = whole.y.copy()
    y[:6] = -1
    made: GraphSet = replace(whole, y=y)
    made.save(tmp_path / "some.npz")
    settings, graphs = resolve({**TABLES, "data": {"source": str(tmp_path / "some.npz")}})
    assert len(graphs) == 24
    assert np.all(graphs.y >= 0)
    metrics = start(settings, graphs, tmp_path / "run")
    assert sum(metrics["parts"][part] for part in ("train", "val", "test")) == 24


@pytest.fixture
def gaps(tmp_path):
    """Thirty molecules, with a row that cannot be read and two without a class before them."""
    rows = ["C(,a", "CC,", "CO,n/a", *(f"{'C' * (k + 1)}{'ON'[k % 2]},{'ab'[k % 2]}" for k in range(30))]
    (tmp_path / "m.csv").write_text("smiles,activity\n" + "\n".join(rows) + "\n")
    return {**TABLES, "data": {"source": str(tmp_path / "m.csv"), "skip_invalid": True}}


def test_what_was_left_out_is_reported_and_kept(gaps, tmp_path):
    settings, reading = resolve_reading(gaps)
    graphs = reading.graphs
    assert ([row.line for row in reading.skipped], reading.missing, reading.unlabelled) == ([2], {"n/a": 1}, 2)
    assert settings.data.target == "activity"

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(settings, graphs, tmp_path / "stopped", reading=reading, on_epoch=stop)
    for metrics in (start(settings, graphs, tmp_path / "run", reading=reading), resume(tmp_path / "stopped")):
        reported = metrics["data"]
        assert (reported["graphs"], reported["skipped_rows"], reported["without_class"]) == (30, 1, 2)
        assert reported["class_column"] == "activity"
    assert RunSettings.from_file(tmp_path / "run" / "config.toml").data.target == "activity"


def test_the_predictions_of_a_run_are_numbered_as_in_the_source(gaps, tmp_path):
    settings, graphs = resolve(gaps)
    start(settings, graphs, tmp_path / "run")
    split = json.loads((tmp_path / "run" / "split.json").read_text())
    with open(tmp_path / "run" / "predictions.csv") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["graph"]) for row in rows] == [i + 3 for i in split["test"]]  # three rows come before them
    assert [int(row["id"]) for row in rows] == [i + 5 for i in split["test"]]  # lines count from 1, with the header
    assert [row["smiles"] for row in rows] == [graphs.source_text[i] for i in split["test"]]
    assert list(rows[0])[:4] == ["graph", "id", "label", "smiles"]


def test_a_new_folder_never_meets_an_old_one(tmp_path):
    first = run.new_folder(tmp_path, "synthetic:motifs asap")
    assert first.name == "synthetic-motifs-asap"
    first.mkdir()
    assert run.new_folder(tmp_path, "synthetic:motifs asap").name == "synthetic-motifs-asap-2"
    assert run.new_folder(tmp_path, "motifs-asap+").name == "motifs-asap+"  # not the name of another method
    assert run.new_folder(tmp_path, "../..").parent == tmp_path


def test_the_folder_of_a_cross_validation_is_refused(tmp_path):
    (tmp_path / "runs.jsonl").write_text("")
    with pytest.raises(ConfigError, match="contains the training runs of a cross-validation or of tables"):
        start(*resolve(TABLES), tmp_path, overwrite=True)
    assert not (tmp_path / "config.toml").exists()


def test_a_run_without_a_validation_part_keeps_the_last_epoch_and_can_be_repeated_from_its_settings(tmp_path):
    settings, graphs = resolve(TABLES | {"split": {"merge_validation": True}})
    metrics = start(settings, graphs, tmp_path / "one")
    assert (metrics["parts"]["val"], metrics["best_epoch"], metrics["validation"]) == (0, 4, None)
    assert metrics["selected_by"] == "last"  # no validation score chose it
    assert metrics["parts"]["train"] + metrics["parts"]["test"] == 40
    assert RunSettings.from_file(tmp_path / "one" / "config.toml").split.merge_validation
    with pytest.raises(ConfigError, match="merge_validation must be true or false"):
        resolve(TABLES | {"split": {"merge_validation": "yes"}})
