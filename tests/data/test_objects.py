"""Conversion from and to PyG and NetworkX, and folders of GraphML and GEXF."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData

from asapool.data import GraphSet, load, read
from asapool.errors import DataError
from tests.data.sources import dense, random_set


def test_pyg_round_trip():
    graphs = random_set(2)
    back = GraphSet.from_pyg(list(graphs), ids=graphs.ids, class_names=("no", "yes"), name="random")
    # to PyG -1 is an ordinary label: graphs without a label have y = -1 again only if Data has no y
    for name in ("x", "ptr", "rowptr", "col", "weight", "edge_attr", "truth"):
        assert np.array_equal(getattr(back, name), getattr(graphs, name))


def test_the_direction_of_an_edge_is_kept():
    arrow = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([3]))
    graphs = GraphSet.from_pyg([arrow])
    assert dense(graphs, 0).tolist() == [[0, 0], [1, 0]]  # 0 -> 1 is in row 1
    assert graphs.to_pyg(0).edge_index.tolist() == [[0], [1]]
    assert list(graphs.to_networkx(0).edges) == [(0, 1)]
    assert graphs.class_names == ("3",)


def test_a_pyg_batch_is_its_graphs_and_a_single_data_one_graph():
    data = [Data(x=torch.eye(2) * k, edge_index=torch.tensor([[0], [1]]), y=torch.tensor([k])) for k in (1, 2)]
    assert np.array_equal(load(Batch.from_data_list(data)).x, load(data).x)
    assert len(load(data[0], labels="optional")) == 1


@pytest.mark.parametrize("source", [HeteroData(), [HeteroData()]], ids=["one", "list"])
def test_heterogeneous_graphs_are_refused(source):
    with pytest.raises(DataError, match=r"graph 0: a HeteroData is not supported.*data\.to_homogeneous\(\)"):
        load(source)


def test_pyg_lists_through_load():
    ring = Data(edge_index=torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]]), num_nodes=3, y=0)
    path = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=torch.tensor([1.0]))
    graphs = load([ring, path])
    assert (graphs.feature_names, graphs.y.tolist()) == (("degree=0", "degree=1", "degree>=2"), [0, 1])
    with pytest.raises(DataError, match="only one graph is labelled"):
        load([ring])
    assert load([Data(edge_index=ring.edge_index, num_nodes=3)], recipe=graphs.recipe).y.tolist() == [-1]


EDGE = torch.tensor([[0], [1]])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (Data(x=torch.ones(2, 1)), "graph 0: expected a PyG Data with edge_index"),
        (Data(x=torch.ones(2, 1), edge_index=EDGE * 5), "graph 0: an edge names node 5, but nodes are 0"),
        (Data(x=torch.ones(2, 1), edge_index=EDGE.float()), "edge_index must be whole numbers of shape"),
        (Data(x=torch.full((2, 1), torch.nan), edge_index=EDGE), "graph 0: a node feature is NaN or infinite"),
        (Data(x=torch.ones(2, 1), edge_index=EDGE, edge_weight=torch.ones(3)), "edge_weight must be numbers for 1 "),
        (Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=0), "graph 0: the graph has no nodes"),
    ],
)
def test_pyg_objects_that_are_refused(data, sentence):
    with pytest.raises(DataError, match=sentence):
        GraphSet.from_pyg([data])


def house():
    g = nx.Graph(label="house")
    g.add_nodes_from([("a", {"kind": "wall", "size": 2, "truth": 1}), ("b", {"kind": "roof", "size": 3.5})])
    g.add_edge("a", "b", weight=0.5)
    return g


def test_networkx_attributes_labels_and_truth():
    tent = nx.Graph(label="tent")
    tent.add_node(0, kind="roof", size=1, colour="red")
    graphs = load([house(), tent])
    assert graphs.feature_names == ("size", "kind=roof", "kind=wall")
    assert graphs.x.tolist() == [[2, 0, 1], [3.5, 1, 0], [1, 1, 0]]
    assert (graphs.truth.tolist(), graphs.weight.tolist()) == ([1, 0, 0], [0.5, 0.5])
    assert graphs.class_names == ("house", "tent")
    again = load([tent], recipe=graphs.recipe)
    assert (again.x.tolist(), again.y.tolist()) == ([[1, 1, 0]], [1])
    chosen = GraphSet.from_networkx([house(), tent], ["x", "y"], node_attributes=["size"])
    assert (chosen.feature_names, chosen.class_names) == (("size",), ("x", "y"))


def test_networkx_round_trip():
    graphs = load("synthetic:motifs?graphs=4")
    back = GraphSet.from_networkx(list(graphs.iter_networkx()), ids=graphs.ids)
    assert np.array_equal(back.x, graphs.x)
    assert np.array_equal(back.col, graphs.col)
    assert np.array_equal(back.truth, graphs.truth)
    assert (back.y.tolist(), back.class_names, back.feature_names[0]) == (graphs.y.tolist(), graphs.class_names, "x0")
    assert isinstance(random_set(2).to_networkx(1), nx.DiGraph)


def test_networkx_directions_parallels_and_loops():
    many = nx.MultiDiGraph([(0, 1), (0, 1), (1, 1)])
    graphs = GraphSet.from_networkx([many], ["a"])
    assert dense(graphs, 0).tolist() == [[0, 0], [2, 1]]
    assert dense(GraphSet.from_networkx([nx.Graph([(0, 1), (1, 1)])]), 0).tolist() == [[0, 1], [1, 1]]
    featured = nx.Graph()
    featured.add_edge(0, 1, kind=3)
    assert GraphSet.from_networkx([featured], edge_attributes=["kind"]).edge_attr.tolist() == [[3], [3]]


@pytest.mark.parametrize(
    ("graphs", "options", "sentence"),
    [
        ([nx.Graph()], {}, "graph 0: the graph has no nodes"),
        ([nx.path_graph(2), "text"], {}, "graph 1: expected a NetworkX graph, got str"),
        ([nx.path_graph(2)], {"node_attributes": ["size"]}, "graph 0: node 0 has no attribute 'size'"),
        ([nx.path_graph(2)], {"labels": [1, 2]}, "2 labels for 1 graphs"),
    ],
)
def test_networkx_objects_that_are_refused(graphs, options, sentence):
    with pytest.raises(DataError, match=sentence):
        GraphSet.from_networkx(graphs, **options)


def test_things_that_are_not_graphs():
    for thing, sentence in (
        (3, "a int is not a source"),
        ([], "contains no graphs"),
        ([3], "graph 0: expected a NetworkX"),
    ):
        with pytest.raises(DataError, match=sentence):
            load(thing)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "buildings"
    place.mkdir()
    nx.write_graphml(house(), place / "one.graphml")
    tent = nx.Graph()
    tent.add_node("only", kind="roof", size=1.0)
    nx.write_gexf(tent, place / "two.gexf")
    (place / "labels.csv").write_text("file,label\ntwo,tent\none.graphml,house\n")
    return place


def test_a_folder_of_graphml_and_gexf(folder):
    graphs = load(folder)
    assert (graphs.name, graphs.ids, graphs.y.tolist()) == ("buildings", ("two", "one"), [1, 0])
    assert graphs.feature_names == ("size", "kind=roof", "kind=wall")
    assert graphs.x.tolist() == [[1, 1, 0], [2, 0, 1], [3.5, 1, 0]]


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ("file,label\none,a\nthree,b\n", r"labels.csv, line 3: 'three' is not a GraphML or GEXF file of this folder"),
        ("file,label\none,a\ntwo,b\none.graphml,b\n", r"line 4: 'one.graphml' was listed before, in line 2"),
        ("file,label\none,a\n", r"labels.csv: no line for two.gexf \(1 files are not listed\)"),
        ("path,label\none,a\n", r"no column is called file or .*'path', 'label'\. .* id_column=NAME \(--id-"),
        ("file,label,class\none,a,b\n", r"labels.csv: expected one column with the classes, got 'label' and 'class'"),
        ("file,label\none,a\ntwo\n", r"labels.csv, line 3: expected 2 fields, got 1"),
        (None, r"buildings: no labels CSV. Add labels.csv"),
    ],
)
def test_labels_that_do_not_fit_the_folder(folder, labels, sentence):
    if labels is None:
        (folder / "labels.csv").unlink()
    else:
        (folder / "labels.csv").write_text(labels)
    with pytest.raises(DataError, match=sentence):
        load(folder)


def test_a_damaged_graphml_file(folder):
    (folder / "one.graphml").write_text("<graphml><graph>")
    with pytest.raises(DataError, match=r"one.graphml: not readable as graphml \(no element found: line 1"):
        load(folder)
    (folder / "labels.csv").write_text("file,label\none,house\ntwo,N/A\n")
    reading = read(folder, skip_invalid=True, labels="optional")
    graphs = reading.graphs
    assert (graphs.ids, graphs.places.tolist(), reading.missing) == (("two",), [1], {"N/A": 1})
    assert len(reading.skipped) == 1
