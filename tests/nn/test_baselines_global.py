"""Set2Set, global attention and SortPool: the vector of a graph from its nodes."""

import math

import pytest
import torch

from asapool.errors import ConfigError, InputError
from asapool.nn import DiffPooling, GlobalAttentionPool, Set2SetPool, SortPool
from asapool.nn.inputs import pack_batch
from tests.graphs import random_batch


def pattern_of(*sizes):
    from asapool import kernels

    ptr = torch.tensor([0, *sizes]).cumsum(0)
    return kernels.pack(torch.empty(2, 0, dtype=torch.int64), ptr, sum(sizes))[0]


def zero(module):
    for p in module.parameters():
        p.data.zero_()
    return module


X = torch.tensor([[1.0], [0.0], [8.0]])  # two graphs: nodes 0 and 1, node 2


def test_global_attention_is_a_weighted_sum():
    pool = zero(GlobalAttentionPool(1))
    assert pool(X, pattern_of(2, 1)).tolist() == [[0.5], [8.0]]  # no preference: the mean
    pool.pool.gate_nn.weight.data.fill_(math.log(3))  # e^{ln 3 · 1} : e^0 = 3 : 1
    torch.testing.assert_close(pool(X, pattern_of(2, 1)), torch.tensor([[0.75], [8.0]]))


def test_global_attention_with_transform_sums_what_the_layer_gives():
    pool = zero(GlobalAttentionPool(1, transform=True))
    pool.pool.nn.weight.data.fill_(2.0)
    pool.pool.nn.bias.data.fill_(1.0)
    assert pool(X, pattern_of(2, 1)).tolist() == [[2.0], [17.0]]  # mean of 2·1 + 1 and 2·0 + 1; 2·8 + 1
    assert len(list(GlobalAttentionPool(1).parameters())) == 2


def test_set2set_without_a_query_is_the_mean():
    assert zero(Set2SetPool(1, steps=3))(X, pattern_of(2, 1)).tolist() == [[0.0, 0.5], [0.0, 8.0]]


def test_set2set_attends_by_its_query():
    pool = zero(Set2SetPool(1, steps=1))
    pool.pool.lstm.bias_ih_l0.data = torch.tensor([50.0, 0.0, 50.0, 50.0])  # gates open, cell 1: q = tanh(1)
    q = math.tanh(1)
    r = math.exp(q) / (math.exp(q) + 1)  # share of node 0, whose feature is 1
    torch.testing.assert_close(pool(X, pattern_of(2, 1)), torch.tensor([[q, r], [q, 8.0]]))


def test_set2set_takes_as_many_steps_as_asked():
    torch.manual_seed(0)
    five, ten = Set2SetPool(1, steps=5), Set2SetPool(1, steps=10)
    ten.load_state_dict(five.state_dict())
    assert not torch.allclose(five(X, pattern_of(3)), ten(X, pattern_of(3)))


def test_sortpool_concatenates_the_first_k(backend):
    x = torch.tensor([[1.0, 3.0], [2.0, 9.0], [3.0, -1.0], [4.0, 5.0]])
    assert SortPool(2, 3, backend=backend)(x, pattern_of(3, 1)).tolist() == [
        [2.0, 9.0, 1.0, 3.0, 3.0, -1.0],
        [4.0, 5.0, 0.0, 0.0, 0.0, 0.0],
    ]
    assert SortPool(2, 1, backend=backend)(x, pattern_of(3, 1)).tolist() == [[2.0, 9.0], [4.0, 5.0]]


def test_sortpool_breaks_ties_by_the_feature_before(backend):
    x = torch.tensor([[1.0, 2.0, 0.0], [5.0, 2.0, 0.0], [0.0, 7.0, 0.0]])
    expected = [[0.0, 7.0, 0.0, 5.0, 2.0, 0.0, 1.0, 2.0, 0.0]]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        assert SortPool(3, 3, backend=backend)(x[order], pattern_of(3)).tolist() == expected


@pytest.mark.parametrize("seed", range(5))
def test_sortpool_equals_torch_geometric_without_ties(seed, backend):
    from torch_geometric.nn import SortAggregation

    x, edges, _, batch = random_batch(seed, graphs=5)
    pattern = pack_batch(x, edges, None, batch, 5, "auto").graph.pattern
    torch.testing.assert_close(SortPool(5, 4, backend=backend)(x, pattern), SortAggregation(4)(x, batch))


def test_sortpool_passes_gradients_to_the_nodes_it_reads():
    x = torch.tensor([[1.0], [3.0], [2.0]], requires_grad=True)
    (SortPool(1, 2)(x, pattern_of(3)) * torch.tensor([10.0, 1.0])).sum().backward()
    assert x.grad.tolist() == [[0.0], [10.0], [1.0]]


@pytest.mark.parametrize("pool", [SortPool(1, 2), Set2SetPool(1), GlobalAttentionPool(1, transform=True)])
def test_graphs_without_nodes_have_a_row(pool):
    assert pool(X, pattern_of(0, 2, 0, 1)).shape == (4, pool.out_channels)
    assert pool(X, pattern_of(0, 2, 0, 1)).isfinite().all()
    assert pool(X[:0], pattern_of(0, 0)).shape == (2, pool.out_channels)


def test_k_of_zero_gets_a_sentence():
    with pytest.raises(ConfigError, match="at least one node"):
        SortPool(3, 0)


@pytest.mark.parametrize("make", [Set2SetPool, GlobalAttentionPool, lambda F: SortPool(F, 2)])
def test_a_batch_vector_is_taken_as_in_torch_geometric(make):
    layer, x = make(3), torch.randn(5, 3)
    batch = torch.tensor([0, 0, 1, 1, 1])
    expected = layer(x, pattern_of(2, 3))
    torch.testing.assert_close(layer(x, batch), expected)
    order = torch.tensor([3, 0, 2, 4, 1])
    torch.testing.assert_close(layer(x[order], batch[order]), expected)
    torch.testing.assert_close(layer(x), layer(x, torch.zeros(5, dtype=torch.int64)))
    with pytest.raises(InputError, match=r"batch must name one graph per node, shape \(5,\), got \(4,\)"):
        layer(x, batch[:4])


def test_a_step_of_diffpool_says_that_it_needs_a_packed_graph():
    with pytest.raises(InputError, match=r"takes a packed asapool\.nn\.Graph, got a tensor; with edge_index"):
        DiffPooling(3, 2).step(torch.randn(5, 3), torch.empty(2, 0, dtype=torch.int64))
