"""A folder belongs to one process at a time; half-written files are swept up, other people's are not."""

import subprocess
import sys

import pytest

from asapool.errors import CheckpointError, TrainingError
from asapool.files.folder import read_json, working_in, write_csv, write_json

HOLD = """
import sys
from asapool.files.folder import working_in

with working_in(sys.argv[1]):
    print("in", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "in\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_is_refused_and_told_who_works_there(tmp_path, holder):
    with pytest.raises(TrainingError, match=f"process {holder.pid} is working in this folder"), working_in(tmp_path):
        pass


def test_a_killed_process_leaves_the_folder_free(tmp_path, holder):
    holder.kill()
    holder.wait()
    with working_in(tmp_path):
        pass


def test_half_written_files_are_swept_and_nothing_else(tmp_path):
    ours = [".state.safetensors.k3_x9abc", ".metrics.json.00000000"]
    theirs = [".gitignore", ".notes.txt.12345678", "model.json.abcdefgh", ".config.toml.swp", "data.csv"]
    for name in ours + theirs:
        (tmp_path / name).write_text("x")
    with working_in(tmp_path):
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*theirs, ".lock"])


def test_a_place_that_cannot_be_written_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match=r"file/run: cannot be written \(Not a directory\). Choose another folder"):
        working_in(tmp_path / "file" / "run").__enter__()


def test_json_and_csv(tmp_path):
    write_json(tmp_path / "a.json", {"ä": [1, None]})
    assert read_json(tmp_path / "a.json") == {"ä": [1, None]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert read_json(tmp_path / "a.json") == {"ä": [1, None]}  # a failed write leaves the old file
    write_csv(tmp_path / "a.csv", ["x", "y"], [[1, "a,b"], [2, 'c"']])
    assert (tmp_path / "a.csv").read_text() == 'x,y\n1,"a,b"\n2,"c"""\n'
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(CheckpointError, match="is not JSON"):
        read_json(tmp_path / "a.json")
