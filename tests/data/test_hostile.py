"""Edge cases of sources: repeated edges, empty graphs, huge counts, invalid text, tables without a header."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from asapool.data import GraphSet, load, read, splits, stream
from asapool.errors import DataError


def tu(folder, **files):
    folder.mkdir()
    for part, text in files.items():
        (folder / f"{folder.name}_{part}.txt").write_text(text)
    return folder


def test_edges_that_a_tu_data_set_lists_twice_are_dropped_with_a_note_or_summed(tmp_path):
    edges = "1, 2\n2, 1\n1, 2\n2, 1\n3, 4\n4, 3\n"
    folder = tu(
        tmp_path / "IMDB",
        A=edges,
        graph_indicator="1\n1\n2\n2\n",
        graph_labels="0\n1\n",
        edge_labels="0\n0\n1\n1\n1\n1\n",
    )
    reading = read(folder)
    assert reading.graphs.weight is None
    assert reading.graphs.col.tolist() == [1, 0, 3, 2]
    assert reading.graphs.edge_attr.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]  # that of the first of two equal edges
    assert len(reading.notes) == 1
    assert reading.notes[0].startswith("IMDB: 2 of 6 edges are listed more than once; the repeats were dropped")
    summed = read(folder, repeats="sum")
    assert summed.graphs.weight.tolist() == [2, 2, 1, 1]
    assert summed.notes == ()


def test_graphs_without_nodes_are_left_out_with_a_note(tmp_path):
    folder = tu(tmp_path / "PRINTS", A="1, 2\n2, 1\n", graph_indicator="2\n2\n4\n", graph_labels="0\n1\n0\n0\n1\n")
    reading = read(folder)
    graphs = reading.graphs
    assert (graphs.ids, graphs.places.tolist(), graphs.y.tolist()) == (("2", "4"), [1, 3], [1, 0])
    assert reading.notes == ("PRINTS: 2 of 4 graphs have no nodes and were left out, the first of them graph 1",)


def test_nodes_are_limited_in_total_by_the_size_of_the_file(tmp_path):
    path = tmp_path / "bomb.jsonl"
    path.write_text('{"nodes": 9000000}\n' * 8)
    with pytest.raises(DataError, match=r"line 2: 18,000,000 nodes so far, but .* at most 10,000,000"):
        load(path, labels="optional")
    with pytest.raises(DataError, match=r"line 2: 18,000,000 nodes"):
        list(stream(path, chunk=2))


@pytest.mark.parametrize("key", ["id", "label", "text"])
def test_an_unpaired_surrogate_is_refused_or_skipped(tmp_path, key):
    path = tmp_path / "a.jsonl"
    good = [{"nodes": 1, "label": label} for label in "ab"]
    path.write_text("\n".join([*map(json.dumps, good), json.dumps({"nodes": 1, "label": "a", key: "\ud800"})]))
    with pytest.raises(DataError, match=r"line 3: an unpaired surrogate"):
        load(path)
    assert [row.line for row in read(path, skip_invalid=True).skipped] == [3]
    path.write_text(json.dumps({"nodes": 1, "label": "😀"}) + '\n{"nodes": 1, "label": "a"}')  # a whole pair is text
    assert load(path).class_names == ("a", "😀")


def test_names_that_are_not_text_are_refused(tmp_path):
    for field in ("ids", "class_names", "feature_names", "source_text", "name"):
        value = "\udcff" if field == "name" else ("\udcff",)
        with pytest.raises(DataError, match=r"not text|not UTF-8"):
            GraphSet(x=np.ones((1, 1)), ptr=[0, 1], rowptr=[0, 0], col=[], **{field: value})
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")
    with open(path, "w") as out:
        out.write('{"nodes": 1}\n')
    with pytest.raises(DataError, match=r"not UTF-8 text\. Rename the file"):
        load(path, labels="optional")


def test_one_long_node_label_takes_no_more_memory_than_it_is_long(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps({"nodes": ["x" * 100_000, *"ab" * 20_000]}) + "\n")
    program = f"""if True:
        import resource
        from asapool.data import load
        import numpy
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert load({str(path)!r}, labels="optional").num_features == 3
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 500  # MiB; with fixed-width text it would be 16 GB


def test_the_advice_on_features_names_only_what_exists(tmp_path):
    bare = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n2\n", "graph_labels": "0\n1\n"}
    for name, more, features, advice in (
        ("NONE", {}, "labels", "'degree' or 'constant'"),
        ("NOR", {}, "attributes", "'degree' or 'constant'"),
        ("ONLY", {"node_attributes": "1\n2\n3\n"}, "labels", "'attributes', 'degree' or 'constant'"),
        ("BUT", {"node_labels": "1\n2\n3\n"}, "attributes", "'labels', 'degree' or 'constant'"),
    ):
        with pytest.raises(DataError, match=rf"there are no node {features}\. Choose features={advice}$"):
            load(tu(tmp_path / name, **bare, **more), features=features)


def test_a_table_without_a_header_line_is_refused(tmp_path):
    for text in ("CCO,1\nCCC,0\n", "CCO,,\nCCC,,\n"):
        (tmp_path / "m.csv").write_text(text)
        with pytest.raises(DataError, match=r"m.csv: expected a header line .* 'CCO,.*', looks like data"):
            load(tmp_path / "m.csv")


def test_a_list_of_smiles_without_a_header_line_is_refused(tmp_path):
    (tmp_path / "m.csv").write_text("CCO\nCCN\n")
    sentence = r"m.csv: expected a header line .* 'CCO', looks like data\. Add a header, such as smiles$"
    with pytest.raises(DataError, match=sentence):
        load(tmp_path / "m.csv", labels="optional")


def test_the_error_for_a_missing_smiles_column_lists_each_name_once(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,y\nC,1\nCC,0\n")
    recipe = load(tmp_path / "m.csv").recipe
    (tmp_path / "n.csv").write_text("formula,y\nC,1\n")
    with pytest.raises(DataError, match="no column is called smiles or canonical_smiles or smi; the columns are"):
        load(tmp_path / "n.csv", recipe=recipe)


def test_the_error_for_a_misspelt_column_suggests_the_nearest_one(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,herg_active,batch\nC,1,2\nCC,0,2\n")
    with pytest.raises(DataError, match=r"no column 'herg_activ'; .* Did you mean 'herg_active'\?"):
        load(tmp_path / "m.csv", target="herg_activ")


def test_a_split_file_with_only_a_header_is_refused(tmp_path):
    (tmp_path / "s.csv").write_text("id,part\n")
    with pytest.raises(DataError, match=r"s.csv: there are column names but no rows"):
        splits.given(load("synthetic:cycles?graphs=6"), tmp_path / "s.csv")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    for function in (load, stream):
        with pytest.raises(DataError, match=r"pipe.jsonl: is a pipe or device"):
            function(tmp_path / "pipe.jsonl")
