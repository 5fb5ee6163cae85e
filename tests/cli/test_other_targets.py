"""Measured values and yes/no tasks on the command line: what is detected is said, and bad input is one sentence."""

import csv
import json

import pytest

from asapool.errors import AsapoolError
from tests.cli.commands import call

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CC1", "CCCl", "O=C=O", "CCCC", "c1ccncc1", "CCS"] * 3


def table(path, **columns):
    with path.open("w", newline="") as out:
        rows = zip(SMILES, *columns.values(), strict=True)
        csv.writer(out).writerows([["smiles", *columns], *rows])
    return path


VALUES = [f"{0.37 * k:.2f}" for k in range(30)]
YES = [k % 2 for k in range(30)]


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        ({"logS": [*VALUES[:-1], "high"]}, (), "'logS' has the text 'high' among numbers such as"),
        ({"logS": [*VALUES[:-1], "high"]}, ("--task", "regression"), "line 31: expected a finite number for 'logS'"),
        ({"logS": [*VALUES[:-1], "inf"]}, (), "expected a finite number for 'logS', got 'inf'"),
        ({"logS": [""] * 30}, ("--task", "regression"), "all entries of 'logS' are missing"),
        ({"logS": ["1.5"] * 30}, ("--task", "regression"), "all entries of 'logS' are equal"),
        ({"logS": [f"{k}e307" for k in range(-15, 15)]}, (), "'logS' cannot be scaled to mean 0 and deviation 1"),
        ({"logS": [f"{v}e40" for v in VALUES]}, (), "are larger than 1e+30 or differ by less than 1e-30. Use another"),
        (
            {"logS": [f"{v}e-300" for v in VALUES]},
            (),
            "are larger than 1e+30 or differ by less than 1e-30. Use another",
        ),
        ({"toxic": [1] * 30}, (), "one class"),
        ({"a": YES, "b": [2, *YES[1:]]}, ("--task", "multilabel"), "'b' has '2', and a yes/no column holds 0 and 1"),
        ({"a": YES, "b": YES}, ("--target", "a", "--target", "b", "--task", "classification"), "2 target columns"),
        ({"logS": VALUES}, ("--select-by", "f1"), "'f1' is not a score of a regression target"),
        ({"logS": VALUES}, ("--class-weights", "balanced"), "train.class_weights is for classes"),
        ({"logS": VALUES}, ("--task", "prediction"), "task must be one of"),
        ({"logS": VALUES}, ("--target", "mass"), "mass"),
        (
            {"logS": VALUES, "pH": YES},
            ("--target", "logS", "--descriptors", "pH"),
            "'majority' does not use descriptors",
        ),
        ({"logS": VALUES}, ("--rdkit-descriptors",), "'majority' does not use descriptors"),
        (
            {"logS": VALUES},
            ("--target", "logS", "--descriptors", "logS"),
            "'logS' is the target, so it cannot be a descriptor too",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(tmp_path, columns, options, says):
    file = table(tmp_path / "t.csv", **columns)
    with pytest.raises(AsapoolError) as error:  # asapool.cli.main prints it and ends with its exit code
        call("train", file, "--method", "majority", "--out", tmp_path / "run", *options)
    assert error.value.exit_code == 2
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_measured_column_is_detected_and_every_command_follows(tmp_path):
    file, run = table(tmp_path / "t.csv", logS=VALUES), tmp_path / "run"
    result = call("train", file, "--method", "majority", "--out", run, "--no-report")
    assert result.exit_code == 0, result.stderr
    assert "'logS' has 30 different numbers and is treated as measured values (regression)" in result.stderr
    assert "is not significantly better than the trivial baseline" in result.stderr
    assert "test RMSE" in result.stdout
    lines = call("predict", run, file).stdout.splitlines()
    assert lines[0].split(",")[-1] == "predicted(logS)"
    assert len(lines) == 31
    scores = json.loads(call("evaluate", run, file, "--json").stdout)
    assert scores["kind"] == "regression"
    assert scores["rmse"] == pytest.approx(scores["trivial"]["scores"]["rmse"])
    assert scores["trivial"]["better"] is False


def test_a_task_without_positives_in_validation_goes_on_with_a_warning(tmp_path):
    rare = [int(k == 0) for k in range(30)]
    file = table(tmp_path / "t.csv", often=YES, rare=rare)
    options = ("--task", "multilabel", "--method", "histogram", "--out", tmp_path / "run", "--no-report", "--json")
    result = call("train", file, *options)
    assert result.exit_code == 0, result.stderr
    assert "validation values of 'rare' are equal" in result.stderr
    scores = json.loads(result.stdout)["validation"]
    assert scores["tasks"]["rare"]["roc_auc"] is None
    assert "'rare'" in scores["notes"]["roc_auc"]


def test_a_task_that_the_training_part_does_not_teach_is_named(tmp_path):
    file = table(tmp_path / "t.csv", often=YES, never=[0] * 30)
    options = ("--task", "multilabel", "--method", "histogram", "--out", tmp_path / "run", "--no-report")
    result = call("train", file, *options)
    assert result.exit_code == 0, result.stderr
    assert "training values of 'never' are equal (0), so the model cannot learn it" in result.stderr
    assert "training values of 'often'" not in result.stderr


def test_the_score_that_chose_the_epoch_is_said(tmp_path):
    file = table(tmp_path / "t.csv", logS=VALUES)
    options = ("--method", "asap", "--hidden", "4", "--epochs", "2", "--no-report", "--out")
    assert " of 2, by validation MAE" in call("train", file, "--select-by", "mae", *options, tmp_path / "a").stdout
    assert "by validation" not in call("train", file, "--select-by", "last", *options, tmp_path / "b").stdout


def test_every_task_has_its_interval_and_the_trivial_score(tmp_path):
    file = table(tmp_path / "t.csv", a=YES, b=[int(k % 3 == 0) for k in range(30)])
    options = ("--task", "multilabel", "--method", "histogram", "--no-report", "--val", "0.2", "--test", "0.4", "--out")
    result = call("train", file, *options, tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    [row] = [line for line in result.stdout.splitlines() if line.startswith("  a ")]
    assert " to " in row
    assert "trivial 0.5000" in row
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert set(metrics["test_intervals_of_tasks"]) == set(metrics["trivial"]["scores_of_tasks"]) == {"a", "b"}
    assert metrics["trivial"]["scores_of_tasks"]["a"]["roc_auc"] == 0.5
    # evaluate has the same columns
    [row] = [line for line in call("evaluate", tmp_path / "run", file).stdout.splitlines() if line.startswith("  a ")]
    assert " to " in row
    assert "trivial 0.5000" in row


def test_a_model_that_beats_the_trivial_baseline_has_its_p_value(tmp_path):
    file = table(tmp_path / "t.csv", logS=[f"{len(s)}.5" for s in SMILES])
    options = ("--method", "histogram", "--no-report", "--val", "0.1", "--test", "0.3", "--task", "regression", "--out")
    result = call("train", file, *options, tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    rows = {line[:16].strip(): line for line in result.stdout.splitlines()}
    p = json.loads((tmp_path / "run" / "metrics.json").read_text())["trivial"]["tasks"]["logS"]["p_error"]
    assert p < 0.05
    assert rows["verdict"].endswith(f"better than the mean value, p = {p:.2g}")
    assert rows["conformal, 90 %"].endswith("90 % intervals need at least 9 validation graphs, there are 3")


def test_one_class_column_has_mcc_and_f1_with_interval_and_trivial_score(tmp_path):
    file = table(tmp_path / "t.csv", toxic=["yes" if "c" in s or "O" in s else "no" for s in SMILES])
    options = ("--method", "histogram", "--no-report", "--val", "0.1", "--test", "0.4", "--out", tmp_path / "run")
    trained, evaluated = call("train", file, *options), call("evaluate", tmp_path / "run", file)
    for result in (trained, evaluated):
        assert result.exit_code == 0, result.stderr
        rows = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
        for name in ("balanced accuracy", "ROC AUC", "PR AUC", "MCC", "F1"):
            assert " to " in rows[name], name
            assert "trivial 0." in rows[name], name
        assert "of the class 'yes'" in rows["F1"]
