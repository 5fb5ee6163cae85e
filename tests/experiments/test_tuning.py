"""Searches: what is proposed and trained, pruning, resuming, nested folds, and bad spaces."""

import json
import signal

import pytest

from asapool import load_model
from asapool.data import load
from asapool.errors import CheckpointError, ConfigError
from asapool.experiments.engines import InlineEngine
from asapool.experiments.searching import nested_summary, tune, tune_nested
from asapool.experiments.space import Choice, Range, Space
from asapool.experiments.store import Store
from asapool.reports import report_page
from tests.children import run_python
from tests.cli.commands import call

SOURCE = "synthetic:cycles?graphs=40&nodes=6"
BASE = {"model": {"method": "none", "hidden": 4, "backend": "reference"}, "train": {"epochs": 4}}
SPACE = Space.from_tables({"model": {"hidden": [2, 4, 8]}, "train": {"lr": {"low": 0.001, "high": 0.1, "log": True}}})


@pytest.fixture(scope="module")
def graphs():
    return load(SOURCE)


def trials_of(search):
    return [(t.number, dict(t.chosen), t.value, t.pruned) for t in search.trials]


def test_the_same_seed_gives_the_same_trials_and_a_stopped_search_goes_on_with_them(graphs, tmp_path):
    whole = tune(graphs, tmp_path / "whole", trials=7, space=SPACE, settings=BASE)
    assert [t.number for t in whole.trials] == list(range(7))
    assert whole.trials[0].chosen == {}
    assert whole.trials[0].settings.model.hidden == 4

    def stop(trial, search):
        if trial.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(graphs, tmp_path / "parts", trials=7, space=SPACE, settings=BASE, on_trial=stop)
    parts = tune(graphs, tmp_path / "parts", trials=7, space=SPACE, settings=BASE)
    assert trials_of(parts) == trials_of(whole)
    assert (tmp_path / "parts" / "config.toml").read_bytes() == (tmp_path / "whole" / "config.toml").read_bytes()
    keys = [json.loads(line)["key"] for line in (tmp_path / "parts" / "runs.jsonl").read_text().splitlines()]
    assert len(keys) == len(set(keys)), "a trial was trained twice"
    other = tune(graphs, tmp_path / "other", trials=3, space=SPACE, settings=BASE, seed=1)
    assert trials_of(other)[1:] != trials_of(whole)[1:3]


def test_a_killed_search_goes_on(graphs, tmp_path):
    code = (
        "import os, signal\nfrom tests.experiments.test_tuning import *\n"
        "tune(load(SOURCE), {!r}, trials=5, space=SPACE, settings=BASE,"
        " on_trial=lambda t, s: t.number == 2 and os.kill(os.getpid(), signal.SIGKILL))"
    ).format(str(tmp_path / "killed"))
    done = run_python(code)
    assert done.returncode == -signal.SIGKILL, done.stderr
    again = tune(graphs, tmp_path / "killed", trials=5, space=SPACE, settings=BASE)
    assert trials_of(again) == trials_of(tune(graphs, tmp_path / "calm", trials=5, space=SPACE, settings=BASE))


def test_pruning_stops_trials_early_and_keeps_the_winner(tmp_path):
    graphs = load("synthetic:cycles?graphs=150&nodes=6")
    space = Space.from_tables({"train": {"lr": [0.05, 0.03, 1e-6, 1e-5, 0.04, 1e-7]}})
    base = {"model": BASE["model"] | {"hidden": 16}, "train": {"epochs": 9, "batch_size": 16}}
    options = {"space": space, "settings": base, "sampler": "grid", "trials": 100}
    pruned = tune(graphs, tmp_path / "pruned", **options)
    whole = tune(graphs, tmp_path / "whole", prune=False, **options)
    assert len(pruned.trials) == len(whole.trials) == 7
    assert any(t.pruned and t.record.epochs < 9 for t in pruned.trials)
    assert not any(t.pruned for t in whole.trials)
    assert pruned.best.chosen == whole.best.chosen
    unpruned = {t.number: t.value for t in whole.trials}
    assert all(t.value == unpruned[t.number] for t in pruned.trials if t.value is not None)
    with Store.open(tmp_path / "pruned") as store:
        assert not any(store.finished(t.record.run.key) for t in pruned.trials if t.pruned)
    page = report_page(tmp_path / "pruned")
    assert "<td>pruned</td>" in page
    assert "train.lr" in page


def test_a_failed_trial_is_recorded_and_the_others_go_on(graphs, tmp_path):
    class Failing(InlineEngine):
        def work(self, runs, inputs, on_progress):
            from asapool.experiments.record import failed

            for k, record in enumerate(super().work(runs, inputs, on_progress)):
                yield failed(record.run, "out of memory", {}) if k == 1 else record

    search = tune(graphs, tmp_path, trials=3, space=SPACE, settings=BASE, engine=Failing())
    assert [t.record.failure for t in search.trials] == [None, "out of memory", None]


def test_two_processes_try_as_many(graphs, tmp_path):
    search = tune(graphs, tmp_path, trials=4, space=SPACE, settings=BASE, jobs=2)
    assert sorted(t.number for t in search.trials) == [0, 1, 2, 3]
    assert all(t.value is not None or t.pruned for t in search.trials)


def test_nested_folds_have_a_search_each_and_an_outer_score(graphs, tmp_path):
    searches = tune_nested(graphs, tmp_path, trials=2, space=SPACE, settings=BASE, folds=3)
    summary = nested_summary(searches, graphs)
    assert [row["fold"] for row in summary["folds"]] == [0, 1, 2]
    assert summary["optimism"] == pytest.approx(summary["inner"] - summary["outer"])
    tests = [set(s.best.record.probabilities["graphs"]) for s in searches]
    assert set().union(*tests) == set(range(len(graphs)))


def test_a_folder_of_another_search_is_refused(graphs, tmp_path):
    tune(graphs, tmp_path, trials=1, space=SPACE, settings=BASE)
    with pytest.raises(CheckpointError, match="contains a search with other settings"):
        tune(graphs, tmp_path, trials=1, space=SPACE, settings=BASE, seed=5)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"model": {"hiden": [1, 2]}}, "hiden"),
        ({"model": {"hidden": []}}, "at least one"),
        ({"model": {"hidden": [4, 4]}}, "different values"),
        ({"model": {"ratio": {"low": 0.5, "high": 0.5}}}, "low must be less than high"),
        ({"train": {"lr": {"low": 0, "high": 1, "log": True}}}, "above 0"),
        ({"train": {"lr": {"low": 0.1, "hi": 1}}}, "low = NUMBER"),
        ({"model": {"hidden": [4, -1]}}, "hidden"),
        ({"model": {"hidden": 4}}, "nothing to search"),
    ],
)
def test_a_bad_space_is_refused_before_anything_is_trained(graphs, tmp_path, tables, words):
    with pytest.raises(ConfigError, match=words):
        tune(graphs, tmp_path / "run", trials=2, space=Space.from_tables(tables), settings=BASE)
    assert not (tmp_path / "run" / "runs.jsonl").exists() or not (tmp_path / "run" / "runs.jsonl").read_bytes()


def test_what_a_list_and_a_range_are():
    assert SPACE.free == {"model.hidden": Choice((2, 4, 8)), "train.lr": Range(0.001, 0.1, True)}
    assert SPACE.grid_size is None
    assert list(Space.from_tables({"model": {"hidden": [1, 2], "levels": [1, 2]}}).grid())[1] == {
        "model.hidden": 1, "model.levels": 2,
    }  # fmt: skip


def test_the_commands(tmp_path):
    (tmp_path / "space.toml").write_text("[train]\nlr = { low = 0.001, high = 0.1 }\n")
    small = ("--method", "none", "--hidden", 4, "--epochs", 2)
    done = call("tune", SOURCE, *small, "--trials", 3, "--space", tmp_path / "space.toml", "--out", tmp_path / "run",
                "--train-best")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "default" in done.stdout
    assert "trial 2 (3 of 3)" in done.stderr
    assert "run/best, trained on 36 graphs" in done.stdout
    assert "Which settings matter" in (tmp_path / "run" / "report.html").read_text()
    done = call("cv", SOURCE, *small, "--folds", 3, "--tune", f"trials=2,space={tmp_path / 'space.toml'}",
                "--out", tmp_path / "nested")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "report the outer" in done.stdout
    done = call("cv", SOURCE, *small, "--folds", 3, "--tune", "trials=2", "--out", tmp_path / "fixed")
    assert "in 2 trials inside every fold" in done.stderr
    assert {record.run.model.hidden for record in Store.read(tmp_path / "fixed").values()} == {4}
    with pytest.raises(ConfigError, match="--tune must be like"):
        call("cv", SOURCE, "--tune", "trials=many")
    with pytest.raises(ConfigError, match="as in 30m"):
        call("tune", SOURCE, "--time", "soon")


def test_the_best_settings_are_trained_on_training_and_validation_for_the_epochs_of_the_best_trial(tmp_path):
    search = tune(SOURCE, tmp_path, trials=3, space=SPACE, settings=BASE, train_best=True, folds=4, seed=2)
    best, split = search.best.record, search.best.record.run.split(load(SOURCE))
    final = json.loads((tmp_path / "best" / "split.json").read_text())
    assert final["train"] == sorted([*split.train.tolist(), *split.val.tolist()])
    assert final["val"] == []
    assert final["test"] == split.test.tolist()
    metrics = json.loads((tmp_path / "best" / "metrics.json").read_text())
    assert metrics["epochs"] == metrics["best_epoch"] == best.best_epoch
    assert metrics["validation"] is None
    model = load_model(tmp_path / "best")
    assert len(model.predict(SOURCE)) == 40


def test_a_final_model_on_many_published_splits_is_refused_before_the_search(graphs, tmp_path):
    with pytest.raises(ConfigError, match="a final model needs one"):
        tune(graphs, tmp_path / "new", trials=1, space=SPACE, settings=BASE, train_best=True, splits="folds.json")
    assert not (tmp_path / "new").exists()


def test_a_model_of_the_best_settings_that_was_stopped_is_finished_by_the_same_command(tmp_path, monkeypatch):
    command = ("tune", SOURCE, "--method", "none", "--hidden", 4, "--epochs", 3, "--trials", 1, "--train-best")
    assert call(*command, "--out", tmp_path / "whole").exit_code == 0

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("asapool.training.run.write_run", stop)
        assert call(*command, "--out", tmp_path / "parts").exit_code == 130
    state = tmp_path / "parts" / "best" / "state.safetensors"
    assert state.exists()
    resumed = call(*command, "--out", tmp_path / "parts")
    assert resumed.exit_code == 0, resumed.stderr
    assert not state.exists()
    whole, parts = (tmp_path / name / "best" / "model.safetensors" for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()
    assert call(*command, "--out", tmp_path / "parts").exit_code == 0  # finished: only read
