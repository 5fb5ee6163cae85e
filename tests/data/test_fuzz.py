"""Damaged files of every format: whatever comes in, only DataError may come out."""

import io
import json
import random
import zipfile

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asapool.data import GraphSet, load, stream
from asapool.data.splits import Split
from asapool.errors import DataError
from tests.data.sources import TU, random_set, write_tu, zip_folder

WORDS = [
    b"", b"\n", b"\r\n", b",", b"nan", b"-1", b"1e999", b"9" * 30, b"0", b"\x00", b"\xff", b"[", b"]", b"{", b'"', b"<",
    b"/>", b"null", b"true", b"NaN", b".", b"-", b"1", b"2", b" ", b"\t", b"\xe9", b"C(", b"&", b"1.5",
]  # fmt: skip
KINDS = ["put", "cut", "swap", "flip", "double"]
CHANGE = st.tuples(st.sampled_from(KINDS), st.floats(0, 1), st.integers(1, 40), st.sampled_from(WORDS))
CHANGES = st.lists(CHANGE, min_size=1, max_size=4)
# nine formats, 300 files each, the same ones in every run
FUZZ = settings(
    max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)


def damaged(data: bytes, changes) -> bytes:
    """The file after some accidents: text put in, bytes cut, swapped, flipped or doubled."""
    for kind, where, length, word in changes:
        at = int(where * len(data))
        piece = data[at : at + length]
        if kind == "put":
            data = data[:at] + word + data[at:]
        elif kind == "cut":
            data = data[:at] + data[at + length :]
        elif kind == "swap":
            data = data[:at] + word + data[at + length :]
        elif kind == "flip":
            data = data[:at] + bytes(b ^ (1 << length % 8) for b in piece) + data[at + length :]
        else:
            data = data[:at] + piece + piece + data[at + length :]
    return data


def survives(read):
    """Either a set that keeps the rules, or a DataError; anything else fails the test."""
    try:
        graphs = read()
    except DataError as error:
        said = str(error)
    else:
        said = "read"
        assert isinstance(graphs, (GraphSet, Split, list))
    assert said


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@FUZZ
@given(part=st.sampled_from(sorted(TU)), changes=CHANGES, features=st.sampled_from(["auto", "both", "degree"]))
def test_tu_text(place, part, changes, features):
    folder = write_tu(place, **{part: damaged(TU[part].encode(), changes)})
    survives(lambda: load(folder, features=features))


@FUZZ
@given(changes=CHANGES)
def test_tu_zips(place, changes):
    path = place / "TINY.zip"
    path.write_bytes(damaged(TINY_ZIP, changes))
    survives(lambda: load(path))


LINES = "".join(
    json.dumps(line) + "\n"
    for line in (
        {"asapool": 1, "name": "n", "class_names": ["a", "b"], "feature_names": ["f"]},
        {"id": 1, "nodes": 2, "edges": [[0, 1, 0.5]], "features": [[1], [2]], "label": "a", "truth": [0, 1]},
        {"id": 2, "nodes": 1, "edges": [], "features": [[3.5]], "label": "b", "directed": True, "text": "x"},
    )
).encode()


@FUZZ
@given(changes=CHANGES, header=st.booleans(), skip=st.booleans())
def test_json_lines(place, changes, header, skip):
    path = place / "g.jsonl"
    path.write_bytes(damaged(LINES if header else LINES.split(b"\n", 1)[1], changes))
    survives(lambda: load(path, skip_invalid=skip))
    survives(lambda: list(stream(path, skip_invalid=skip, chunk=1)))


TABLE = b'id,smiles,label\na,CCO,0\nb,"c1ccccc1",1\nc,C[N+](=O)[O-],1\n'


@FUZZ
@given(changes=CHANGES, skip=st.booleans())
def test_tables_of_molecules(place, changes, skip):
    path = place / "m.csv"
    path.write_bytes(damaged(TABLE, changes))
    survives(lambda: load(path, skip_invalid=skip))


@FUZZ
@given(changes=CHANGES)
def test_parquet(place, changes):
    path = place / "m.parquet"
    path.write_bytes(damaged(PARQUET, changes))
    survives(lambda: load(path, labels="optional", skip_invalid=True))


@FUZZ
@given(changes=CHANGES)
def test_saved_sets(place, changes):
    path = place / "a.npz"
    path.write_bytes(damaged(NPZ, changes))
    survives(lambda: load(path))


@FUZZ
@given(changes=CHANGES, seed=st.integers(0, 10**6))
def test_saved_sets_whose_parts_are_damaged(place, changes, seed):
    """Inside an intact zip, where no checksum helps."""
    with zipfile.ZipFile(io.BytesIO(NPZ)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    hit = random.Random(seed).choice(sorted(members))
    members[hit] = damaged(members[hit], changes)
    path = place / "b.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    survives(lambda: load(path))


@FUZZ
@given(suffix=st.sampled_from(["graphml", "gexf", "csv"]), changes=CHANGES)
def test_graph_folders(place, suffix, changes):
    folder = place / "folder"
    folder.mkdir(exist_ok=True)
    for name, data in FOLDER.items():
        (folder / name).write_bytes(damaged(data, changes) if name.endswith(suffix) else data)
    survives(lambda: load(folder))


@FUZZ
@given(changes=CHANGES)
def test_splits(place, changes):
    path = place / "s.json"
    path.write_bytes(damaged(SPLIT, changes))
    survives(lambda: Split.load(path))


def _made(tmp):
    global TINY_ZIP, NPZ, PARQUET, FOLDER, SPLIT
    import pandas as pd

    TINY_ZIP = zip_folder(write_tu(tmp), tmp / "TINY.zip").read_bytes()
    random_set().save(tmp / "a.npz")
    NPZ = (tmp / "a.npz").read_bytes()
    pd.DataFrame({"smiles": ["C", "CC", "CCO"], "label": [0, 1, 1]}).to_parquet(tmp / "m.parquet")
    PARQUET = (tmp / "m.parquet").read_bytes()
    g = nx.Graph([(0, 1)])
    nx.set_node_attributes(g, {0: 1.5, 1: 2.0}, "size")
    nx.write_graphml(g, tmp / "a.graphml")
    nx.write_gexf(g, tmp / "b.gexf")
    FOLDER = {n: (tmp / n).read_bytes() for n in ("a.graphml", "b.gexf")} | {"labels.csv": b"file,label\na,0\nb,1\n"}
    split = Split(train=np.arange(5), val=np.arange(5, 7), test=np.arange(7, 9), graphs=9, fingerprint="ab", seed=1)
    split.save(tmp / "s.json")
    SPLIT = (tmp / "s.json").read_bytes()


@pytest.fixture(scope="module", autouse=True)
def _sources(tmp_path_factory):
    _made(tmp_path_factory.mktemp("sources"))
