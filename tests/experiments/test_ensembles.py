"""Ensembles: N training runs of one split as one model, the models of a cross-validation; a kill loses no member."""

import json
import os
import signal

import numpy as np
import pytest

import asapool
from asapool.data import load
from asapool.errors import CheckpointError, ConfigError
from asapool.experiments.engines import InlineEngine
from asapool.experiments.ensembles import is_ensemble, resume_ensemble, train_ensemble
from asapool.models import checkpoint
from asapool.models.ensemble import EnsembleModel
from asapool.training import RunSettings, predict
from asapool.training.predictions import predict_members
from tests.cli.commands import begin, call, wait_for

SOURCE = "synthetic:cycles?graphs=40"
TABLES = {
    "data": {"source": SOURCE},
    "model": {"method": "asap", "hidden": 4, "levels": 1},
    "train": {"epochs": 2, "select_by": "loss"},
    "split": {"val": 0.25, "test": 0.25},
}


@pytest.fixture(scope="module")
def graphs():
    return load(SOURCE)


@pytest.fixture(scope="module")
def trained(graphs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensemble") / "e"
    metrics = train_ensemble(RunSettings.from_dict(TABLES), graphs, folder, 3, InlineEngine())
    return folder, metrics


def test_the_answer_is_the_mean_of_the_members(graphs, trained):
    folder, metrics = trained
    ensemble = checkpoint.load(folder).model
    assert isinstance(ensemble, EnsembleModel)
    files = sorted((folder / "members" / "models").glob("*.safetensors"))
    each = np.stack([predict(checkpoint.load(path).model, graphs) for path in files])
    np.testing.assert_allclose(np.sort(predict_members(ensemble, graphs), axis=0), np.sort(each, axis=0), atol=1e-6)
    np.testing.assert_allclose(predict(ensemble, graphs), each.mean(axis=0), atol=1e-6)
    assert len({p.tobytes() for p in each}) == 3  # different seeds
    assert metrics["ensemble"]["members"] == len(metrics["ensemble"]["test"]) == 3
    assert metrics == json.loads((folder / "metrics.json").read_text())


@pytest.mark.parametrize("kind", ["classification", "multilabel", "regression"])
def test_the_outputs_mean_the_mean_answer(kind):
    """Two members with outputs fixed by hand: p = 0.2 and 0.6 give 0.4; values 1 and 4 on two scales give 2.5."""
    import torch

    from asapool.data.targets import Target
    from asapool.models.ensemble import JOINS

    if kind == "classification":
        outputs = [torch.tensor([[0.8, 0.2]]).log(), torch.tensor([[0.4, 0.6]]).log() + 7]
        torch.testing.assert_close(JOINS[kind](outputs, [None, None]).softmax(dim=1), torch.tensor([[0.6, 0.4]]))
    elif kind == "multilabel":
        outputs = [torch.tensor([[0.2]]).logit(), torch.tensor([[0.6]]).logit()]
        torch.testing.assert_close(JOINS[kind](outputs, [None, None]).sigmoid(), torch.tensor([[0.4]]))
    else:
        one = Target(kind="regression", names=("y",), mean=(1.0,), scale=(2.0,))
        two = Target(kind="regression", names=("y",), mean=(0.0,), scale=(4.0,))
        joined = JOINS[kind]([torch.tensor([[0.0]]), torch.tensor([[1.0]])], [one, two])
        assert (joined * 2 + 1).tolist() == [[2.5]]


def test_one_model_to_hand_on(trained, graphs, tmp_path):
    folder, _ = trained
    alone = tmp_path / "m.safetensors"
    alone.write_bytes((folder / "model.safetensors").read_bytes())
    model = asapool.load_model(alone)
    np.testing.assert_array_equal(model.predict_proba(graphs), asapool.load_model(folder).predict_proba(graphs))
    assert model.embed(graphs).shape == (40, 3 * 8)
    assert model.explain(graphs, 0).levels  # of the first member
    card = (folder / "README.md").read_text()
    assert "This model is the mean of 3 of them." in card
    assert "one split and 3 training runs" in card
    rows = call("predict", folder, SOURCE, "--coverage", 0.8).stdout.splitlines()
    assert rows[0] == (
        "graph,id,predicted,p(cycle),p(path),spread,calibrated(cycle),calibrated(path),set,distance_quantile,"
        "unlike_training"
    )


def test_a_killed_ensemble_loses_no_finished_member(graphs, trained, tmp_path):
    folder = tmp_path / "e"
    words = ["train", SOURCE, "--ensemble", "3", "--method", "asap", "--hidden", "4", "--epochs", "2", "--no-report",
             "--val", "0.25", "--test", "0.25", "--out", folder, "--set", "model.levels=1", "--set",
             "train.select_by=loss"]  # fmt: skip
    process = begin(*words, start_new_session=True)
    store = folder / "members" / "runs.jsonl"
    wait_for(lambda: store.exists() and store.read_bytes().count(b"\n") >= 1, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert is_ensemble(folder)
    finished = store.read_bytes().split(b"\n")[0]
    if not (folder / "metrics.json").exists():
        with pytest.raises(CheckpointError, match="contains no model"):
            checkpoint.load(folder)
    assert call("train", "--resume", folder, "--no-report").exit_code == 0
    assert store.read_bytes().split(b"\n")[0] == finished
    whole, _ = trained
    assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", ["asap", "asap+"])
def test_padded_batches_give_the_same_outputs(name, graphs):
    import torch

    from asapool.models import ModelConfig, build
    from asapool.models.batches import cut
    from asapool.models.padded import PaddedModel

    config = ModelConfig(method=name, hidden=4, levels=1)
    members = [build(config, graphs.num_features, 2, seed=seed) for seed in (0, 1)]
    ensemble = EnsembleModel(members).eval()
    batch = cut(ensemble, graphs, np.arange(1))
    N = batch.x.size(0)
    adjacency = torch.zeros(1, N, N)
    adjacency[0, torch.repeat_interleave(torch.arange(N), batch.rowptr.diff()), batch.col] = 1.0
    outputs = PaddedModel(ensemble)(batch.x[None], adjacency, torch.tensor([N]))
    torch.testing.assert_close(outputs, ensemble(*batch.inputs), atol=1e-5, rtol=1e-5)


def test_what_is_finished_is_only_read(trained):
    folder, metrics = trained

    class Refuses:
        def work(self, *_):
            raise AssertionError("nothing is left to train")

    assert resume_ensemble(folder, Refuses()) == metrics


def test_a_member_without_its_model_is_trained_again(graphs, tmp_path):
    settings = RunSettings.from_dict(TABLES)
    train_ensemble(settings, graphs, tmp_path / "e", 2, InlineEngine())
    whole = (tmp_path / "e" / "model.safetensors").read_bytes()
    for path in (tmp_path / "e" / "metrics.json", tmp_path / "e" / "model.safetensors"):
        path.unlink()
    next((tmp_path / "e" / "members" / "models").glob("*.safetensors")).unlink()
    resume_ensemble(tmp_path / "e", InlineEngine())
    assert (tmp_path / "e" / "model.safetensors").read_bytes() == whole


def test_what_cannot_be_an_ensemble(graphs, trained, tmp_path):
    settings = RunSettings.from_dict(TABLES)
    with pytest.raises(ConfigError, match="an ensemble has 2 to 1000 members, got 1"):
        train_ensemble(settings, graphs, tmp_path / "e", 1, InlineEngine())
    with pytest.raises(ConfigError, match="already contains a run"):
        train_ensemble(settings, graphs, trained[0], 2, InlineEngine())
    assert not (tmp_path / "e").exists()


def test_the_models_of_a_cross_validation_are_an_ensemble(tmp_path, graphs):
    folder = tmp_path / "cv"
    words = ("cv", SOURCE, "--folds", 3, "--method", "asap", "--hidden", 4, "--epochs", 1, "--no-report", "--out")
    assert call(*words, folder, "--keep-models").exit_code == 0
    loaded = checkpoint.load(folder)
    assert len(loaded.model.models) == 3
    assert len(loaded.extra["trust"]["tasks"][0]["scores"]) == 40  # every graph, by the model that has not seen it
    assert call("predict", folder, SOURCE, "--coverage", 0.9).exit_code == 0
    plain = tmp_path / "plain"
    call(*words, plain)
    assert not (plain / "models").exists()
    assert call(*words, plain, "--keep-models").exit_code == 0  # trained before without its models
    assert (plain / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert (plain / "runs.jsonl").read_bytes().count(b"\n") == 3


def test_a_forest_can_be_a_member(tmp_path, graphs):
    tables = TABLES | {"model": {"method": "histogram"}}
    train_ensemble(RunSettings.from_dict(tables), graphs, tmp_path / "f", 2, InlineEngine())
    assert call("predict", tmp_path / "f", SOURCE, "--coverage", 0.8).stdout.splitlines()[0].endswith(",set")


def test_what_needs_one_model_says_so(trained, tmp_path):
    """Each member has its own clusters and weights."""
    folder, _ = trained
    with pytest.raises(ConfigError, match="the members of an ensemble pool each graph differently"):
        call("embed", folder, SOURCE, "--level", 1, "-o", tmp_path / "v.npz")
    with pytest.raises(ConfigError, match=r"contains an ensemble of 3 models, but training starts from one model"):
        call("train", SOURCE, "--from", folder, "--epochs", 1, "--out", tmp_path / "run")
    [member, *_] = sorted((folder / "members" / "models").glob("*.safetensors"))
    done = call("train", SOURCE, "--from", member, "--epochs", 1, "--out", tmp_path / "run", "--no-report")
    assert done.exit_code == 0, done.stderr
    done = call("explain", folder, SOURCE, "-o", tmp_path / "e.json")
    assert "an ensemble of 3 models, each with its own clusters; this explains the first one" in done.stderr
