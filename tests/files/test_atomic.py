"""Atomic writes, and what durable=True waits for."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from asapool.errors import WriteError
from asapool.files import writing


@pytest.fixture
def steps(monkeypatch):
    """The calls of fsync and replace, in order; they are carried out."""
    reported, sync, rename = [], os.fsync, os.replace

    def fsync(handle):
        about = os.fstat(handle)
        reported.append("sync folder" if stat.S_ISDIR(about.st_mode) else f"sync {about.st_size} bytes")
        sync(handle)

    def replace(old, new):
        reported.append(f"name {os.path.basename(new)}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return reported


def test_a_durable_file_has_all_its_bytes_on_the_disk_before_its_name(tmp_path, steps):
    with writing(tmp_path / "a", durable=True) as out:
        out.write(b"whole")
    assert steps == ["sync 5 bytes", "name a", "sync folder"]
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_an_ordinary_file_is_not_waited_for(tmp_path, steps):
    with writing(tmp_path / "a") as out:
        out.write(b"whole")
    assert steps == ["name a"]


def test_a_disk_that_cannot_store_the_bytes_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"before")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(WriteError, match=r"a: cannot be written \(No space left on device\)"),
        writing(tmp_path / "a", durable=True) as out,
    ):
        out.write(b"after")
    assert (tmp_path / "a").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_cannot_be_synced_is_an_error_except_where_there_is_no_such_call(tmp_path, monkeypatch):
    def failing(number):
        def fsync(handle):
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                raise OSError(number, os.strerror(number))

        return fsync

    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(WriteError, match="may not be on the disk"), writing(tmp_path / "a", durable=True):
        pass
    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    with writing(tmp_path / "a", durable=True):
        pass


def test_what_cannot_be_written_keeps_the_system_s_reason_as_its_cause(tmp_path):
    with pytest.raises(WriteError, match="Choose a folder that exists") as output, writing(tmp_path / "no" / "a"):
        pass
    assert isinstance(output.value.__cause__, FileNotFoundError)
    with pytest.raises(WriteError, match=r"cannot be written \(Is a directory\)") as output, writing(tmp_path):
        pass
    assert isinstance(output.value.__cause__, IsADirectoryError)


def test_a_link_stays_a_link_and_its_file_gets_the_bytes(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a").write_bytes(b"before")
    for name, target in (("there", "far/a"), ("new", "far/b")):
        (tmp_path / name).symlink_to(target)
        with writing(tmp_path / name) as out:
            out.write(b"after")
        assert (tmp_path / name).readlink() == Path(target)
        assert (tmp_path / target).read_bytes() == b"after"
        assert not (tmp_path / target).is_symlink()
    assert sorted(path.name for path in (tmp_path / "far").iterdir()) == ["a", "b"]


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path, steps):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with writing(pipe, durable=True) as out:  # there is nothing to wait for
        out.write(b"whole")
    reader.join()
    assert read == [b"whole"]
    assert pipe.is_fifo()
    assert steps == []


def test_a_device_is_written_into_and_stays_a_device(tmp_path):
    null, full = tmp_path / "null", tmp_path / "full"  # not those of the system, which a mistake would replace
    for device, number in ((null, "3"), (full, "7")):
        if os.geteuid() != 0 or subprocess.run(["mknod", device, "c", "1", number]).returncode:
            pytest.skip("NOT TESTED: writing into a device; making one takes root")
    with writing(null) as out:
        out.write(b"gone")
    with pytest.raises(WriteError, match=r"full: cannot be written \(No space left on device\)"), writing(full) as out:
        out.write(b"too much")
    assert null.is_char_device()
    assert full.is_char_device()


def test_a_pipe_without_a_reader_raises_broken_pipe_error(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def write():
        with writing(pipe) as out:
            os.close(reader)
            out.write(b"x")

    with pytest.raises(BrokenPipeError):
        write()


def test_standard_output_keeps_what_was_printed_when_it_goes_to_a_file(tmp_path):
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    program = f"""if True:
        from asapool.files import writing
        print("first", flush=True)
        with writing("{tmp_path}/stdout") as out:
            out.write(b"second\\n")
        print("third")
    """
    with (tmp_path / "log").open("w") as log:
        subprocess.run([sys.executable, "-c", program], stdout=log, check=True)
    assert (tmp_path / "log").read_text() == "first\nsecond\nthird\n"
