"""--from and --freeze-encoder: which weights are taken, which are frozen, and what is refused."""

import pytest
import torch

from asapool.data import load
from asapool.errors import ConfigError
from asapool.models import ModelConfig, build, checkpoint
from asapool.training.new_model import take_weights
from tests.cli.commands import call

SOURCE = "synthetic:cycles?graphs=40"
TINY = ("--hidden", 4, "--epochs", 1, "--no-report", "--val", 0.2, "--test", 0.2)


@pytest.mark.parametrize("name", ["asap", "asap+"])
def test_the_encoder_is_taken_and_the_head_if_it_fits(name):
    config = ModelConfig(method=name, hidden=4, levels=1)
    old = build(config, 3, 2, seed=0)
    same, other = build(config, 3, 2, seed=1), build(config, 3, 5, seed=1)
    taken = take_weights(same, old)
    assert not taken.left
    assert taken.sentence("m") == "all weights were copied from m"
    assert all(torch.equal(a, b) for a, b in zip(same.state_dict().values(), old.state_dict().values(), strict=True))
    fresh = {key: value.clone() for key, value in other.state_dict().items()}
    taken = take_weights(other, old)
    last = "head.lin2" if name == "asap" else "lin2"
    assert taken.left == (f"{last}.weight", f"{last}.bias")
    for key, value in other.state_dict().items():
        assert torch.equal(value, fresh[key] if key.startswith(last) else old.state_dict()[key]), key
    assert f"newly initialised: {last}.weight, {last}.bias" in taken.sentence("m")


def test_another_encoder_is_refused():
    old = build(ModelConfig(hidden=4), 3, 2, seed=0)
    with pytest.raises(ConfigError, match="contains a model of the method 'asap'"):
        take_weights(build(ModelConfig(method="topk", hidden=4), 3, 2), old)
    with pytest.raises(ConfigError, match=r"bias has the shape \(4,\), but this model needs \(8,\)"):
        take_weights(build(ModelConfig(hidden=8), 3, 2), old)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / "run"
    call("train", SOURCE, *TINY, "--method", "asap+", "--out", folder)
    return folder


def test_train_starts_from_a_model_with_its_settings(first, tmp_path):
    done = call("train", SOURCE, "--epochs", 1, "--lr", 1e-12, "--seed", 5, "--no-report", "--set",
                "train.weight_decay=0.0", "--from", first, "--out", tmp_path / "run")  # fmt: skip
    assert "all weights were copied from" in done.stderr
    old, new = (checkpoint.load(folder).model for folder in (first, tmp_path / "run"))
    assert new.config == old.config
    for (name, a), b in zip(old.named_parameters(), new.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0), name


def test_a_frozen_encoder_keeps_its_bytes(first, tmp_path):
    call("train", SOURCE, "--epochs", 2, "--no-report", "--seed", 1, "--from", first, "--freeze-encoder",
         "--out", tmp_path / "run")  # fmt: skip
    old, new = (checkpoint.load(folder).model for folder in (first, tmp_path / "run"))
    changed = [k for k, v in new.state_dict().items() if not torch.equal(v, old.state_dict()[k])]
    assert changed
    assert all(new.is_head(name) for name in changed)


def test_what_cannot_be_started_from(first, tmp_path):
    with pytest.raises(ConfigError, match=r"train\.freeze_encoder needs a trained encoder"):
        call("train", SOURCE, *TINY, "--freeze-encoder", "--out", tmp_path / "a")
    with pytest.raises(ConfigError, match="contains a model of the method"):
        call("train", SOURCE, *TINY, "--from", first, "--method", "topk", "--out", tmp_path / "b")
    with pytest.raises(ConfigError, match="trained on node features made with another"):
        call("train", "synthetic:motifs?graphs=20", "--epochs", 1, "--from", first, "--out", tmp_path / "c")
    assert not (tmp_path / "a").exists()


def test_descriptors_reach_the_training_and_the_prediction(tmp_path):
    rows = "".join(f"{'C' * (k % 4 + 1)}O,{'ab'[k % 2]},{10 * (k % 2)}\n" for k in range(40))
    (tmp_path / "m.csv").write_text(f"smiles,label,mp\n{rows}")
    call("train", tmp_path / "m.csv", *TINY, "--method", "asap", "--descriptors", "mp", "--rdkit-descriptors",
         "--out", tmp_path / "run")  # fmt: skip
    model = checkpoint.load(tmp_path / "run").model
    assert model.shape.graph_channels == 44
    train = load(tmp_path / "m.csv", descriptors="mp", target="label").descriptors
    assert model.descriptors.mean[0] == pytest.approx(train.mean(), abs=2)
    assert call("predict", tmp_path / "run", tmp_path / "m.csv").exit_code == 0
    assert call("train", "--resume", tmp_path / "run", "--no-report").exit_code == 0
