"""Compiled loops on disk: several processes may compile at once, and a damaged file is compiled again."""

import numpy as np
import pytest

from asapool.kernels.fused import code_cache
from asapool.kernels.fused.code_cache import CodeFiles
from asapool.kernels.fused.compiled import Loop


def total(start, stop, values, weight):
    s = 0.0
    for i in range(start, stop):
        if weight is None:
            s += values[i]
        else:
            s += values[i] * weight[i]
    return s


@pytest.fixture
def loop(tmp_path):
    """Each call returns the loop as a new process has it: nothing compiled yet, the same files."""

    def fresh():
        made = Loop(total)
        made.code._cache._cache_file.folder = tmp_path
        return made

    return fresh


def hits(loop):
    return sum(loop.code.stats.cache_hits.values())


VALUES, WEIGHT = np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.0, 2.0])


def test_two_processes_that_compile_at_once_do_not_take_each_other_s_code(loop, tmp_path, monkeypatch):
    """The second saves its code just before the first; numba gives both files one name, and the result 9 becomes 7."""
    dumps = code_cache.dumps

    def late(content):
        monkeypatch.setattr(code_cache, "dumps", dumps)
        assert loop()(0, 3, VALUES, WEIGHT) == 9
        return dumps(content)

    monkeypatch.setattr(code_cache, "dumps", late)
    assert loop()(0, 3, VALUES, None) == 7
    assert len(list(tmp_path.iterdir())) == 2
    third = loop()
    assert (third(0, 3, VALUES, WEIGHT), third(0, 3, VALUES, None), hits(third)) == (9, 7, 2)


@pytest.mark.parametrize("place", [0, 70, 300, -1])
def test_a_damaged_file_is_compiled_again(loop, tmp_path, place):
    assert loop()(0, 3, VALUES, None) == 7
    [file] = tmp_path.iterdir()
    sound = file.read_bytes()
    damaged = bytearray(sound)
    damaged[place] ^= 1
    file.write_bytes(damaged)
    again = loop()
    assert (again(0, 3, VALUES, None), hits(again)) == (7, 0)
    after = loop()
    assert (after(0, 3, VALUES, None), hits(after)) == (7, 1)


def test_files_of_another_version_are_removed_and_never_loaded(tmp_path):
    old, new = CodeFiles(tmp_path, "loop", "yesterday"), CodeFiles(tmp_path, "loop", "today")
    other = CodeFiles(tmp_path, "loop2", "yesterday")
    for files in (old, other):
        files.save("key", "code")
    for name in ("loop.1.nbc", "loop.nbi"):  # as numba names them
        (tmp_path / name).touch()
    assert new.load("key") is None
    new.save("key", "new code")
    assert (new.load("key"), old.load("key"), other.load("key")) == ("new code", None, "code")
    assert len(list(tmp_path.iterdir())) == 2
    new.flush()
    assert new.load("key") is None


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    files = CodeFiles(tmp_path, "loop", "today")
    monkeypatch.setattr(code_cache.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        files.save("key", "code")
    assert list(tmp_path.iterdir()) == []
