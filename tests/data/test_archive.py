"""Zips that would do harm, and atomic writes."""

import zipfile

import pytest

from asapool.data import archive, load
from asapool.errors import DataError, WriteError
from asapool.files import writing
from tests.data.sources import write_tu, zip_folder

OUTSIDE = ["../TINY_A.txt", "/etc/TINY_A.txt", "a/../../TINY_A.txt", "..\\TINY_A.txt", "C:/TINY_A.txt"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_zip_with_paths_outside_its_folder(tmp_path, name):
    path = zip_folder(write_tu(tmp_path), tmp_path / "TINY.zip")
    with zipfile.ZipFile(path, "a") as out:
        out.writestr(zipfile.ZipInfo(name), "1, 2\n")
    with pytest.raises(DataError, match=r"TINY.zip: .* points outside the zip\. Do not use this file"):
        load(path)


def test_a_zip_bomb(tmp_path, monkeypatch):
    path = zip_folder(write_tu(tmp_path, A="1, 2\n" * 400_000), tmp_path / "TINY.zip")
    monkeypatch.setattr(archive, "FREE", 1 << 20)
    with pytest.raises(DataError, match=r"would unpack to 2,000,\d+ bytes, more than the limit of 1,048,576\. If you"):
        load(path)


def test_a_large_zip_that_is_not_a_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "FREE", 10)
    assert len(load(zip_folder(write_tu(tmp_path), tmp_path / "TINY.zip"))) == 2


def test_a_zip_that_lies_about_its_size(tmp_path):
    path = zip_folder(write_tu(tmp_path, A="1, 2\n" * 1000), tmp_path / "TINY.zip")
    raw = path.read_bytes()
    size = (5000).to_bytes(4, "little")
    assert raw.count(size) == 2
    path.write_bytes(raw.replace(size, (50).to_bytes(4, "little")))
    with pytest.raises(DataError, match=r"the zip is damaged or cut short"):
        load(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_zip(tmp_path, share):
    path = zip_folder(write_tu(tmp_path), tmp_path / "TINY.zip")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(DataError, match=r"TINY.zip: the zip is damaged or cut short .*\. Fetch it again"):
        load(path)


def test_a_file_without_a_name_in_a_zip(tmp_path):
    path = zip_folder(write_tu(tmp_path), tmp_path / "TINY.zip")
    with zipfile.ZipFile(path, "a") as out:
        out.writestr(zipfile.ZipInfo("x"), "")
    raw = bytearray(path.read_bytes())
    entry = raw.rindex(b"PK\x01\x02")
    raw[entry + 28], raw[entry + 30] = 0, 1  # the one letter of its name becomes something else
    path.write_bytes(raw)
    assert "" in zipfile.ZipFile(path).namelist()
    assert len(load(path)) == 2


def test_a_zip_with_a_password(tmp_path):
    path = zip_folder(write_tu(tmp_path), tmp_path / "TINY.zip")
    raw = bytearray(path.read_bytes())
    for at in [i for i in range(len(raw)) if raw[i : i + 4] in (b"PK\x03\x04", b"PK\x01\x02")]:
        raw[at + (6 if raw[at : at + 4] == b"PK\x03\x04" else 8)] |= 1
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"the zip is damaged or cut short .*password"):
        load(path)


def test_a_file_that_failed_leaves_nothing_and_keeps_the_old(tmp_path):
    target = tmp_path / "a.npz"
    target.write_bytes(b"old")

    def fail(reason):
        with writing(target) as out:
            out.write(b"half")
            raise reason

    with pytest.raises(RuntimeError):
        fail(RuntimeError())
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
    assert target.read_bytes() == b"old"
    with pytest.raises(KeyboardInterrupt):
        fail(KeyboardInterrupt())
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(WriteError, match=r"cannot be written .*No such file"), writing(tmp_path / "no" / "a"):
        pass
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="folder: cannot be written"), writing(tmp_path / "folder") as out:
        out.write(b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
