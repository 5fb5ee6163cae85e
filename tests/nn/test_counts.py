"""WL subtree counts: worked out by hand on a path and a star, then their symmetries, with both backends."""

import numpy as np
import pytest
import torch

from asapool import kernels
from asapool.data import GraphSet, load
from asapool.errors import ConfigError, InputError
from asapool.nn.counts import WLCounts

PATH = torch.tensor([0, 1, 3, 5, 6]), torch.tensor([1, 0, 2, 1, 3, 2])  # 0 - 1 - 2 - 3
STAR = torch.tensor([0, 3, 4, 5, 6]), torch.tensor([1, 2, 3, 0, 0, 0])  # 0 in the middle


@pytest.fixture(params=["reference", "fused"])
def backend(request):
    return request.param


def classes(backend, rows, depth, x=None, edge_attr=None):
    """Nodes with equal labels as equal small numbers, per depth."""
    x = torch.ones(4, 1) if x is None else x
    labels = kernels.subtree_labels(x, *rows, depth, edge_attr, backend=backend)
    return [np.unique(one.numpy(), return_inverse=True)[1].tolist() for one in labels]


def same(a, b):
    """Whether two lists of labels define the same partition of the nodes."""
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


def test_the_ends_of_a_path_differ_from_its_middle_after_one_step(backend):
    zero, one, two = classes(backend, PATH, 2)
    assert zero == [0, 0, 0, 0]
    assert same(one, [0, 1, 1, 0])
    assert same(two, [0, 1, 1, 0])  # nothing more can be told apart


def test_depth_reaches_one_edge_further_each_time(backend):
    x = torch.tensor([[1.0], [0.0], [0.0], [0.0]])  # a mark at one end
    zero, one, two = classes(backend, PATH, 2, x)
    assert same(zero, [0, 1, 1, 1])
    assert same(one, [0, 1, 2, 3])  # node 2 has two plain neighbours, node 3 one
    assert same(two, [0, 1, 2, 3])


def test_path_and_star_share_their_nodes_and_no_deeper_neighbourhood(backend):
    z = [
        WLCounts(depth, 1 << 16, backend=backend)(torch.ones(4, 1), torch.tensor([0, 4]), *rows)
        for rows in (PATH, STAR)
        for depth in (0, 1)
    ]
    assert torch.equal(z[0], z[2])  # four equal nodes
    assert (z[1] * z[3] > 0).sum() == 2  # the plain node, and a node with one neighbour
    assert z[1].sum() == z[3].sum() == 8  # a count per node and depth
    assert sorted(z[3][z[3] > 0].tolist()) == [1, 3, 4]  # centre, leaves, nodes


def test_edge_features_tell_neighbourhoods_apart(backend):
    bonds = torch.tensor([[1.0], [1.0], [0.0], [0.0], [1.0], [1.0]])  # ends double, middle single
    last = torch.tensor([[1.0], [1.0], [0.0], [0.0], [0.0], [0.0]])
    assert same(classes(backend, PATH, 1, edge_attr=bonds)[1], [0, 1, 1, 0])
    assert same(classes(backend, PATH, 1, edge_attr=last)[1], [0, 1, 2, 3])
    assert same(classes(backend, PATH, 1, edge_attr=torch.zeros(6, 1))[1], classes(backend, PATH, 1)[1])


def test_a_batch_has_the_counts_of_its_graphs_one_by_one_in_any_order_of_nodes(backend):
    graphs = load("synthetic:motifs?graphs=6")
    counts, batch = WLCounts(3, 512, backend=backend), graphs.batch(range(6))
    together = counts(batch.x, batch.ptr, batch.rowptr, batch.col)
    for k in range(6):
        one = graphs.batch([k])
        assert torch.equal(counts(one.x, one.ptr, one.rowptr, one.col)[0], together[k])
    data = graphs.to_pyg(0)
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(order).index_copy(0, order, torch.arange(len(order)))
    moved = GraphSet.from_pyg([type(data)(x=data.x[order], edge_index=place[data.edge_index])]).batch([0])
    assert torch.equal(counts(moved.x, moved.ptr, moved.rowptr, moved.col)[0], together[0])


def test_labels_are_the_same_on_every_machine(backend):
    labels = kernels.subtree_labels(torch.eye(4), *PATH, depth=2, backend=backend)[-1]
    assert labels.tolist() == [-2497119106552207721, -1519013334990651474, -7345574611932575862, -4301171194249727519]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("buckets", [64, 1000])  # a label is signed, so the remainder must be that of floor division
def test_both_backends_give_the_same_bits_on_any_features(dtype, buckets):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(4, 7, generator=g, dtype=dtype) * torch.tensor([0, 1e-3, 0.3, 1, 10, 1e4, -1e9], dtype=dtype)
    x[1, 3], x[2, 3] = 0.0625, 0.1875  # halfway between eighths: both are rounded to the even one
    edge_attr = torch.randn(6, 2, generator=g, dtype=dtype)
    for attr in (None, edge_attr):
        one, other = (kernels.subtree_labels(x, *PATH, 3, attr, backend=b) for b in ("reference", "fused"))
        assert torch.equal(one, other)
        assert one.dtype == other.dtype == torch.int64
        ptr = torch.tensor([0, 4])
        counted = [kernels.subtree_counts(x, ptr, *PATH, 3, buckets, attr, backend=b) for b in ("reference", "fused")]
        assert torch.equal(*counted)
        assert counted[0].dtype == counted[1].dtype == dtype


def test_any_number_of_threads_gives_the_same_counts(loops_shared):
    graphs = load("synthetic:motifs?graphs=40")
    batch, results = graphs.batch(range(40)), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        try:
            results.append(WLCounts(3, 128, backend="fused")(batch.x, batch.ptr, batch.rowptr, batch.col))
        finally:
            torch.set_num_threads(1)
    assert all(torch.equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("col", [[1, 0, 2, 1, 3, 4], [1, 0, 2, 1, 3, -1]])
def test_a_neighbour_outside_the_graph_is_refused_before_the_loop_reads_it(col):
    with pytest.raises(InputError, match="must name nodes 0 to 3"):
        kernels.subtree_labels(torch.ones(4, 1), PATH[0], torch.tensor(col), 1, backend="fused")


def test_float64_and_rounding_errors_change_nothing(backend):
    counts, ptr = WLCounts(2, 64, backend=backend), torch.tensor([0, 4])
    x = torch.tensor([[0.1, 1.0], [0.2, 0.0], [0.3, 1.0], [0.4, 0.0]])
    assert torch.equal(counts(x, ptr, *PATH).double(), counts(x.double() + 1e-9, ptr, *PATH))


@pytest.mark.parametrize("wrong", [{"depth": -1}, {"depth": 17}, {"buckets": 0}, {"depth": True}, {"buckets": 2.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match=f"WLCounts: {next(iter(wrong))} must be a whole number"):
        WLCounts(**wrong)
