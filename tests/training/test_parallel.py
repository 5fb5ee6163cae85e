"""Several processes share every batch: the numbers of one, the same bytes again, and a lost process is one sentence."""

import csv
import multiprocessing
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from asapool.data import GraphSet
from asapool.errors import ConfigError, TrainingError
from asapool.kernels.shards import Shard
from asapool.models import build
from asapool.training import fit, resolve, resume, start
from asapool.training.parallel import Processes, own_part

# processes on GPUs compute a shared batch packed, with the reference backend
TRAINED = {
    "asap": "fused",
    "asap+": "fused",
    "diffpool": "fused",
    "plain asap": "reference",
    "plain asap+": "reference",
}
TABLES = {
    "data": {"source": "synthetic:motifs?graphs=45&nodes=8"},
    # 37 training graphs: batches of 12, 12, 12, and one of a single graph, which two processes cannot share
    "train": {"epochs": 2, "batch_size": 12, "threads": 1, "class_weights": "balanced"},
}


def settings_of(method, backend="fused"):
    return resolve({**TABLES, "model": {"method": method, "hidden": 8, "attention_dropout": 0.2, "backend": backend}})


def train_each(shard):
    """The history of every method, trained with or without others."""
    histories = {}
    for name, backend in TRAINED.items():
        settings, graphs = settings_of(name.removeprefix("plain "), backend)
        split = settings.split.make(graphs)
        model = build(settings.model, graphs.num_features, graphs.num_classes, seed=0, typical_nodes=8)
        done = fit(model, graphs, split, settings.train, shard=shard)
        histories[name] = [[epoch.loss, epoch.val_loss] for epoch in done.history]
    return histories


@pytest.fixture(scope="module")
def alone():
    return train_each(None)


@pytest.fixture(scope="module")
def shared():
    with Processes(2) as processes, processes.sharing(train_each) as shard:
        return train_each(shard)


def history(folder):
    with open(folder / "history.csv") as file:
        return [[float(row["loss"]), float(row["val_loss"])] for row in csv.DictReader(file)]


def test_two_processes_give_the_numbers_of_one(alone, shared):
    np.testing.assert_allclose(shared["asap"], alone["asap"], rtol=2e-5)
    np.testing.assert_allclose(shared["diffpool"], alone["diffpool"], rtol=2e-5)  # with its penalty
    # biases in front of a batch norm have no gradient but rounding, which Adam scales up; training losses ignore them
    np.testing.assert_allclose(np.array(shared["asap+"])[:, 0], np.array(alone["asap+"])[:, 0], rtol=2e-4)
    np.testing.assert_allclose(shared["plain asap"], alone["plain asap"], rtol=2e-5)
    losses, of_one = np.array(shared["plain asap+"])[:, 0], np.array(alone["plain asap+"])[:, 0]
    np.testing.assert_allclose(losses, of_one, rtol=2e-4)


def test_torchrun_gives_the_same_bytes(shared, tmp_path):
    settings, _ = settings_of("asap")
    (tmp_path / "config.toml").write_text(settings.to_toml())
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "asapool", "train"]
    words += ["--config", tmp_path / "config.toml", "-o", tmp_path / "run", "--no-report"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert history(tmp_path / "run") == shared["asap"]


def test_a_killed_process_is_one_sentence_and_any_number_resumes(alone, tmp_path):
    def kill(epoch, progress):
        if epoch.epoch == 1:
            os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

    folder = tmp_path / "killed"
    with pytest.raises(TrainingError, match=r"process 2 of 2: .*SIGKILL.*--resume") as caught, Processes(2) as two:
        start(*settings_of("asap"), folder, processes=two, on_epoch=kill)
    assert "\n" not in str(caught.value)
    resume(folder)
    np.testing.assert_allclose(history(folder), alone["asap"], rtol=2e-5)


def test_shards_have_about_the_same_number_of_nodes_and_edges():
    sizes = [3, 3, 3, 20, 3, 3, 3, 3, 3]
    graphs = GraphSet(x=np.ones((44, 1)), ptr=[0, *np.cumsum(sizes)], rowptr=[0] * 45, col=[])
    parts = own_part(graphs, np.arange(9), Shard(0, 2))
    assert [part.tolist() for part in parts] == [[0, 1, 2, 3], [4, 5, 6, 7, 8]]
    # each process has a graph, however large the first one is
    assert [len(part) for part in own_part(graphs, np.array([3, 0, 1]), Shard(0, 3))] == [1, 1, 1]
    assert [len(part) for part in own_part(graphs, np.array([0, 1, 3]), Shard(0, 3))] == [1, 1, 1]


def test_what_cannot_be_shared_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="not trained by gradient descent"), Processes(2) as processes:
        start(*settings_of("majority"), tmp_path / "run", processes=processes)
    with pytest.raises(ConfigError, match="at least 1"):
        Processes(0)
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="Leave out -j"):
        Processes(2)
