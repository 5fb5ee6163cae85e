"""The .npz file: the round trip, reproducible bytes, and refusals."""

import io
import json
import zipfile

import numpy as np
import pytest

from asapool.data import GraphSet, load
from asapool.errors import DataError
from tests.data.sources import random_set


@pytest.mark.parametrize("weighted", [True, False])
def test_a_saved_set_survives_the_round_trip(tmp_path, weighted):
    graphs = random_set(4, weighted=weighted)
    graphs.save(tmp_path / "a.npz")
    back = GraphSet.load(tmp_path / "a.npz")
    for field in graphs.__dataclass_fields__:
        assert np.array_equal(getattr(back, field), getattr(graphs, field)), field
    assert back.fingerprint == graphs.fingerprint
    assert load(tmp_path / "a.npz").fingerprint == graphs.fingerprint
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_the_same_set_gives_the_same_bytes(tmp_path):
    random_set().save(tmp_path / "a.npz")
    random_set().save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy_reads_the_arrays(tmp_path):
    graphs = random_set()
    graphs.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["x"], graphs.x)


def rewrite(path, **changes):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name, array in changes.items():
        out = io.BytesIO()
        np.save(out, array, allow_pickle=True)
        members[f"{name}.npy"] = out.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def meta(**changes):
    value = {"format": "asapool-graphset", "version": 1, "name": "n", "recipe": {}, "fingerprint": "0" * 32,
             "class_names": ["no", "yes"], "feature_names": [], "ids": [], "source_text": None} | changes  # fmt: skip
    return {"meta": np.frombuffer(json.dumps(value).encode(), np.uint8)}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"x": random_set().x + 1}, "the content does not match its fingerprint"),
        ({"col": random_set().col + 100}, "an edge names node"),
        ({"x": np.array([{}], dtype=object)}, "Object arrays cannot be loaded"),
        ({"extra": np.ones(1)}, "unexpected part 'extra.npy'"),
        (meta(format="something"), "not a set of graphs that asapool saved"),
        (meta(version=2), "version 2 of the format, expected 1. Update asapool"),
        (meta(ids=5), "not a set of graphs that asapool saved"),
    ],
)
def test_changed_files_are_refused(tmp_path, changes, sentence):
    random_set().save(tmp_path / "a.npz")
    rewrite(tmp_path / "a.npz", **changes)
    with pytest.raises(DataError, match=sentence):
        load(tmp_path / "a.npz")


def test_files_that_are_something_else(tmp_path):
    with pytest.raises(DataError, match=r"none\.npz: there is no such file"):
        load(tmp_path / "none.npz")
    (tmp_path / "a.npz").write_bytes(b"PK not a zip")
    with pytest.raises(DataError, match="not a set of graphs that asapool saved"):
        load(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", a=np.ones(3))
    with pytest.raises(DataError, match=r"unexpected part 'a\.npy'"):
        load(tmp_path / "b.npz")
