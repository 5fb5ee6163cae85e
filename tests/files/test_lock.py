"""One process at a time works in a folder; half-written files are removed, other files are not."""

import csv
import errno
import os
import subprocess
import sys

import pytest

from asapool.errors import DataError, WriteError
from asapool.files import read_json, working_in, write_csv, write_json

HOLD = """
import sys
from asapool.files import working_in

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


def test_a_second_process_is_refused_with_the_name_of_who_works_there(tmp_path, holder):
    with pytest.raises(WriteError, match=f"process {holder.pid} is working in this folder"), working_in(tmp_path):
        pass


def test_a_killed_process_leaves_the_folder_free(tmp_path, holder):
    holder.kill()
    holder.wait()
    with working_in(tmp_path):
        assert str(os.getpid()) in (tmp_path / ".lock").read_text()


def test_only_half_written_files_are_removed(tmp_path):
    ours = [".state.safetensors.k3_x9abc", ".metrics.json.00000000"]
    theirs = [".gitignore", ".notes.txt.12345678", "model.json.abcdefgh", ".config.toml.swp", "data.csv"]
    for name in ours + theirs:
        (tmp_path / name).write_text("x")
    with working_in(tmp_path):
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*theirs, ".lock"])


def test_a_place_that_cannot_be_written_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"file/run: cannot be written \(Not a directory\). Choose another folder"):
        working_in(tmp_path / "file" / "run").__enter__()


def test_a_lock_that_is_a_link_is_refused_and_its_target_left_alone(tmp_path):
    (tmp_path / "precious").write_text("content")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(WriteError, match=r"\.lock: is a symbolic link"), working_in(tmp_path / "run"):
        pass
    assert (tmp_path / "precious").read_text() == "content"


def test_a_file_that_cannot_be_removed_is_one_sentence(tmp_path, monkeypatch):
    def read_only(path, *, dir_fd=None):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "unlink", read_only)
    monkeypatch.setattr(type(tmp_path), "unlink", lambda self, missing_ok=False: os.unlink(self))
    (tmp_path / ".metrics.json.00000000").write_text("x")
    with pytest.raises(WriteError, match=r"cannot be removed \(Read-only file system\)"), working_in(tmp_path):
        pass


def test_a_carriage_return_in_a_cell_is_quoted(tmp_path):
    rows = [["a\rb", "1"], ["c\r\nd", "2"], ["e", "3"]]
    write_csv(tmp_path / "a.csv", ["id", "n"], rows)
    with (tmp_path / "a.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [["id", "n"], *rows]


def test_json_and_csv(tmp_path):
    write_json(tmp_path / "a.json", {"ä": [1, None]})
    assert read_json(tmp_path / "a.json") == {"ä": [1, None]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert read_json(tmp_path / "a.json") == {"ä": [1, None]}  # a failed write leaves the old file
    write_csv(tmp_path / "a.csv", ["x", "y"], [[1, "a,b"], [2, 'c"']])
    assert (tmp_path / "a.csv").read_text() == 'x,y\n1,"a,b"\n2,"c"""\n'
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        read_json(tmp_path / "a.json")
