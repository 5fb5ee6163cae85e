"""`asapool train`: the words it takes and gives, and what happens when the world gets in its way, for real."""

import json
import random
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from asapool.cli._live import EpochBar
from asapool.errors import ConfigError, DataError, WriteError
from asapool.models import checkpoint
from asapool.training.settings import RunSettings
from tests.cli.commands import begin, call, fill, finish, wait_for

SMALL = ("synthetic:cycles?graphs=40&nodes=6", "--hidden", 8, "--batch-size", 64)
LONG = (*SMALL, "--method", "mlp", "--epochs", 500, "--no-report")  # mlp starts quickly; killing.py kills asap


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The bytes of a run that nobody stopped."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    code, _, err = finish(begin("train", *LONG, "--out", folder))
    assert code == 0, err
    return (folder / "model.safetensors").read_bytes()


def test_it_trains_scores_and_says_where(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = call("train", *SMALL, "--epochs", 3)
    for word in (
        "test accuracy",
        "balanced accuracy",
        "ROC AUC",
        "PR AUC",
        "calibration error",
        "confusion",
        "majority class",
    ):
        assert word in output.stdout
    assert "runs/synthetic-cycles-asap+\n" in output.stdout
    assert checkpoint.load(tmp_path / "runs/synthetic-cycles-asap+/model.safetensors").config.hidden == 8
    assert (
        "runs/synthetic-cycles-asap+-2\n" in call("train", *SMALL, "--epochs", 1, "--no-report").stdout
    )  # a second run has its own folder


def test_json_is_the_object_of_the_file(tmp_path):
    output = json.loads(call("train", *SMALL, "--epochs", 2, "--out", tmp_path, "--json", "--no-report").stdout)
    assert output.pop("folder") == str(tmp_path)
    assert output == json.loads((tmp_path / "metrics.json").read_text())


def test_overwriting_without_a_report_removes_the_old_one(tmp_path):
    words = ("train", *SMALL, "--method", "mlp", "--epochs", 1, "--out", tmp_path)
    call(*words)
    assert (tmp_path / "report.html").exists()
    call(*words, "--overwrite", "--no-report")
    assert (tmp_path / "metrics.json").exists()
    assert not (tmp_path / "report.html").exists()


def test_a_scaffold_split_takes_its_seed(tmp_path):
    rows = "".join(f"{'C' * (k % 9 + 1)}{'ON'[k % 2]},{'ab'[k % 2]}\n" for k in range(18))
    (tmp_path / "m.csv").write_text(f"smiles,y\n{rows}c1ccccc1,a\nC1CC1,b\nC1CCC1,a\nC1CCCC1,b\n")
    words = ("train", tmp_path / "m.csv", "--target", "y", "--split", "scaffold", "--epochs", 1, "--method", "mlp")
    for seed in (0, 1):
        call(*words, "--no-report", "--out", tmp_path / str(seed), "--seed", seed, "--hidden", 4)
    first, second = (json.loads((tmp_path / f"{seed}/split.json").read_text()) for seed in (0, 1))
    assert first["test"] != second["test"]


def test_what_is_left_out_and_what_comes_twice_is_reported(tmp_path):
    molecules = [f"{'C' * (k % 11 + 1)}{'ON'[k % 2]},{'ab'[k % 2]}" for k in range(24)]
    rows = ["C(,a", "C,", "CC,NA", "CCC,none", "OC,b", *molecules]
    (tmp_path / "m.csv").write_text("smiles,Active\n" + "\n".join(rows) + "\n")
    words = ("train", tmp_path / "m.csv", "--skip-invalid", "--epochs", 1, "--hidden", 4, "--no-report")
    output = call(*words, "--out", tmp_path / "r")
    notes = [
        line for line in output.stderr.splitlines() if not line.startswith("Warning: ")
    ]  # of two validation graphs
    assert notes == [
        "skipped line 2: 'C(' is not SMILES that RDKit can read",
        "treated as missing labels: 'NA' (1 rows), 'none' (1 rows). Rename the value in the file if it is a class",
        "graphs without a label, left out: 3",
        # CO (as OC once more, with the other class) and CCN come again after 22 rows
        "2 molecules occur more than once (5 graphs), 1 with different labels; --split scaffold keeps "
        "duplicates in one part, --duplicates merge makes each a single graph",
    ]
    assert "class column" in output.stdout
    reported = json.loads((tmp_path / "r" / "metrics.json").read_text())["data"]
    assert (reported["class_column"], reported["skipped_rows"], reported["without_class"]) == ("Active", 1, 3)
    output = call("cv", *words[1:], "--folds", 3, "--method", "mlp", "--out", tmp_path / "cv")
    assert "skipped line 2" in output.stderr
    assert "left out: 3" in output.stderr
    assert "2 molecules occur more than once" in output.stderr
    output = call(*words, "--out", tmp_path / "merged", "--duplicates", "merge")
    assert "m.csv: merged 5 rows of 2 molecules; the majority decides their labels" in output.stderr
    assert "more than once" not in output.stderr


def test_a_few_unreadable_rows_are_a_note_unless_answers_would_be_missing(tmp_path):
    rows = [f"{'C' * (k % 11 + 1)}{'ON'[k % 2]},{'ab'[k % 2]}" for k in range(199)]
    (tmp_path / "m.csv").write_text("smiles,y\n" + "\n".join([*rows[:5], "C(,a", *rows[5:]]) + "\n")
    words = ("train", tmp_path / "m.csv", "--epochs", 1, "--hidden", 4, "--method", "mlp", "--no-report")
    note = "left out 1 of 200 rows, which cannot be read (line 7: 'C(' is not SMILES that RDKit can read)"
    output = call(*words, "--out", tmp_path / "r")
    assert output.stderr.count("line 7") == output.stderr.count(note) == 1
    assert json.loads((tmp_path / "r" / "metrics.json").read_text())["data"]["skipped_rows"] == 1
    assert note in call("evaluate", tmp_path / "r", tmp_path / "m.csv").stderr
    for refused in ((*words, "--no-skip-invalid"), ("predict", tmp_path / "r", tmp_path / "m.csv")):
        with pytest.raises(DataError, match=r"line 7: .* 1 of 200 molecules cannot be read"):
            call(*refused)


def test_options_files_and_assignments_become_settings(tmp_path):
    (tmp_path / "c.toml").write_text("[model]\nhidden = 6\nlevels = 2\n[train]\nepochs = 9\nlr = 0.5\n")
    call(
        "train", "synthetic:cycles?graphs=30", "--config", tmp_path / "c.toml", "--out", tmp_path / "r", "--epochs", 1,
        "--seed", 5, "--method", "topk", "--split", "authors", "--set", "model.ratio=0.75", "--set", "train.clip=2",
        "--set", "model.conv=gin", "--early-stopping", 3, "--class-weights", "balanced", "--no-report",
    )  # fmt: skip
    s = RunSettings.from_file(tmp_path / "r" / "config.toml")
    assert (s.model.method, s.model.hidden, s.model.levels, s.model.ratio, s.model.conv) == ("topk", 6, 2, 0.75, "gin")
    assert (s.train.epochs, s.train.lr, s.train.clip, s.train.seed, s.train.early_stopping) == (1, 0.5, 2, 5, 3)
    assert (s.split.kind, s.split.seed, s.train.class_weights) == ("authors", 5, "balanced")


def test_a_given_split_is_used(tmp_path):
    parts = {"train": list(range(20)), "val": list(range(20, 25)), "test": [29, 28]}
    (tmp_path / "split.json").write_text(json.dumps(parts))
    call(
        "train",
        "synthetic:cycles?graphs=30",
        "--epochs",
        1,
        "--no-report",
        "--split",
        tmp_path / "split.json",
        "--out",
        tmp_path / "r",
    )
    assert json.loads((tmp_path / "r" / "split.json").read_text())["test"] == [29, 28]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--split", "random"), "--split takes"), (("--set", "epochs=3"), "--set takes TABLE.NAME=VALUE"),
        (("--set", "train.speed=3"), "train.speed is not a setting"),
        (("--method", "best"), "model.method must be one of"),
        (("--resume", "x"), "--resume uses the settings of the run, so source"),
        (("--lr", "0"), "train.lr must be"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_in_a_sentence(args, says):
    with pytest.raises(ConfigError, match=says):
        call("train", "synthetic:cycles", *args)


@pytest.mark.parametrize("words", [("--method", "ecfp"), ("--set", "model.counts=ecfp")])
def test_fingerprints_of_graphs_that_are_no_molecules_leave_no_folder(tmp_path, words):
    with pytest.raises(DataError, match="ECFP needs molecules read from SMILES, and these graphs have none"):
        call("train", "synthetic:cycles?graphs=30", *words, "--epochs", 1, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_three_kills_and_resume_end_in_the_same_bytes(tmp_path, undisturbed):
    folder, chance = tmp_path / "run", random.Random(1)
    process = begin("train", *LONG, "--out", folder)
    for _ in range(3):
        state = folder / "state.safetensors"
        before = state.stat().st_mtime_ns if state.exists() else 0
        wait_for(lambda: state.exists() and state.stat().st_mtime_ns > before, process)  # noqa: B023 (used at once)
        time.sleep(chance.random() * 0.1)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        process = begin("train", "--resume", folder)
    code, out, err = finish(process)
    assert code == 0, err
    assert "test accuracy" in out
    assert (folder / "model.safetensors").read_bytes() == undisturbed


def test_ctrl_c_is_a_sentence_code_130_and_resumable_and_nobody_else_may_work_there(tmp_path, undisturbed):
    folder = tmp_path / "run"
    process = begin("train", *LONG, "--out", folder)
    wait_for((folder / "state.safetensors").exists, process)
    process.send_signal(signal.SIGSTOP)  # so that it is not done before the second one has started
    second = finish(begin("train", "--resume", folder))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    assert second[0] == 1
    assert f"process {process.pid} is working in this folder" in second[2]
    code, out, err = finish(process)
    assert (code, out) == (130, "")
    assert f"Stopped. To resume: asapool train --resume {folder}" in err
    assert "Traceback" not in err
    code, _, err = finish(begin("train", "--resume", folder, "--no-report"))
    assert code == 0, err
    assert (folder / "model.safetensors").read_bytes() == undisturbed


def test_a_full_disk_is_a_sentence_and_the_run_goes_on_when_there_is_room(mount, undisturbed):
    folder = mount / "run"
    process = begin("train", *LONG, "--out", folder)
    wait_for((folder / "state.safetensors").exists, process)
    fill(mount)
    code, out, err = finish(process)
    assert (code, out) == (1, "")
    assert "cannot be written (No space left on device)" in err
    assert "Traceback" not in err
    assert not list(folder.glob(".state*")), "half a state was left behind"
    (mount / "filler").unlink()
    code, _, err = finish(begin("train", "--resume", folder, "--no-report"))
    assert code == 0, err
    assert (folder / "model.safetensors").read_bytes() == undisturbed


def test_a_read_only_disk_is_a_sentence(mount, tmp_path):
    subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
    code, out, err = finish(begin("train", *SMALL, "--epochs", 1, "--out", mount / "run"))
    assert (code, out) == (1, "")
    assert "Read-only file system" in err
    assert "--out" in err
    assert "Traceback" not in err
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="Not a directory") as failure:  # no root needed for this one
        call("train", *SMALL, "--epochs", 1, "--out", tmp_path / "file" / "run")
    assert failure.value.exit_code == 1


def test_help_loads_nothing_heavy():
    loaded = (
        "import sys; from asapool.cli.main import app; app(['train', '--help'], standalone_mode=False); "
        "print({'torch', 'numba', 'torch_geometric', 'sklearn', 'scipy', 'pandas', 'numpy', 'ray'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert "--resume" in done.stdout
    assert done.stdout.splitlines()[-1] == "set()"


def test_without_a_terminal_a_long_run_prints_a_line_every_half_minute(tmp_path, capsys):
    seconds, parts = [0.0], {"train": [*range(450)], "val": [*range(450, 500)], "test": [500]}
    (tmp_path / "config.toml").write_text(RunSettings.from_dict({"train": {"epochs": 40}}).to_toml())
    (tmp_path / "split.json").write_text(json.dumps(parts | {"graphs": 900}))
    bar = EpochBar(tmp_path, now=lambda: seconds[0])
    progress = SimpleNamespace(best_score=0.75)
    for number in range(1, 41):
        seconds[0] += 8.0
        bar(SimpleNamespace(epoch=number, loss=0.5, val_score=0.7, seconds=8.0), progress)
    lines = capsys.readouterr().err.splitlines()
    # after 32 s, and every 32 s from there; not after the last epoch, which the results follow
    assert [line.split(":")[0] for line in lines] == [f"epoch {k} of 40" for k in range(4, 40, 4)]
    assert lines[0] == "epoch 4 of 40: loss 0.5000  validation 0.700 (best 0.750)  62 graphs/s; left: 5 min"


def test_a_final_model_is_trained_on_all_graphs_and_claims_no_score(tmp_path):
    source, run = "synthetic:cycles?graphs=20&nodes=6", tmp_path / "run"
    words = ("--method", "mlp", "--hidden", 4, "--epochs", 3, "--early-stopping", 1)
    done = call("train", source, "--final", *words, "--out", run)
    assert done.exit_code == 0, done.stderr
    assert "20 training, 0 validation, 0 test graphs" in done.stdout
    assert "none, because there are no validation or test graphs" in done.stdout
    assert "early stopping needs validation graphs, and there are none, so all epochs were trained" in done.stderr
    metrics = json.loads((run / "metrics.json").read_text())
    assert (metrics["best_epoch"], metrics["epochs"], metrics["stopped"]) == (3, 3, None)
    assert (metrics["validation"], metrics["test"], metrics["selected_by"]) == (None, None, "last")
    card, page = (run / "README.md").read_text(), (run / "report.html").read_text()
    assert "There are none, because there were no validation or test graphs" in card
    assert "The scores come from" not in card
    assert "20 training graphs, none for validation or testing" in page
    assert "No graphs were set aside to evaluate the model" in page
    assert RunSettings.from_file(run / "config.toml").split.kind == "all"
    assert call("predict", run, source).exit_code == 0
    with pytest.raises(ConfigError, match="keeps the last epoch, so leave out --val, --select-by"):
        call("train", source, "--final", "--val", 0.1, "--select-by", "loss", "--out", tmp_path / "other")
    with pytest.raises(ConfigError, match=r"train --final .* trains on all graphs"):
        call("train", source, "--val", 0, "--test", 0, "--out", tmp_path / "other")
