"""The Ray engine on a real cluster of two nodes: machines, processes and drivers that are killed cost no Run."""

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import asapool
from asapool.errors import ConfigError, MissingExtraError, TrainingError
from asapool.experiments import ray_cluster, ray_connection
from asapool.experiments.execute import execute
from asapool.experiments.fold import run
from asapool.experiments.plan import Cell, Plan
from asapool.experiments.ray_cluster import RayEngine
from asapool.experiments.ray_training import RayProcesses
from asapool.experiments.record import RunRecord
from asapool.experiments.run import Run
from asapool.experiments.searching import tune
from asapool.experiments.space import Space
from asapool.experiments.store import Store
from asapool.models.config import ModelConfig
from asapool.training import resolve, resume, start
from asapool.training.config import TrainConfig
from asapool.training.settings import DataConfig

ROOT = Path(__file__).parents[2]
SOURCE = "synthetic:cycles?graphs=40&nodes=6"
needs_ray = pytest.mark.skipif(
    find_spec("ray") is None, reason='ray is not installed; pip install "asapool[cluster]" to run this test'
)
DRIVER = """
import sys
from tests.experiments.test_ray_cluster import carry_out
carry_out(sys.argv[1], sys.argv[2] or None, jobs=1)
"""


@pytest.fixture(scope="module")
def cluster():
    if find_spec("ray") is None:
        pytest.skip(needs_ray.kwargs["reason"])
    ray = ray_connection.load_ray()
    from ray.cluster_utils import Cluster

    folders = set(Path("/tmp").glob("asapool-ray-*"))
    small = {"num_cpus": 1, "object_store_memory": ray_connection.LEAST_STORE}
    with pytest.MonkeyPatch.context() as patch:
        # another Ray of this machine keeps its own files, the address that "auto" means among them
        patch.setenv("RAY_TMPDIR", tempfile.mkdtemp(prefix="asapool-ray-", dir="/tmp"))
        patch.setenv("RAY_worker_niceness", "0")  # else everything else on a busy machine comes first
        made = Cluster(initialize_head=True, head_node_args=small | {"include_dashboard": False})
        made.second = made.add_node(**small)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()
    for left in set(Path("/tmp").glob("asapool-ray-*")) - folders:  # ours, and that of the driver that is killed
        shutil.rmtree(left, ignore_errors=True)


@pytest.fixture(scope="module")
def graphs():
    return asapool.load(SOURCE)


def one(graphs, **changes):
    values = {"model": ModelConfig(hidden=8), "train": TrainConfig(epochs=2), "seed": 1, "fold": 0, "folds": 3}
    return Run(**{"data": "cycles", "fingerprint": graphs.fingerprint} | values | changes)


def plan(epochs):
    def cell(method):
        model, train = ModelConfig(method=method, hidden=8), TrainConfig(epochs=epochs)
        return Cell(row=method, column="cycles", source=DataConfig(source=SOURCE), model=model, train=train)

    return Plan(name="small", title="Small", cells=(cell("asap"), cell("topk")), seeds=(1,), folds=4)


def carry_out(folder, address, on_record=None, epochs=30, jobs=None):
    graphs = {"cycles": asapool.load(SOURCE)}
    with Store.open(folder) as store:
        return execute(plan(epochs), graphs, store, RayEngine(address, jobs), on_record)


def meaning(record):
    """What two engines must agree on: all but times and machines."""
    kept = RunRecord.from_line(record.to_line())
    history = [{name: value for name, value in row.items() if name != "seconds"} for row in kept.history]
    return kept.run, kept.validation, kept.test, history, kept.best_epoch, kept.stopped, kept.probabilities


def lines(folder):
    return [json.loads(line) for line in (Path(folder) / "runs.jsonl").read_text().splitlines()]


@cache
def expected(epochs):
    """What this process makes of every Run of the plan."""
    graphs = asapool.load(SOURCE)
    return {wanted.key: meaning(run(graphs, wanted)) for wanted in plan(epochs).runs({"cycles": graphs})}


def complete(folder, epochs=30):
    """The store holds every Run once, as it should be."""
    assert Counter(line["key"] for line in lines(folder)) == dict.fromkeys(expected(epochs), 1)
    result = Store.read(folder)
    assert {key: meaning(record) for key, record in result.items()} == expected(epochs)
    assert {record.attempts for record in result.values()} == {1}


def processes(word, parent=None):
    """Numbers of the processes with a word in their command, or in the parent's care."""
    rows = subprocess.run(["ps", "axwwo", "pid=,ppid=,args="], capture_output=True, text=True).stdout.splitlines()
    parts = [row.split(None, 2) for row in rows]
    return [int(pid) for pid, above, args in parts if word in args and parent in (None, int(above))]


def trainings(cluster):
    """Numbers of the processes that train on a cluster; another one of this machine is left alone."""
    raylets = [node.all_processes["raylet"][0].process.pid for node in (cluster.head_node, cluster.second)]
    return [number for raylet in raylets for number in processes("ray::train", raylet)]


def until(condition, seconds=150):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def kill(numbers):
    for number in numbers:
        with suppress(ProcessLookupError):  # its parent took it along
            os.kill(number, signal.SIGKILL)


def silent(*_):
    pass


@needs_ray
def test_one_process_shares_nothing():
    with pytest.raises(ConfigError, match="Add -j with at least 2"):
        RayProcesses(1)


def test_without_ray_the_way_to_get_it_is_reported(graphs, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r'ray is not installed. Run: pip install "asapool\[cluster\]"'):
        list(RayEngine().work([one(graphs)], {graphs.fingerprint: graphs}, silent))


# these two come before the tests that use the cluster: a process that is connected already would not look at an address


@needs_ray
@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "127.0.0.1:1",
            r"no Ray cluster at 127.0.0.1:1 \(.*refused\). Give the address that `ray start",
        ),
        ("ray://127.0.0.1:10001", "--address is auto or HOST:PORT, got 'ray://127.0.0.1:10001'"),
    ],
)
def test_an_address_without_a_cluster_is_refused(graphs, address, message):
    with pytest.raises(ConfigError, match=message):
        list(RayEngine(address).work([one(graphs)], {graphs.fingerprint: graphs}, silent))


@needs_ray
def test_something_else_that_listens_is_not_waited_for(graphs, monkeypatch):
    monkeypatch.setattr(ray_connection, "WELCOME", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(
            ConfigError, match=rf"Ray at {address} refuses the connection: no response within 2 s\. If the"
        ):
            list(RayEngine(address).work([one(graphs)], {graphs.fingerprint: graphs}, silent))


def shared_training(tmp_path, address, on_epoch=None):
    """A training of asap whose batches this process shares with one of the cluster."""
    settings, graphs = resolve(
        {
            "data": {"source": SOURCE}, "model": {"method": "asap", "hidden": 8, "backend": "fused"},
            "train": {"epochs": 3, "batch_size": 12, "threads": 1},
        }
    )  # fmt: skip
    alone, together = tmp_path / "alone", tmp_path / "together"
    start(settings, graphs, alone)
    with RayProcesses(2, address) as shared:
        start(settings, graphs, together, processes=shared, on_epoch=on_epoch)
    histories = [csv.DictReader((folder / "history.csv").read_text().splitlines()) for folder in (alone, together)]
    return [[float(row["loss"]) for row in rows] for rows in histories]


def test_a_training_run_shares_its_batches_with_the_cluster(cluster, tmp_path):
    alone, together = shared_training(tmp_path, cluster.address)
    assert together == pytest.approx(alone, rel=2e-5)
    assert len(alone) == 3


def test_a_lost_process_of_the_cluster_is_one_sentence_and_the_run_resumes(cluster, tmp_path):
    def kill(epoch, progress):
        if epoch.epoch == 1:
            for number in processes("ray::share_training"):
                os.kill(number, signal.SIGKILL)

    with pytest.raises(TrainingError, match=r"process 2 of 2: .*--resume") as caught:
        shared_training(tmp_path, cluster.address, kill)
    assert "\n" not in str(caught.value)
    assert resume(tmp_path / "together")["epochs"] == 3


def test_a_run_that_fails_is_a_record_with_its_sentence(cluster, graphs):
    good, bad = one(graphs, keep=True), one(graphs, fingerprint="of other graphs")
    records = list(RayEngine().work([good, bad], {graphs.fingerprint: graphs, bad.fingerprint: graphs}, silent))
    result = {record.run: record for record in records}
    assert len(records) == 2
    here = run(graphs, good)
    assert meaning(result[good]) == meaning(here)
    assert result[good].model == here.model is not None  # the model comes back too, with the same bytes
    assert result[bad].failure.startswith("cycles: the run is for graphs with fingerprint of other graphs, but these")
    assert result[bad].test is None


@pytest.mark.slow
def test_a_search_on_ray_has_the_trials_of_a_search_in_this_process(cluster, tmp_path):
    graphs = asapool.load("synthetic:cycles?graphs=150&nodes=6")
    space = Space.from_tables({"train": {"lr": [0.05, 0.03, 1e-6, 1e-5, 0.04, 1e-7]}})
    model = {"method": "none", "hidden": 16, "backend": "reference"}
    options = {"space": space, "settings": {"model": model, "train": {"epochs": 9, "batch_size": 16}}, "trials": 7}
    here = tune(graphs, tmp_path / "here", sampler="grid", **options)
    there = tune(graphs, tmp_path / "there", sampler="grid", engine=RayEngine(jobs=1), **options)
    values = [[(t.chosen, t.value, t.record.failure) for t in search.trials] for search in (here, there)]
    assert values[0] == values[1]
    assert any(t.pruned for t in there.trials)
    two = tune(graphs, tmp_path / "two", sampler="grid", engine=RayEngine(jobs=2), **options)
    unpruned = {t.number: t.value for t in here.trials if t.value is not None}
    assert two.best.chosen == here.best.chosen
    assert all(t.value == unpruned[t.number] for t in two.trials if t.value is not None and t.number in unpruned)


def test_a_worker_that_dies_is_a_failed_record_and_its_epochs_were_reported(cluster, graphs):
    endless, reported = one(graphs, train=TrainConfig(epochs=10**6)), []

    def on_progress(wanted, epoch, epochs, score):
        reported.append((wanted, epochs))
        if epoch > 0:
            kill(trainings(cluster))

    [record] = RayEngine().work([endless], {graphs.fingerprint: graphs}, on_progress)
    assert record.failure == "the worker process died: its machine may be out of memory, try fewer jobs"
    assert set(reported) == {(endless, 10**6)}


@pytest.mark.slow
def test_leaving_the_loop_stops_the_training(cluster, graphs):
    short, endless = one(graphs), one(graphs, fold=1, train=TrainConfig(epochs=10**6))
    records = RayEngine().work([short, endless], {graphs.fingerprint: graphs}, silent)
    assert next(records).run == short
    until(lambda: trainings(cluster))
    records.close()
    raylet = cluster.head_node.all_processes["raylet"][0].process.pid
    until(lambda: not trainings(cluster) and not processes("ray::Board", raylet))


def test_another_version_of_asapool_is_refused(cluster, graphs, monkeypatch):
    monkeypatch.setattr(ray_cluster, "__version__", "9.9.9")
    output = f"has asapool {asapool.__version__}, but this one has asapool 9.9.9. Install the same version on all"
    with pytest.raises(ConfigError, match=output):
        list(RayEngine().work([one(graphs)], {graphs.fingerprint: graphs}, silent))


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["driver", "its node"])
def test_a_driver_that_dies_leaves_no_ray_behind_and_another_one_does_the_rest(cluster, tmp_path, victim):
    """Killed, or ended by Ray because the node that it started itself is gone."""

    def drive(address):
        command = [sys.executable, "-c", DRIVER, str(tmp_path), address]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with drive("") as first:  # starts a cluster of its own
        until(lambda: (tmp_path / "runs.jsonl").exists() and lines(tmp_path))
        started = processes("raylet/raylet", first.pid)
        kill([first.pid] if victim == "driver" else started)
        first.communicate(timeout=120)
    assert started
    assert first.returncode != 0
    until(lambda: not set(started) & set(processes("raylet/raylet")))
    assert 1 <= len(lines(tmp_path)) < 8
    with drive(cluster.address) as second:
        output = second.communicate()
    assert (second.returncode, *output) == (0, "", "")
    complete(tmp_path)


@pytest.mark.slow
def test_a_node_that_is_killed_costs_no_run_and_no_second_attempt(cluster, tmp_path, monkeypatch):
    handed_out, submit = Counter(), ray_cluster._Work._submit
    monkeypatch.setattr(ray_cluster._Work, "_submit", lambda self, r: handed_out.update([r.key]) or submit(self, r))
    raylet, done = cluster.second.all_processes["raylet"][0].process.pid, []

    def on_record(record):
        done.append(record)
        if len(done) == 2:
            until(lambda: processes("ray::train", raylet))
            kill(processes("ray::train", raylet))
            time.sleep(0.5)  # a machine that goes down: first this process is gone, then all of it
            kill([raylet, *processes("", raylet)])

    records = carry_out(tmp_path, None, on_record)
    complete(tmp_path)
    assert len(records) == len(done) == 8
    assert sum(handed_out.values()) > 8  # what the node was working on was handed out again


GUARDED = """
import subprocess, sys, time
from asapool.experiments.ray_connection import guarded
with guarded(sys.argv[1]):
    command = [sys.executable, "-c", "import time; time.sleep(120)", sys.argv[1]]
    child = subprocess.Popen(command, start_new_session=True)
    print(child.pid, flush=True)
    time.sleep(120)
"""


@pytest.mark.slow
def test_a_guard_ends_what_a_killed_driver_leaves_behind(tmp_path):
    folder = tmp_path / "session"
    folder.mkdir()
    (folder / "file").touch()
    driver = subprocess.Popen([sys.executable, "-c", GUARDED, folder], stdout=subprocess.PIPE, cwd=ROOT, text=True)
    left = int(driver.stdout.readline())
    assert Path(f"/proc/{left}").exists()
    driver.kill()
    driver.communicate()
    end = time.monotonic() + 30
    while folder.exists() or Path(f"/proc/{left}").exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_signal_while_ray_starts_has_the_code_of_a_signal():
    """Ray's handler ends the process with 1."""
    starting = SimpleNamespace(init=lambda **options: sys.exit(1))
    with pytest.raises(SystemExit) as end:
        ray_connection._enter(starting, "Ray could not be started")
    assert end.value.code == 143


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["while Ray starts", "while it trains"])
def test_sigterm_ends_the_command_with_143_and_leaves_nothing_behind(tmp_path, moment):
    before = set(Path("/tmp").glob("asapool-ray-*"))
    command = [
        sys.executable, "-m", "asapool", "cv", "synthetic:motifs?graphs=40", "--method", "asap", "--hidden", "8",
        "--folds", "3", "--epochs", "5000", "--engine", "ray", "-j", "1", "--out", tmp_path / "out",
    ]  # fmt: skip
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "RAY_worker_niceness": "0"}  # else everything else on a busy machine comes first
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as driver:
        until(lambda: set(Path("/tmp").glob("asapool-ray-*")) - before)
        [folder] = set(Path("/tmp").glob("asapool-ray-*")) - before
        try:
            until(lambda: processes("raylet/raylet", driver.pid))
            if moment == "while it trains":
                [raylet] = processes("raylet/raylet", driver.pid)
                until(lambda: processes("ray::train", raylet))
            driver.terminate()
            _, err = driver.communicate(timeout=120)
        finally:
            driver.kill()
    assert driver.returncode == 143
    assert "stack" not in err.lower()
    assert "Traceback" not in err
    until(lambda: not folder.exists() and not processes(str(folder)))
