"""Sets on disk equal those in memory; interrupted conversions, truncated and changed folders."""

import csv
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from asapool.data import GraphSet, load, read
from asapool.data.loading import read_pieces
from asapool.data.mapped import convert as converting
from asapool.data.mapped.coding import Packer, decode, encode, plan, unpack
from asapool.data.mapped.convert import convert
from asapool.errors import ConfigError, DataError, WriteError

SMILES = ["CCO", "c1ccccc1", "CC(=O)[O-]", "C", "CC#N", "OC(=O)c1ccccc1Cl", "not a molecule", "C1CC1"]
FIELDS = ("x", "ptr", "rowptr", "col", "weight", "edge_attr", "y", "truth", "places", "descriptors")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("mapped") / "molecules.csv"
    with open(file, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["smiles", "toxic", "name", "dose"])
        rows.writerows([s, ["no", "yes", ""][k % 3], f"m{k}", k / 3] for k, s in enumerate(SMILES * 5))
    return file


@pytest.fixture(scope="module")
def both(table, tmp_path_factory):
    """The same molecules in memory and on disk, in pieces of 7 rows."""
    options = {"target": "toxic", "skip_invalid": True, "descriptors": "dose"}
    folder = tmp_path_factory.mktemp("mapped") / "set.graphs"
    mapped = convert(table, folder, chunk=7, **options)
    return read(table, labels="optional", **options), mapped


def same(a, b):
    for name in FIELDS:
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None), name
        if x is not None:
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y), err_msg=name)
            assert x.dtype == y.dtype, name
            assert x.shape == y.shape, name
    assert (tuple(a.ids), a.class_names, a.feature_names, a.recipe) == (
        tuple(b.ids), b.class_names, b.feature_names, b.recipe,
    )  # fmt: skip
    assert (a.source_text is None) == (b.source_text is None)
    assert a.source_text is None or tuple(a.source_text) == tuple(b.source_text)


def test_a_map_has_the_graphs_of_its_source(both):
    memory, mapped = both
    same(memory.graphs, mapped.graphs)
    assert mapped.graphs.fingerprint == memory.graphs.fingerprint
    assert (mapped.skipped, mapped.unlabelled) == (memory.skipped, memory.unlabelled)
    assert mapped.graphs.mapped is not None
    assert mapped.graphs.summary() == memory.graphs.summary()
    assert (mapped.graphs.col.max(), (1 + mapped.graphs.col).min()) == (memory.graphs.col.max(), 1)
    again = load(mapped.graphs.mapped.stored.path)
    assert again.with_fields(name="other").fingerprint == memory.graphs.fingerprint  # hashed from the files


@pytest.mark.parametrize("source", ["synthetic:motifs?graphs=9&nodes=6", "weighted"])
def test_other_sources_are_read_whole(source, tmp_path):
    if source == "weighted":
        rng = np.random.default_rng(0)
        source = tmp_path / "w.npz"
        GraphSet(
            x=rng.normal(size=(600, 3)), ptr=[0, 200, 600], rowptr=[0, *[2] * 600], col=[1, 5], weight=[0.5, -2.0],
            y=[0, 1], class_names=("a", "b"), edge_attr=[[300.0], [1.0]],
        ).save(source)  # fmt: skip
    same(load(source, labels="optional"), convert(source, tmp_path / "o.graphs", chunk=4).graphs)


def test_batches_and_parts_are_those_of_the_set_in_memory(both, monkeypatch):
    memory, mapped = both[0].graphs, both[1].graphs
    chosen = np.array([3, 0, 17, 3, 30])
    for in_memory in (1 << 21, 0):  # parts are read into memory, or stay on disk
        monkeypatch.setattr("asapool.data.graphset.IN_MEMORY", in_memory)
        same(memory.subset(chosen), mapped.subset(chosen))
        same(memory.subset(chosen).subset([4, 1]), mapped.subset(chosen).subset([4, 1]))
        for sets in ((memory, mapped), (memory.subset(chosen), mapped.subset(chosen))):
            one, two = (graphs.batch([4, 1, 0], edge_attr=True) for graphs in sets)
            for name in ("x", "ptr", "rowptr", "col", "y", "edge_attr"):
                assert torch.equal(getattr(one, name), getattr(two, name)), name
            np.testing.assert_array_equal(*(graphs.entries(np.array([2, 4])) for graphs in sets))
    same(memory, pickle.loads(pickle.dumps(mapped)))
    pieces = [piece.graphs for piece in read_pieces(mapped.mapped.stored.path, chunk=10, labels="optional")]
    assert [len(piece) for piece in pieces] == [10, 10, 10, 5]
    same(memory.subset(range(10, 20)), pieces[1])


def test_an_interrupted_conversion_continues_and_processes_change_nothing(table, both, tmp_path, monkeypatch):
    folder, options = (
        tmp_path / "set.graphs",
        {"target": "toxic", "skip_invalid": True, "descriptors": "dose", "chunk": 7},
    )

    def stop(done, total):
        assert total == 6
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(table, folder, on_part=stop, **options)
    with pytest.raises(DataError, match="not finished"):
        load(folder)
    before = {p.name: p.stat().st_mtime_ns for p in (folder / "parts").iterdir()}
    assert len(before) == 3
    monkeypatch.setattr(converting.shutil, "rmtree", lambda *_, **__: None)
    mapped = convert(table, folder, workers=2, **options)
    after = {p.name: p.stat().st_mtime_ns for p in (folder / "parts").iterdir()}
    assert before.items() <= after.items()
    assert mapped.graphs.fingerprint == both[0].graphs.fingerprint
    with pytest.raises(WriteError, match="other options"):
        convert(table, folder, target="toxic", chunk=7)
    os.utime(table)
    with pytest.raises(WriteError, match="another version of the file"):
        convert(table, folder, **options)


def test_a_label_that_is_refused_has_its_line(tmp_path):
    values = ["1.5", "1.5", "2.5", "<3"]
    (tmp_path / "m.csv").write_text("smiles,a,b\n" + "".join(f"C,{k},{v}\n" for k, v in enumerate(values)))
    with pytest.raises(DataError, match=r"line 5: expected a finite number for 'b', got '<3'"):
        convert(tmp_path / "m.csv", tmp_path / "m.graphs", task="regression")


def test_an_error_of_a_process_is_its_sentence(table, tmp_path):
    with pytest.raises(DataError, match=r"line 8: 'not a molecule'.*--skip-invalid"):
        convert(table, tmp_path / "set.graphs", target="toxic", workers=2, chunk=15)
    (tmp_path / "letters.graphs").mkdir()
    (tmp_path / "letters.graphs" / "aunt.txt").write_text("dear")
    with pytest.raises(WriteError, match=r"aunt\.txt"):
        convert(table, tmp_path / "letters.graphs")
    with pytest.raises(ConfigError, match=r"ends with \.graphs"):
        convert(table, tmp_path / "letters")


def test_the_first_unreadable_line_is_reported_whichever_process_is_faster():
    def process(seconds, text):
        code = f"import sys, time; time.sleep({seconds}); print({text!r}, file=sys.stderr); sys.exit(2)"
        return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)

    started = [process(1, "line 8"), process(0, "line 24")]
    started[1].wait()
    converting._check(started, [0, 1])  # piece 0 is still being read, so nothing is known about its lines
    started[0].wait()
    with pytest.raises(DataError, match=r"^line 8$"):
        converting._check(started, [0, 1])
    for one in started:
        one.communicate()


def test_names_that_are_not_unique_become_lines(tmp_path):
    file = tmp_path / "twice.csv"
    file.write_text("smiles,label,name\nCCO,a,x\nCC,b,y\nC,b,x\n")
    memory, mapped = read(file), convert(file, tmp_path / "set.graphs", chunk=2)
    assert tuple(mapped.graphs.ids) == memory.graphs.ids == ("2", "3", "4")
    assert (mapped.notes, mapped.graphs.named) == (memory.notes, memory.graphs.named)
    file.write_text("smiles,label,id\nCCO,a,x\nCC,b,y\nC,b,x\n")
    with pytest.raises(DataError, match="'x' is used more than once"):
        convert(file, tmp_path / "other.graphs", chunk=2)


def test_a_map_that_was_truncated_or_changed_is_refused(tmp_path):
    source = "synthetic:motifs?graphs=20&nodes=6"
    graphs = convert(source, tmp_path / "a.graphs").graphs
    graphs.batch([1])
    codes = tmp_path / "a.graphs" / "x.npy"
    content = codes.read_bytes()
    codes.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataError, match="changed after they were written, or while"):
        graphs.batch([1])
    with pytest.raises(DataError, match="were changed"):
        load(tmp_path / "a.graphs")
    codes.write_bytes(content[:-3])
    with pytest.raises(DataError, match="truncated"):
        load(tmp_path / "a.graphs")
    codes.unlink()
    with pytest.raises(DataError, match="No such file"):
        load(tmp_path / "a.graphs")
    meta = tmp_path / "a.graphs" / "meta.json"
    for content in ("{", "[]", "{}", json.dumps({"format": "asapool-graphs", "version": 1})):
        meta.write_text(content)
        with pytest.raises(DataError, match="Convert the source again"):
            load(tmp_path / "a.graphs")


def test_rows_take_as_few_bits_as_they_need():
    rng = np.random.default_rng(0)
    few = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 400)]
    bits = (rng.random((3000, 70)) < 0.5).astype(np.float32)
    small = rng.integers(0, 200, (3000, 3)).astype(np.float32)
    for rows, kind, bytes_per_row in (
        (few, "codes", 1),
        (bits, "bits", 9),
        (small, "bytes", 3),
        (small / 7, "floats", 12),
    ):
        blocks = [encode(rows[:300]), encode(rows[300:])]
        np.testing.assert_array_equal(np.concatenate([decode(block) for block in blocks]), rows)
        result, table = plan(blocks)
        stored = np.concatenate([Packer(result, table).pack(block) for block in blocks])
        assert (result, stored.nbytes) == (kind, bytes_per_row * len(rows))
        np.testing.assert_array_equal(unpack(result, stored, table, rows.shape[1]), rows)
