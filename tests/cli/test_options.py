"""The command line as a whole: one word, one meaning, and help that shows what a person needs."""

import json
import subprocess
import sys

import pytest
import typer

from asapool import __version__
from asapool.cli.main import app
from asapool.errors import ConfigError, DataError
from tests.cli.commands import ENV, call, fork

HIDDEN = {"data split": {"--method", "--given"}, "explain": {"--target"}}  # words of 0.1 that still work


def commands():
    """Every command with its full name."""

    def under(command, name):
        for word, sub in getattr(command, "commands", {}).items():
            yield from under(sub, f"{name} {word}".strip())
        if not getattr(command, "commands", None):
            yield name, command

    return dict(under(typer.main.get_command(app), ""))


def options(name):
    return {word: p for p in commands()[name].params for word in p.opts if word.startswith("--")}


def test_an_option_has_one_help_text_in_all_commands():
    """What differs is listed here with the reason; anything else is one word with two meanings."""
    differ = {
        "--out": "a folder, or a file of a kind that the command names",
        "--seed": "first seed of several, or the seed of one training, or of one split",
        "--seeds": "reproduce has another default",
        "--folds": "reproduce has another default",
        "--methods": "methods to train or prepare, or rows of a plan",
        "--semantics": "reproduce has another default",
        "--json": "explain prints a list",
        "--compare": "a flag of results",
        "--jobs": "processes of one training, training runs at a time, or processes that predict",
        "--level": "explain draws it, embed writes its nodes",
        "--max-nodes": "of a substructure, or of a tree",
        "--workers": "processes that read, or that serve",
    }
    texts = {}
    for name in commands():
        for word, option in options(name).items():
            if word not in HIDDEN.get(name, ()) and word not in differ:
                texts.setdefault(word, {}).setdefault(option.help, []).append(name)
    assert {word: result for word, result in texts.items() if len(result) > 1} == {}


def test_cv_and_compare_read_data_as_train_does():
    reading = {
        "--smiles",
        "--target",
        "--id-column",
        "--encoding",
        "--decimal",
        "--skip-invalid",
        "--data-root",
        "--features",
    }
    for name in ("train", "cv", "compare", "data info", "data convert", "data split"):
        assert reading <= options(name).keys(), name


def test_id_column_and_encoding_reach_cross_validation(tmp_path):
    rows = [f"n{k}é,{'C' * (k % 7 + 1)}{'ON'[k % 2]},{k % 2}" for k in range(12)]
    (tmp_path / "m.csv").write_bytes(("name,smiles,y\n" + "\n".join(rows) + "\n").encode("latin-1"))
    words = ("--folds", 3, "--epochs", 1, "--method", "mlp", "--hidden", 4, "--no-report")
    done = call(
        "cv", tmp_path / "m.csv", "--target", "y", "--id-column", "name", "--encoding", "latin-1", *words,
        "--out", tmp_path / "cv",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "n0é" in (tmp_path / "cv" / "graphs.csv").read_text()


def test_decimal_reaches_training_its_config_and_prediction(tmp_path):
    rows = [f"{'C' * (k % 7 + 1)}{'ON'[k % 2]};{k // 2},{k}" for k in range(20)]
    file, run = tmp_path / "m.csv", tmp_path / "run"
    file.write_text("smiles;logS\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match=r"Read them with decimal=',' \(--decimal ,\)"):
        call("train", file, "--method", "majority", "--out", run)
    done = call("train", file, "--decimal", ",", "--method", "majority", "--out", run, "--no-report")
    assert done.exit_code == 0, done.stderr
    assert 'decimal = ","' in (run / "config.toml").read_text()
    scores = json.loads(call("evaluate", run, file, "--decimal", ",", "--json").stdout)
    assert scores["graphs"] == 20


def test_stratified_folds_is_the_word_for_folds_everywhere(tmp_path):
    words = ("cv", "synthetic:cycles?graphs=30&nodes=6", "--folds", 3, "--epochs", 1, "--method", "mlp", "--no-report")
    first = call(*words, "--split", "stratified-folds", "--out", tmp_path / "a")
    assert first.exit_code == 0
    assert call(*words, "--protocol", "stratified", "--out", tmp_path / "a").exit_code == 0  # the same plan, as in 0.1
    with pytest.raises(ConfigError, match="--split takes authors, stratified-folds, scaffold-folds"):
        call(*words, "--split", "random", "--out", tmp_path / "b")


def test_split_takes_a_file_of_published_splits_like_splits(tmp_path):
    folds = [
        {"train": [*range(4, 12)], "val": [2, 3], "test": [0, 1]},
        {"train": [*range(8)], "val": [8, 9], "test": [10, 11]},
    ]
    (tmp_path / "splits.json").write_text(json.dumps(folds))
    words = ("cv", "synthetic:cycles?graphs=12&nodes=6", "--epochs", 1, "--method", "mlp", "--no-report", "--seeds", 1)
    for option in ("--split", "--splits"):  # the second finds the training runs of the first
        done = call(*words, option, tmp_path / "splits.json", "--out", tmp_path / "cv", "--json")
        assert json.loads(done.stdout)["protocol"] == "splits"


@pytest.mark.parametrize("name", [*commands(), "", "data"])
def test_help_shows_no_type_for_flags(name):
    for flag in ("-h", "--help"):
        text = call(*name.split(), flag).stdout
        assert "Usage: asapool" in text or "Usage: root" in text
        assert "<bool>" not in text
        assert "and its kin" not in text


def test_python_m_asapool_is_the_command_line():
    done = subprocess.run([sys.executable, "-m", "asapool", "--version"], capture_output=True, text=True, env=ENV)
    assert done.stdout.startswith(f"asapool {__version__}\n")
    done = subprocess.run([sys.executable, "-m", "asapool", "-h"], capture_output=True, text=True, env=ENV)
    assert "Usage: asapool [OPTIONS] COMMAND" in done.stdout
    assert "Show the version and exit." in done.stdout


def test_explain_says_class_and_still_takes_target(tmp_path):
    run = ("train", "synthetic:cycles?graphs=20&nodes=6", "--epochs", 1, "--hidden", 4, "--no-report")
    assert call(*run, "--out", tmp_path / "r").exit_code == 0
    words = ("explain", tmp_path / "r", "synthetic:cycles?graphs=4&nodes=6", "--importance", "attention")
    new = call(*words, "-o", tmp_path / "a.html", "--class", "path")
    old = call(*words, "-o", tmp_path / "b.html", "--target", "path")
    assert (new.exit_code, new.stderr) == (0, "")
    assert (old.exit_code, old.stderr) == (0, "--target of explain is now called --class; --target still works\n")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_shell_completes_commands(shell):
    words = {"bash": {"COMP_WORDS": "asapool exp", "COMP_CWORD": "1"}, "zsh": {"_TYPER_COMPLETE_ARGS": "asapool exp"}}
    env = {**ENV, "_ASAPOOL_COMPLETE": f"complete_{shell}", **words[shell]}
    done = subprocess.run([sys.executable, "-m", "asapool"], capture_output=True, text=True, env=env)
    assert "explain" in done.stdout
    assert "export" in done.stdout
    assert "train" not in done.stdout.split("explain")[0]


def test_quiet_prints_results_and_errors_only(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,label\n" + "CCO,a\nCCN,b\n" * 8 + "not a molecule,a\n")
    words = ("data", "info", tmp_path / "m.csv", "--skip-invalid")
    loud, quiet, after = fork(*words), fork("--quiet", *words), fork(*words, "-q")
    assert "not a molecule" in loud[2] or "skipped" in loud[2].lower()
    assert quiet == after == (0, loud[1], "")
    code, _, failed = fork("-q", "data", "info", "nowhere.csv")
    assert code == 2
    assert failed.startswith("asapool: nowhere.csv")
