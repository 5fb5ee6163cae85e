"""`asapool cv` and `asapool compare`: one table, both deviations named, stopped and started again without loss."""

import json
import os
import signal

import pytest

from asapool.errors import CheckpointError, ConfigError, DataError
from asapool.experiments.compact import read_compact, read_records, write_compact
from tests.cli.commands import begin, call, finish, wait_for

SMALL = ("synthetic:cycles?graphs=30&nodes=8", "--folds", 3, "--epochs", 2, "--hidden", 4)


def finished(folder):
    """How many folds a folder holds."""
    return (folder / "runs.jsonl").read_bytes().count(b"\n") if (folder / "runs.jsonl").exists() else 0


def test_cv_shows_the_mean_and_both_deviations_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = call("cv", *SMALL, "--method", "mlp", "--seeds", 2, "--engine", "inline").stdout
    for word in ("± over seeds", "± over folds", "mlp", "seeds 8971, 85688", "folder  runs/cv-synthetic-cycles-"):
        assert word in output
    folder = next((tmp_path / "runs").iterdir())
    before = (folder / "runs.jsonl").read_bytes()
    assert before.count(b"\n") == 6
    again = json.loads(
        call("cv", *SMALL, "--method", "mlp", "--seeds", 2, "--json").stdout
    )  # found again, nothing is trained
    assert before == (folder / "runs.jsonl").read_bytes()
    assert again.pop("folder") == str(folder.relative_to(tmp_path))
    assert again.pop("failures") == []
    assert again == json.loads((folder / "cv.json").read_text())
    assert again["cells"][0]["folds"] == 6


def test_compare_tests_the_others_against_the_first(tmp_path):
    output = call("compare", *SMALL, "--methods", "mlp,none", "--out", tmp_path, "--seed", 3)
    assert "difference to" in output.stdout
    assert "p (corrected t)" in output.stdout
    assert "3 folds, seed 3\n" in output.stdout
    table = json.loads((tmp_path / "cv.json").read_text())
    assert table["reference"] == "mlp"
    assert [cell["against"] and cell["against"]["n"] for cell in table["cells"]] == [None, 3]
    assert "majority class" in output.stdout
    assert "ahead of" in output.stdout
    with pytest.raises(ConfigError, match="--methods takes distinct names"):
        call("compare", *SMALL, "--methods", "mlp,mlp")


def test_ensembles_of_every_fold(tmp_path):
    """One record per fold, a folder of its own, a note below the table, and the same in a compact file."""
    output = call("cv", *SMALL, "--method", "mlp", "--ensemble", 2, "--out", tmp_path / "two", "--no-report").stdout
    assert "mlp: scores of the averaged predictions of 2 models" in output
    assert finished(tmp_path / "two") == 3
    kept = read_records(tmp_path / "two")
    write_compact(tmp_path / "two.jsonl", kept.values())
    assert read_compact(tmp_path / "two.jsonl").keys() == kept.keys()
    assert {record.run.ensemble for record in kept.values()} == {2}
    call("compare", *SMALL, "--methods", "mlp,none", "--ensemble", 2, "--out", tmp_path / "both", "--no-report")
    assert {record.run.ensemble for record in read_records(tmp_path / "both").values()} == {2}
    with pytest.raises(CheckpointError, match="contains a cross-validation with other settings"):
        call("cv", *SMALL, "--method", "mlp", "--out", tmp_path / "two")
    with pytest.raises(ConfigError, match="--keep-models keeps one model of every fold"):
        call("cv", *SMALL, "--method", "mlp", "--ensemble", 2, "--keep-models")
    with pytest.raises(ConfigError, match="--tune compares single models"):
        call("cv", *SMALL, "--method", "mlp", "--ensemble", 2, "--tune", "trials=2")


def test_failed_folds_end_with_code_1_and_their_reason(tmp_path):
    output = call("cv", *SMALL, "--method", "mlp", "--lr", 1e30, "--out", tmp_path)
    assert output.exit_code == 1
    assert "mlp, synthetic:cycles, seed 8971, fold 0: failed in attempt 1" in output.stderr
    assert "3 of 3 training runs failed" in output.stderr
    with pytest.raises(ConfigError, match=r"--address is the address of a Ray cluster\. Add --engine ray"):
        call("cv", *SMALL, "--address", "127.0.0.1:6379")


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_and_the_same_command_goes_on(tmp_path):
    args = (
        "cv",
        "synthetic:cycles?graphs=40&nodes=6",
        "--folds",
        4,
        "--epochs",
        200,
        "--method",
        "mlp",
        "--hidden",
        8,
        "-j",
        2,
        "--out",
        tmp_path,
    )
    process = begin(*args, start_new_session=True)
    wait_for(lambda: finished(tmp_path), process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    code, out, err = finish(process)
    assert (code, out) == (130, "")
    assert "To resume: run the same command again" in err
    assert "Traceback" not in err
    assert 1 <= finished(tmp_path) < 4
    code, out, err = finish(begin(*args, "--json"))
    assert code == 0, err
    assert json.loads(out)["cells"][0]["folds"] == 4


@pytest.mark.parametrize(
    "words",
    [
        ("cv", "--method", "ecfp"), ("cv", "--set", "model.counts=ecfp"), ("compare", "--methods", "mlp,ecfp"),
        ("cv", "--set", "model.counts=ecfp", "--tune", "trials=1"),
    ],
)  # fmt: skip
def test_fingerprints_of_graphs_that_are_no_molecules_are_refused_before_the_first_fold(tmp_path, words):
    with pytest.raises(DataError, match="ECFP needs molecules read from SMILES, and these graphs have none"):
        call(words[0], *SMALL, *words[1:], "--out", tmp_path / "new", "--engine", "inline")
    assert not finished(tmp_path / "new")


def test_published_splits_take_the_place_of_folds(tmp_path):
    splits = [{"train": [*range(20)], "val": [20, 21, 22, 23], "test": [24 + k, 29 - k]} for k in range(3)]
    (tmp_path / "splits.json").write_text(json.dumps(splits))
    output = call(
        "cv",
        *SMALL,
        "--method",
        "mlp",
        "--splits",
        tmp_path / "splits.json",
        "--out",
        tmp_path / "a",
        "--engine",
        "inline",
        "--json",
    )
    table = json.loads(output.stdout)
    assert (table["protocol"], table["folds"], table["cells"][0]["folds"]) == ("splits", 3, 9)  # three seeds per fold
    with pytest.raises(DataError, match="cannot be read"):
        call("cv", *SMALL, "--splits", tmp_path / "none.json", "--out", tmp_path / "b")
    assert not (tmp_path / "b").exists()
