"""Files that appear whole or not at all, and what is waited for until it is on the disk."""

import os
import stat

import pytest

from asapool.data.atomic import writing
from asapool.errors import DataError


@pytest.fixture
def steps(monkeypatch):
    """What the system was told, in order; the calls are carried out."""
    told, sync, rename = [], os.fsync, os.replace

    def fsync(handle):
        about = os.fstat(handle)
        told.append("sync folder" if stat.S_ISDIR(about.st_mode) else f"sync {about.st_size} bytes")
        sync(handle)

    def replace(old, new):
        told.append(f"name {os.path.basename(new)}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return told


def test_a_durable_file_has_all_its_bytes_on_the_disk_before_its_name(tmp_path, steps):
    with writing(tmp_path / "a", durable=True) as out:
        out.write(b"whole")
    assert steps == ["sync 5 bytes", "name a", "sync folder"]
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_an_ordinary_file_is_not_waited_for(tmp_path, steps):
    with writing(tmp_path / "a") as out:
        out.write(b"whole")
    assert steps == ["name a"]


def test_a_disk_that_cannot_keep_the_bytes_leaves_the_file_before(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"before")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(DataError, match=r"a: cannot be written \(No space left on device\)"),
        writing(tmp_path / "a", durable=True) as out,
    ):
        out.write(b"after")
    assert (tmp_path / "a").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
