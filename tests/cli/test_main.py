"""How commands end when their answer cannot be written: one sentence and code 1, wherever it was to go."""

import os
import shlex
import subprocess
import sys

import pytest

from asapool.data import load
from asapool.models import ModelConfig, build, checkpoint
from tests.cli.commands import ENV, call, fill, fork

SOURCE = "synthetic:motifs?graphs=20&nodes=9"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    graphs, path = load(SOURCE), tmp_path_factory.mktemp("model") / "model.safetensors"
    made = build(ModelConfig(hidden=4, levels=1), graphs.num_features, 2, seed=0)
    checkpoint.save(path, made, classes=graphs.class_names, recipe=graphs.recipe)
    call("predict", path, SOURCE)  # loads here what the children of this process need
    return path


FULL = "asapool: standard output: cannot be written (No space left on device). Free space or redirect it\n"


@pytest.fixture
def full():
    """A disk without room, as standard output."""
    number = os.open("/dev/full", os.O_WRONLY)
    yield number
    os.close(number)


def shell(*words, then="", unbuffered=""):
    """Code and standard error of a command, with what a shell makes of the rest of the line."""
    line = f"{shlex.join([sys.executable, '-m', 'asapool.cli.main', *map(str, words)])} {then}"
    env = {**ENV, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--help"], ["methods"], ["methods", "--json"]], ids=" ".join)
def test_a_full_disk_behind_standard_output_is_one_sentence_and_code_1(words, unbuffered, full):
    if words == ["--help"]:
        assert shell(*words, then="> /dev/full", unbuffered=unbuffered) == (1, FULL)
    assert fork(*words, stdout=full, unbuffered=bool(unbuffered)) == (1, "", FULL)


def test_predictions_need_somewhere_to_go(model, full):
    for more in ([], ["--json"]):
        assert fork("predict", model, SOURCE, *more, stdout=full) == (1, "", FULL)
        code, output = shell("predict", model, SOURCE, *more, then=">&-")
        assert (code, output.count("\n")) == (1, 1)
        assert "standard output is closed" in output


def test_a_full_disk_behind_a_file_is_code_1_whatever_is_written(model, mount):
    fill(mount)
    for words in (
        ("predict", model, SOURCE, "-o", mount / "p.csv"),
        ("explain", model, SOURCE, "--importance", "attention", "-o", mount / "p.html"),
        ("data", "convert", SOURCE, mount / "p.jsonl"),
    ):
        code, _, output = fork(*words)
        assert (code, output.count("\n")) == (1, 1), output
        assert output.startswith(f"asapool: {words[-1]}: cannot be written (No space left on device)")
    assert [path.name for path in mount.iterdir()] == ["filler"]


def test_what_cannot_be_done_as_asked_is_code_2(model, full):
    assert fork("predict", "no.safetensors", SOURCE)[0] == 2
    assert fork("predict", model, "no.csv")[0] == 2
    assert fork("predict", model, "no.csv", stdout=full)[0] == 2


def test_a_reader_that_has_seen_enough_is_no_fault(model, tmp_path):
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout is, which a mistake would replace
    assert shell("predict", model, SOURCE, then="| true") == (1, "")  # which has gone long before
    for where in ([], ["-o", tmp_path / "stdout"]):
        reader, writer = os.pipe()
        os.close(reader)
        assert fork("predict", model, SOURCE, *where, stdout=writer) == (1, "", "")
        os.close(writer)
