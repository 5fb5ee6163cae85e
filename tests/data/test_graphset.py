"""The packed set: what it refuses, slicing, batches, fingerprints, summary."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asapool.data import GraphSet, load
from asapool.errors import DataError
from tests.data.sources import dense, random_set

GOOD = {"x": np.ones((3, 1)), "ptr": [0, 2, 3], "rowptr": [0, 1, 2, 2], "col": [1, 0]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ptr": [0, 2, 2, 3]}, "graph 1 has no nodes"),
        ({"ptr": [0, 2]}, "ptr must rise from 0 to 3"),
        ({"rowptr": [0, 1, 2]}, "rowptr has 3 entries, expected 4"),
        ({"col": [2, 0]}, "edge 2 -> 0 joins graph 1 to graph 0"),
        ({"col": [7, 0]}, "an edge names node 7, but there are 3 nodes"),
        ({"rowptr": [0, 2, 2, 2], "col": [1, 0]}, "the columns of a row must ascend"),
        ({"x": np.full((3, 1), np.nan)}, "x contains NaN or infinity"),
        ({"x": np.ones(3)}, "x must be 2-dimensional numbers"),
        ({"x": [["a"], ["b"], ["c"]]}, "x must be 2-dimensional numbers"),
        ({"y": [0, 1]}, "class number 1, expected -1 .no label. to -1"),
        ({"y": [0]}, "y has 1 entries, expected 2"),
        ({"ids": ("a",)}, "ids has 1 entries, expected 2"),
        ({"weight": [1.0]}, "weight has 1 entries, expected 2"),
        ({"truth": [0, 1, 2]}, "truth must be 0 or 1"),
        ({"feature_names": ("a", "b")}, "feature_names has 2 entries, expected 1"),
    ],
)
def test_a_set_that_contradicts_itself_is_refused(change, sentence):
    GraphSet(**GOOD)
    with pytest.raises(DataError, match=sentence):
        GraphSet(**GOOD | change)


def test_arrays_are_read_only_and_the_callers_stay_writable():
    x = np.ones((3, 1), np.float32)
    graphs = GraphSet(**GOOD | {"x": x})
    with pytest.raises(ValueError, match="read-only"):
        graphs.x[0, 0] = 2
    x[0, 0] = 2


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 50), st.lists(st.integers(-7, 6), max_size=12), st.booleans())
def test_a_subset_has_the_chosen_graphs_in_order(seed, indices, weighted):
    graphs = random_set(seed, weighted=weighted)
    part = graphs.subset(indices)
    assert len(part) == len(indices)
    for k, i in enumerate(indices):
        i %= len(graphs)
        assert np.array_equal(dense(part, k), dense(graphs, i))
        for name in ("x", "truth"):
            have, want = getattr(part, name), getattr(graphs, name)
            assert np.array_equal(have[part.ptr[k] : part.ptr[k + 1]], want[graphs.ptr[i] : graphs.ptr[i + 1]])
        assert part.ids[k] == graphs.ids[i]
        assert part.source_text[k] == graphs.source_text[i]
        assert part.y[k] == graphs.y[i]
    GraphSet(**{f: getattr(part, f) for f in part.__dataclass_fields__})  # every subset passes the checks


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 50), st.lists(st.integers(-7, 6), min_size=1, max_size=12), st.booleans())
def test_a_batch_is_the_subset_as_tensors(seed, indices, weighted):
    graphs = random_set(seed, weighted=weighted)
    part, batch = graphs.subset(indices), graphs.batch(indices)
    for name in ("x", "ptr", "rowptr", "col", "y"):
        assert torch.equal(getattr(batch, name), torch.from_numpy(getattr(part, name).copy()))
        assert getattr(batch, name).dtype == (torch.float32 if name == "x" else torch.int64)
    assert (batch.weight is None) == (not weighted)
    if weighted:
        assert torch.equal(batch.weight, torch.from_numpy(part.weight.copy()))


def test_a_batch_is_what_pyg_makes_of_the_same_graphs():
    from torch_geometric.data import Batch

    for graphs in (random_set(3), load("synthetic:motifs?graphs=9")):  # plain numbers, and one-hot rows
        chosen = [4, 0, 6, 4]
        ours, theirs = graphs.batch(chosen), Batch.from_data_list([graphs.to_pyg(i) for i in chosen])
        assert torch.equal(ours.x, theirs.x)
        assert torch.equal(ours.edge_index, theirs.edge_index)
        assert torch.equal(ours.batch, theirs.batch)
        assert torch.equal(ours.ptr, theirs.ptr)
        assert torch.equal(ours.y, theirs.y)
        if graphs.weight is not None:
            assert torch.equal(ours.weight, theirs.edge_weight)
    assert len(ours) == 4
    assert ours.to("cpu").x is ours.x


def test_a_batch_shares_no_memory_with_the_set():
    graphs = random_set(1)
    before = graphs.fingerprint
    batch = graphs.batch([0, 1, 2])
    for tensor in (batch.x, batch.col, batch.weight, batch.y, batch.ptr, batch.rowptr):
        tensor.zero_()
    assert graphs.subset(range(len(graphs))).fingerprint == before


def test_choosing_graphs():
    graphs = random_set()
    mask = np.array([True, False, True, False, False, False, True])
    assert graphs[mask].ids == graphs[[0, 2, 6]].ids == ("g0", "g2", "g6")
    assert graphs[2:4].ids == ("g2", "g3")
    assert graphs[-1].num_nodes == graphs.ptr[-1] - graphs.ptr[-2]
    assert len(list(graphs)) == len(graphs)
    with pytest.raises(DataError, match="graph 7 was requested, but random has 7 graphs"):
        graphs.subset([7])
    with pytest.raises(DataError, match="graph -8 was requested"):
        graphs.batch([-8])
    with pytest.raises(DataError, match="a list of whole numbers, got float64"):
        graphs.batch([0.5])
    with pytest.raises(IndexError, match="graph 7"):
        graphs[7]


def test_the_fingerprint_is_of_the_content_alone():
    graphs = random_set()
    assert graphs.renamed("other").fingerprint == graphs.fingerprint == random_set().fingerprint
    seen = {graphs.fingerprint, random_set(1).fingerprint, graphs.subset([1, 0, 2, 3, 4, 5, 6]).fingerprint}
    fields = {f: getattr(graphs, f) for f in graphs.__dataclass_fields__}
    for change in (
        {"x": graphs.x + 1}, {"weight": graphs.weight + 1}, {"truth": 1 - graphs.truth}, {"edge_attr": None},
        {"class_names": ("a", "b")}, {"ids": tuple("abcdefg")}, {"y": np.zeros(7, int)},
    ):  # fmt: skip
        seen.add(GraphSet(**fields | change).fingerprint)
    assert len(seen) == 10


def test_the_fingerprint_is_the_same_on_every_machine():
    graphs = GraphSet(x=[[0.5], [2]], ptr=[0, 2], rowptr=[0, 1, 2], col=[1, 0], y=[0], class_names=("a",))
    assert graphs.fingerprint == "4bd9c62d90a1363ef331dd88bae3613e"


def test_the_summary_of_graphs_small_enough_to_count():
    # a triangle with a self-loop and an isolated node beside it; a single edge
    graphs = GraphSet(
        x=np.ones((6, 2)), ptr=[0, 4, 6], rowptr=[0, 3, 5, 7, 7, 8, 9], col=[0, 1, 2, 0, 2, 0, 1, 5, 4], y=[1, -1],
        class_names=("a", "b"),
    )  # fmt: skip
    s = graphs.summary()
    assert (s.graphs, s.classes, s.class_counts, s.unlabelled) == (2, 2, {"a": 0, "b": 1}, 1)
    assert (s.nodes_mean, s.nodes_min, s.nodes_max, s.nodes_total) == (3.0, 2, 4, 6)
    assert (s.edges_mean, s.edges_total, s.self_loops) == (2.5, 5, 1)  # three sides and the loop; one edge
    assert (s.degree_mean, s.degree_max, s.isolated_nodes) == (8 / 6, 2, 1)
    assert s.density_mean == (6 / 12 + 1) / 2
    assert (s.components_mean, s.connected) == (1.5, 1)
    assert (s.features, s.edge_features, s.directed, s.weighted, s.has_truth) == (2, 0, False, False, False)
    assert s.bytes == 6 * 2 * 4 + 3 * 8 + 7 * 8 + 9 * 8 + 2 * 8


def test_directed_edges_count_one_by_one():
    graphs = GraphSet(x=np.ones((2, 1)), ptr=[0, 2], rowptr=[0, 1, 1], col=[1])
    assert (graphs.summary().directed, graphs.summary().edges_mean) == (True, 1.0)


def test_an_empty_choice_is_an_empty_set():
    none = random_set().subset([])
    assert len(none) == 0
    assert none.summary().graphs == 0
