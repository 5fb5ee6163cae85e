"""TU data sets: the values read, every choice of features, and an error message for everything that can be wrong."""

import numpy as np
import pytest

from asapool.data import load
from asapool.errors import ConfigError, DataError
from tests.data.sources import TU, dense, write_tu, zip_folder


def test_the_two_tiny_graphs(tmp_path):
    graphs = load(write_tu(tmp_path))
    assert (graphs.name, len(graphs), graphs.ids) == ("TINY", 2, ("1", "2"))
    assert graphs.x.tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]]  # labels 5, 6, 7
    assert graphs.feature_names == ("label=5", "label=6", "label=7")
    assert dense(graphs, 0).tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert dense(graphs, 1).tolist() == [[0, 1], [1, 0]]
    assert (graphs.y.tolist(), graphs.class_names) == ([1, 0], ("-1", "1"))
    assert graphs.weight is None
    # edge attribute, then one-hot edge labels 0 and 1; row 1 of the path has the edges from 0 and from 2
    assert graphs.edge_attr.tolist() == [
        [1.5, 1, 0], [1.5, 1, 0], [2.5, 0, 1], [2.5, 0, 1], [0.5, 1, 0], [0.5, 1, 0],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("features", "first", "names"),
    [
        ("labels", [1, 0, 0], ("label=5", "label=6", "label=7")),
        ("attributes", [0.5, 1], ("attribute0", "attribute1")),
        ("both", [0.5, 1, 1, 0, 0], ("attribute0", "attribute1", "label=5", "label=6", "label=7")),
        ("degree", [0, 1, 0], ("degree=0", "degree=1", "degree>=2")),
        ("constant", [1], ("constant",)),
        ("auto", [1, 0, 0], ("label=5", "label=6", "label=7")),
    ],
)
def test_every_choice_of_features_and_its_recipe(tmp_path, features, first, names):
    folder = write_tu(tmp_path)
    graphs = load(folder, features=features)
    assert graphs.x[0].tolist() == first
    assert graphs.feature_names == names
    # the recipe makes the same columns of new data, here of the second graph alone
    alone = {"A": "1,2\n2,1\n", "graph_indicator": "1\n1\n", "graph_labels": "-1\n", "node_labels": "7\n6\n",
             "node_attributes": "0,4\n2,5\n", "edge_labels": "0\n0\n", "edge_attributes": "1\n1\n"}  # fmt: skip
    new = load(write_tu(tmp_path / "new", **alone), recipe=graphs.recipe)
    assert np.array_equal(new.x, graphs.subset([1]).x)
    assert (new.feature_names, new.class_names, new.y.tolist()) == (names, ("-1", "1"), [0])


@pytest.mark.parametrize("change", [
    {"A": TU["A"].replace("\n", "\r\n")},
    {"A": TU["A"].replace(", ", "  ,\t")},
    {"A": TU["A"].rstrip("\n")},
    {"A": TU["A"] + "\n  \n\r\n"},
    {"A": " " + TU["A"]},
    {"graph_labels": "1.0\n-1.0\n"},
    {"node_labels": "+5\n7.\n5\n7\n6"},
])  # fmt: skip
def test_line_ends_spaces_and_ways_to_write_a_number_do_not_matter(tmp_path, change):
    plain = load(write_tu(tmp_path / "plain"))
    assert load(write_tu(tmp_path / "other", **change)).fingerprint == plain.fingerprint


def test_the_order_of_the_edge_lines_does_not_matter(tmp_path):
    order = [3, 0, 5, 2, 4, 1]
    files = ("A", "edge_labels", "edge_attributes")
    shuffled = {part: "\n".join(TU[part].split("\n")[k] for k in order) + "\n" for part in files}
    assert load(write_tu(tmp_path / "b", **shuffled)).fingerprint == load(write_tu(tmp_path / "a")).fingerprint


def test_zips_folders_and_names_give_the_same(tmp_path, monkeypatch):
    folder = write_tu(tmp_path)
    want = load(folder).fingerprint
    assert load(zip_folder(folder, tmp_path / "TINY.zip")).fingerprint == want
    assert load(zip_folder(folder, tmp_path / "renamed.zip", "a/b")).fingerprint == want
    assert load("TINY", data_root=tmp_path).fingerprint == want
    monkeypatch.setenv("ASAPOOL_DATA", str(tmp_path))
    assert load("TINY").fingerprint == want


def test_pygs_own_layout_is_found(tmp_path):
    write_tu(tmp_path / "TINY", "raw")
    for file in (tmp_path / "TINY" / "raw").iterdir():
        file.rename(file.with_name(file.name.replace("raw_", "TINY_")))
    assert len(load("TINY", data_root=tmp_path)) == 2
    assert len(load(tmp_path / "TINY")) == 2


def test_edges_listed_twice_are_summed_on_request_and_loops_are_kept(tmp_path):
    folder = write_tu(tmp_path, A="1,1\n1,2\n1,2\n2,1\n4,5\n5,4\n", edge_labels=None, edge_attributes=None)
    assert dense(load(folder), 0).tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    graphs = load(folder, repeats="sum")
    assert dense(graphs, 0).tolist() == [[1, 1, 0], [2, 0, 0], [0, 0, 0]]  # 1 -> 2 twice: row 2, column 1


def test_labels_with_wide_gaps_get_a_column_each_and_narrow_gaps_are_filled(tmp_path):
    wide = load(write_tu(tmp_path / "a", node_labels="1\n1000\n1\n1000\n9\n"))
    assert wide.feature_names == ("label=1", "label=9", "label=1000")
    narrow = load(write_tu(tmp_path / "b", node_labels="1\n4\n1\n4\n2\n"))
    assert narrow.feature_names == ("label=1", "label=2", "label=3", "label=4")  # as PyG and the authors count them


def test_two_label_columns(tmp_path):
    graphs = load(write_tu(tmp_path, node_labels="5, 0\n7, 1\n5, 0\n7, 1\n6, 1\n"))
    assert graphs.feature_names == ("label0=5", "label0=6", "label0=7", "label1=0", "label1=1")
    assert graphs.x[1].tolist() == [0, 0, 1, 0, 1]


def test_without_node_files_the_degree_is_the_feature(tmp_path):
    graphs = load(write_tu(tmp_path, node_labels=None, node_attributes=None))
    assert graphs.feature_names == ("degree=0", "degree=1", "degree>=2")
    assert load(write_tu(tmp_path / "b", node_labels=None)).feature_names == ("attribute0", "attribute1")


def test_frankenstein_uses_attributes_as_the_authors_do(tmp_path):
    assert load(write_tu(tmp_path, "FRANKENSTEIN")).feature_names == ("attribute0", "attribute1")
    assert load(write_tu(tmp_path, "PROTEINS")).feature_names == ("label=5", "label=6", "label=7")


BAD = {
    "an edge to a node that does not exist": (
        {"A": "1, 2\n2, 1\n2, 9\n"}, r"TINY_A.txt, line 3: node 9, but TINY_graph_indicator.txt lists 5\. Fetch"),
    "an edge from node 0": ({"A": "1, 2\n0, 1\n"}, r"TINY_A.txt, line 2: node 0, but nodes are counted from 1"),
    "an edge into another graph": (
        {"A": "1, 2\n3, 4\n"}, r"TINY_A.txt, line 2: nodes 3 and 4 are in graphs 1 and 2, but an edge must stay"),
    "three numbers in an edge": ({"A": "1, 2\n2, 1, 3\n"}, r"TINY_A.txt, line 2: expected 2 numbers, got 3"),
    "numbers that balance out": ({"A": "1, 2, 3\n4\n1, 2\n"}, r"TINY_A.txt, line 1: expected 2 numbers, got 3"),
    "an empty line inside": ({"A": "1, 2\n\n2, 1\n"}, r"TINY_A.txt, line 2: expected 2 numbers, got nothing"),
    "text in an edge": ({"A": "1, 2\n2, one\n"}, r"TINY_A.txt, line 2: expected a whole number, got 'one'"),
    "two numbers without a comma": ({"A": "1, 2\n2 1,\n"}, r"TINY_A.txt, line 2: expected a whole number, got '2 1'"),
    "half a node": ({"A": "1, 2\n2, 1.5\n"}, r"line 2: expected a whole number, got '1.5'"),
    "a number beyond all bounds": ({"A": f"1, 2\n2, {10**30}\n"}, r"line 2: expected a whole number, got '1000"),
    "an empty edge file": ({"A": ""}, r"TINY_A.txt: the file is empty"),
    "an edge file of spaces": ({"A": "\n \n"}, r"TINY_A.txt: the file is empty"),
    "no edge file": ({"A": None}, r"no file ends with _A.txt, so this is not a TU data set"),
    "no indicator": ({"graph_indicator": None}, r"TINY_graph_indicator.txt is missing"),
    "a graph without nodes or label": (
        {"graph_indicator": "1\n1\n1\n3\n3\n"}, r"graph_labels.txt: 2 lines, but .*_indicator.txt lists 3 graphs"),
    "nodes out of order": (
        {"graph_indicator": "1\n1\n2\n1\n2\n"}, r"line 4: graph 1 follows graph 2, but numbers start at 1 and never"),
    "graphs counted from 0": ({"graph_indicator": "0\n0\n0\n1\n1\n"}, r"line 1: graph 0 follows .*numbers start at 1"),
    "too few labels": ({"graph_labels": "1\n"}, r"TINY_graph_labels.txt: 1 lines, but .*_indicator.txt lists 2 graphs"),
    "no labels": ({"graph_labels": None}, r"TINY_graph_labels.txt is missing, so there are no class labels. Add"),
    "one class": ({"graph_labels": "1\n1\n"}, r"TINY_graph_labels.txt: all 2 labelled graphs are of one class"),
    "a measured target": ({"graph_labels": "0.25\n1\n"}, r"graph_labels.txt, line 1: expected a whole .*, got '0.25'"),
    "too many node labels": ({"node_labels": "5\n7\n5\n7\n6\n6\n"}, r"TINY_node_labels.txt: 6 lines, but .*5 nodes"),
    "too few edge labels": ({"edge_labels": "0\n"}, r"TINY_edge_labels.txt: 1 lines, but TINY_A.txt lists 6 edges"),
    "binary rubbish": ({"A": b"\xff\xfe\x00\x01"}, r"TINY_A.txt, line 1: expected 2 numbers, got 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_one_sentence(tmp_path, case):
    change, sentence = BAD[case]
    with pytest.raises(DataError, match=sentence):
        load(write_tu(tmp_path, **change))


@pytest.mark.parametrize("word", ["nan", "-inf", "1e60", "1_0", "0x10", ""])
def test_attributes_that_are_not_finite(tmp_path, word):
    text = TU["node_attributes"].replace("1e-1", word)
    sentence = rf"TINY_node_attributes.txt, line 3: expected a (finite )?number, got '{word}'"
    with pytest.raises(DataError, match=sentence):
        load(write_tu(tmp_path, node_attributes=text), features="attributes")


def test_features_that_do_not_exist(tmp_path):
    folder = write_tu(tmp_path, node_labels=None, node_attributes=None)
    with pytest.raises(DataError, match=r"TINY: there are no node labels\. Choose features='degree'"):
        load(folder, features="labels")
    with pytest.raises(DataError, match="TINY: there are no node attributes"):
        load(folder, features="attributes")
    with pytest.raises(ConfigError, match="features must be one of 'auto', 'labels'"):
        load(folder, features="colour")


def test_a_label_the_recipe_does_not_know_is_named(tmp_path):
    recipe = load(write_tu(tmp_path / "old")).recipe
    with pytest.raises(DataError, match=r"TINY: node label '9' does not occur in .* which has '5', '6', '7'\. Drop"):
        load(write_tu(tmp_path / "new", node_labels="5\n9\n5\n7\n6\n"), recipe=recipe)
    with pytest.raises(DataError, match=r"TINY_graph_labels.txt, line 2: class '3', expected one of '-1', '1'"):
        load(write_tu(tmp_path / "new", graph_labels="1\n3\n"), recipe=recipe)
    with pytest.raises(DataError, match="TINY: edge label '4' does not occur"):
        load(write_tu(tmp_path / "new", graph_labels=None, edge_labels="0\n0\n4\n4\n0\n0\n"), recipe=recipe)


def test_labels_may_be_missing_in_data_to_predict(tmp_path):
    recipe = load(write_tu(tmp_path / "old")).recipe
    new = load(write_tu(tmp_path / "new", graph_labels=None), recipe=recipe)
    assert (new.y.tolist(), new.class_names) == ([-1, -1], ("-1", "1"))
    assert load(write_tu(tmp_path / "old"), labels="ignored").y.tolist() == [-1, -1]
    assert load(write_tu(tmp_path / "one", graph_labels="1\n1\n"), labels="optional").y.tolist() == [0, 0]


def test_several_sets_in_one_folder(tmp_path):
    write_tu(tmp_path)
    for file in (tmp_path / "TINY").iterdir():
        file.with_name(file.name.replace("TINY", "MORE")).write_bytes(file.read_bytes())
    assert load(tmp_path / "TINY").name == "TINY"  # the folder's name decides
    (tmp_path / "TINY").rename(tmp_path / "both")
    with pytest.raises(DataError, match="several data sets, MORE, TINY"):
        load(tmp_path / "both")


def test_a_graph_of_a_million_nodes(tmp_path):
    N = 10**6
    v = np.arange(1, N)
    pairs = np.concatenate([np.stack([v, v + 1], 1), np.stack([v + 1, v], 1)])
    text = "\n".join(map("%d, %d".__mod__, map(tuple, pairs.tolist())))
    graphs = load(
        write_tu(tmp_path, A=text, graph_indicator="1\n" * N + "2\n", graph_labels="0\n1\n", node_labels=None,
                 node_attributes=None, edge_labels=None, edge_attributes=None),
        features="constant",
    )  # fmt: skip
    assert (len(graphs), graphs.ptr.tolist(), len(graphs.col)) == (2, [0, N, N + 1], 2 * N - 2)
    assert graphs.batch([0]).col.shape == (2 * N - 2,)


@pytest.mark.parametrize(("name", "numbers"), [
    ("DD", (1178, 2, 284.32, 715.66)), ("PROTEINS", (1113, 2, 39.06, 72.82)),
    ("NCI1", (4110, 2, 29.87, 32.30)), ("NCI109", (4127, 2, 29.68, 32.13)),
])  # fmt: skip
def test_the_papers_table_3(shared_datasets, name, numbers):
    graphs = load(name, data_root=shared_datasets)
    s = graphs.summary()
    assert (s.graphs, s.classes, round(s.nodes_mean, 2), round(s.edges_mean, 2)) == numbers
    assert graphs.num_features == {"DD": 89, "PROTEINS": 3, "NCI1": 37, "NCI109": 38}[name]
    assert not s.directed


def test_pyg_reads_the_same(shared_datasets, tmp_path):
    import zipfile

    import torch
    from torch_geometric.io import read_tu_data

    for name, features in (("PROTEINS", "both"), ("Mutagenicity", "labels")):
        zipfile.ZipFile(shared_datasets / f"{name}.zip").extractall(tmp_path)
        data, slices, _ = read_tu_data(str(tmp_path / name), name)
        graphs = load(tmp_path / name, features=features)
        assert torch.equal(torch.from_numpy(graphs.x.copy()), data.x)
        assert torch.equal(torch.from_numpy(graphs.y.copy()), data.y)
        source, target = data.edge_index.numpy() + np.repeat(graphs.ptr[:-1], np.diff(slices["edge_index"].numpy()))
        order = np.lexsort((source, target))
        assert np.array_equal(graphs.col, source[order])
        assert np.array_equal(np.repeat(np.arange(len(graphs.x)), np.diff(graphs.rowptr)), target[order])
        if data.edge_attr is not None:
            assert np.array_equal(graphs.edge_attr, data.edge_attr.numpy()[order])
