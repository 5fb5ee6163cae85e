"""`train --log`: the curves arrive where they were sent, and change nothing of the run."""

from importlib.util import find_spec

import pytest

from asapool.errors import ConfigError
from tests.cli.commands import call

SMALL = ("synthetic:cycles?graphs=24&nodes=6", "--method", "none", "--hidden", 4, "--epochs", 3, "--no-report")


def needs(name):
    return pytest.mark.skipif(find_spec(name) is None, reason=f'{name} is not installed; pip install "asapool[{name}]"')


@needs("tensorboard")
def test_tensorboard_has_every_epoch(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert call("train", *SMALL, "--out", tmp_path / "logged", "--log", "tensorboard").exit_code == 0
    assert call("train", *SMALL, "--out", tmp_path / "plain").exit_code == 0
    events = EventAccumulator(str(tmp_path / "logged" / "tensorboard")).Reload()
    assert [scalar.step for scalar in events.Scalars("loss/train")] == [1, 2, 3]
    assert "test/accuracy" in events.Tags()["scalars"]
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("logged", "plain")]
    assert models[0] == models[1]


@needs("mlflow")
def test_mlflow_has_every_epoch(tmp_path, monkeypatch):
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    assert call("train", *SMALL, "--out", tmp_path / "run", "--log", "mlflow").exit_code == 0
    [result] = mlflow.search_runs(output_format="list")
    assert result.data.params["model.method"] == "none"
    history = mlflow.MlflowClient().get_metric_history(result.info.run_id, "loss_train")
    assert [metric.step for metric in history] == [1, 2, 3]


@needs("wandb")
def test_wandb_writes_an_offline_run(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    assert call("train", *SMALL, "--out", tmp_path / "run", "--log", "wandb").exit_code == 0
    assert list((tmp_path / "run" / "wandb").glob("offline-run-*"))


def test_an_unknown_log_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match="--log must be one of"):
        call("train", *SMALL, "--out", tmp_path / "run", "--log", "paper")
    assert not (tmp_path / "run").exists()
